"""Answering: question → what is searched for → evidence → material → answer; no view is open while a model works."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from quipu.answer import compose, gather
from quipu.engine.models import Models
from quipu.model.answer import Answer
from quipu.model.chat import Role
from quipu.model.evidence import Evidence, Timing
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
            async with self.store.view(query.filter) as view:
                evidence, timing = await self._retrieved(resolved, view, meter)
                timings = (*timings, timing)
                material = await gather(resolved.query, evidence, view, self.tokenizer, timings=timings)
        llm = self.models.llm(Role.ANSWER, meter) if query.with_answer else None
        answer = await compose(resolved.query, material, llm=llm, on_text=on_text)
        return replace(answer, usage=meter.rows())

    async def evidence(self, query: Query) -> Evidence:
        """Return the evidence for a question."""
        meter = self.models.meter.child(query.text)
        resolved = await resolve(query, self.models.llm(Role.KEYWORDS, meter))
        if reranker := self.models.reranker(meter):
            return (await self._reranked(resolved, reranker, meter))[0]
        async with self.store.view(query.filter) as view:
            return (await self._retrieved(resolved, view, meter))[0]

    async def _reranked(self, resolved: Resolved, reranker: Reranker, meter: Meter) -> tuple[Evidence, Timing]:
        """Return the passages in the order of a reranker, which is asked when the view is released."""
        begun = self.clock()
        wide = replace(resolved, query=widened(resolved.query))
        async with self.store.view(resolved.query.filter) as view:
            evidence, _ = await self._retrieved(wide, view, meter)
            chunks = await view.chunks([hit.id for hit in evidence.chunks])
        evidence = await rerank(resolved.query, evidence, chunks, reranker)
        return evidence, Timing(stage="retrieve", ms=(self.clock() - begun) * 1000)

    async def _retrieved(self, resolved: Resolved, view: ReadView, meter: Meter) -> tuple[Evidence, Timing]:
        begun = self.clock()
        tools = Tools(vectors=self.vectors, embedder=self.models.embedder(self.embedder, meter))
        query = resolved.query
        evidence = await strategy_named(query.strategy).retrieve(query.as_searched(), view, tools)
        timing = Timing(stage="retrieve", ms=(self.clock() - begun) * 1000)
        return evidence.with_notes(resolved.notes), timing
