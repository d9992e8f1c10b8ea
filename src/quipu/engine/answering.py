"""Answering: question → what is searched for → evidence → material → answer; no view is open while a model works."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from quipu.answer import Material, compose, gather
from quipu.engine.fetching import FetchingEmbedder
from quipu.engine.models import Models
from quipu.model.answer import Answer
from quipu.model.chat import Role
from quipu.model.evidence import Evidence, Timing
from quipu.model.graph import Chunk
from quipu.model.query import Query
from quipu.ports.embedder import Embedder
from quipu.ports.llm import TextSink, no_text
from quipu.ports.reranker import Reranker
from quipu.ports.store import ReadView, Store
from quipu.ports.tokenizer import Tokenizer
from quipu.ports.vectors import Vectors
from quipu.retrieve import strategy_named
from quipu.retrieve.reranking import rerank, widened
from quipu.retrieve.resolving import Resolved, resolve
from quipu.retrieve.strategy import Tools
from quipu.wrap.meter import Meter

T = TypeVar("T")
Read = Callable[[Evidence, Timing, ReadView], Awaitable[T]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Answers questions over a store."""

    store: Store
    vectors: Vectors
    embedder: Embedder
    tokenizer: Tokenizer
    models: Models
    clock: Callable[[], float] = time.perf_counter

    async def answer(self, query: Query, on_text: TextSink = no_text) -> Answer:
        """Return the answer, with what it cost; `on_text` is given its text in pieces as it is written."""
        meter = self.models.meter.child(query.text)
        begun = self.clock()
        resolved = await resolve(query, self.models.llm(Role.KEYWORDS, meter))
        timings = (Timing(stage="understand", ms=(self.clock() - begun) * 1000),) if resolved.notes else ()
        if reranker := self.models.reranker(meter):
            evidence, timing = await self._reranked(resolved, reranker, meter)
            async with self.store.view(query.filter) as view:
                timings = (*timings, timing)
                material = await gather(resolved.query, evidence, view, self.tokenizer, timings=timings)
        else:

            async def read(evidence: Evidence, timing: Timing, view: ReadView) -> Material:
                told = (*timings, timing)
                return await gather(resolved.query, evidence, view, self.tokenizer, timings=told)

            material = await self._retrieved(resolved, meter, read)
        llm = self.models.llm(Role.ANSWER, meter) if query.with_answer else None
        answer = await compose(resolved.query, material, llm=llm, on_text=on_text)
        return replace(answer, usage=meter.rows())

    async def evidence(self, query: Query) -> Evidence:
        """Return the evidence for a question."""
        meter = self.models.meter.child(query.text)
        resolved = await resolve(query, self.models.llm(Role.KEYWORDS, meter))
        if reranker := self.models.reranker(meter):
            return (await self._reranked(resolved, reranker, meter))[0]
        return (await self._retrieved(resolved, meter, _alone))[0]

    async def _reranked(self, resolved: Resolved, reranker: Reranker, meter: Meter) -> tuple[Evidence, Timing]:
        """Return the passages in the order of a reranker, which is asked when the view is released."""
        begun = self.clock()

        async def read(evidence: Evidence, timing: Timing, view: ReadView) -> tuple[Evidence, Sequence[Chunk]]:
            return evidence, await view.chunks([hit.id for hit in evidence.chunks])

        wide = replace(resolved, query=widened(resolved.query))
        evidence, chunks = await self._retrieved(wide, meter, read)
        evidence = await rerank(resolved.query, evidence, chunks, reranker)
        return evidence, Timing(stage="retrieve", ms=(self.clock() - begun) * 1000)

    async def _retrieved(self, resolved: Resolved, meter: Meter, read: Read[T]) -> T:
        """Retrieve, and return what `read` makes of the evidence in the same view; a service is asked outside of it."""
        begun = self.clock()
        query = resolved.query
        fetching = FetchingEmbedder(self.models.embedder(self.embedder, meter))
        embedder = fetching if self.models.embedder_chain else self.embedder

        async def search() -> T:
            async with self.store.view(query.filter) as view:
                tools = Tools(vectors=self.vectors, embedder=embedder)
                evidence = await strategy_named(query.strategy).retrieve(query.as_searched(), view, tools)
                timing = Timing(stage="retrieve", ms=(self.clock() - begun) * 1000)
                return await read(evidence.with_notes(resolved.notes), timing, view)

        return await fetching.around(search)


async def _alone(evidence: Evidence, timing: Timing, view: ReadView) -> tuple[Evidence, Timing]:
    return evidence, timing
