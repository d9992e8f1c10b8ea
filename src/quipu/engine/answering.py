"""Answering: question → what is searched for → evidence → material → answer; no view is open while a model works."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from quipu.answer import Material, compose, gather
from quipu.engine.asking_model import AskingModel, Replies
from quipu.engine.components import CallCounter, Components, Models
from quipu.engine.fetching import FetchingEmbedder, with_fetches
from quipu.engine.matching import Matched
from quipu.engine.needs import Needs, with_remedy
from quipu.model.answer import Answer
from quipu.model.chat import Role
from quipu.model.evidence import Evidence, Timing
from quipu.model.graph import Chunk
from quipu.model.query import Query
from quipu.ports.providers import Embedder, Reranker, TextSink, Tokenizer, ignore_text
from quipu.ports.store import ReadView, Store
from quipu.ports.topology import TopologyIndex
from quipu.ports.vector_index import VectorIndex
from quipu.retrieve import strategy_named
from quipu.retrieve.reranking import rerank, widened
from quipu.retrieve.resolving import Resolved, resolve
from quipu.retrieve.strategy import Tools
from quipu.wrap.embedder import guarded_embedder

_ASKED = frozenset({Role.KEYWORDS, Role.ANSWER})  # the work strategies ask a model for: one without the other is vain

T = TypeVar("T")
Read = Callable[[Evidence, Timing, ReadView], Awaitable[T]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Answers questions over a store. Every question raises Stale where its strategy needs what is missing."""

    store: Store
    vectors: VectorIndex
    topology: TopologyIndex
    embedder: Embedder
    tokenizer: Tokenizer
    models: Models
    needs: Needs
    clock: Callable[[], float] = time.perf_counter

    @classmethod
    def of(cls, parts: Components) -> Self:
        """Return what answers with the parts of an engine."""
        needs = Needs(
            derivation_context=parts.derivation_context(), catalog=parts.catalog, price=parts.models.price(Role.REPORT)
        )
        return cls(
            store=parts.store,
            vectors=parts.vectors,
            topology=parts.topology,
            embedder=parts.embedder,
            tokenizer=parts.ingest_config.tokenizer,
            models=parts.models,
            needs=needs,
        )

    async def answer(self, query: Query, on_text: TextSink = ignore_text) -> Answer:
        """Return the answer, with what it cost; `on_text` is given its text in pieces as it is written."""
        stale = await self.needs.check(strategy_named(query.strategy))
        tally = self._tally(query)
        begun = self.clock()
        resolved = await resolve(query, tally.llm(Role.KEYWORDS))
        timings = (Timing(stage="understand", ms=(self.clock() - begun) * 1000),) if resolved.notes else ()

        async def read(evidence: Evidence, timing: Timing, view: ReadView) -> Material:
            told = (*timings, timing)
            return await gather(resolved.query, evidence, view, self.tokenizer, timings=told)

        material = await self._found(resolved, tally, read)
        material = replace(material, stale=(*map(with_remedy, material.stale), *stale))
        llm = tally.llm(Role.ANSWER) if query.with_answer else None
        answer = await compose(resolved.query, material, llm=llm, on_text=on_text)
        return replace(answer, usage=tally.meter.rows(), trace=replace(answer.trace, n_calls=tally.n_calls))

    async def evidence(self, query: Query) -> Evidence:
        """Return the evidence for a question."""
        return (await self.read(query, _alone))[0]

    async def read(self, query: Query, read: Read[T]) -> T:
        """Return what `read` makes of the evidence for a question and of the view it was found in."""
        stale = await self.needs.check(strategy_named(query.strategy))
        tally = self._tally(query)
        resolved = await resolve(query, tally.llm(Role.KEYWORDS))
        return await self._found(replace(resolved, notes=(*stale, *resolved.notes)), tally, read)

    def _tally(self, query: Query) -> CallCounter:
        return CallCounter(self.models, self.models.meter.child(query.text))

    async def _found(self, resolved: Resolved, tally: CallCounter, read: Read[T]) -> T:
        """Retrieve, rerank where there is a reranker, and return what `read` makes of the evidence."""
        reranker = self.models.reranker(tally.meter)
        if reranker is None:
            return await self._retrieved(resolved, tally, read)
        evidence, timing = await self._reranked(resolved, reranker, tally)
        async with self.store.view(resolved.query.filter) as view:
            return await read(evidence, timing, view)

    async def _reranked(self, resolved: Resolved, reranker: Reranker, tally: CallCounter) -> tuple[Evidence, Timing]:
        """Return the passages in the order of a reranker, which is asked when the view is released."""
        begun = self.clock()

        async def read(evidence: Evidence, timing: Timing, view: ReadView) -> tuple[Evidence, Sequence[Chunk]]:
            return evidence, await view.chunks([hit.id for hit in evidence.chunks])

        wide = replace(resolved, query=widened(resolved.query))
        evidence, chunks = await self._retrieved(wide, tally, read)
        evidence = await rerank(resolved.query, evidence, chunks, reranker)
        return evidence, Timing(stage="retrieve", ms=(self.clock() - begun) * 1000)

    async def _retrieved(self, resolved: Resolved, tally: CallCounter, read: Read[T]) -> T:
        """Retrieve, and return what `read` makes of the evidence in the same view; services are asked outside of it."""
        begun = self.clock()
        query = resolved.query
        replies, has_model = Replies(tally.llm), self.models.chains.keys() >= _ASKED
        chained = self.models.embedder_chain
        metered = self.models.embedder(self.embedder, tally.meter)
        embedder: Embedder = guarded_embedder(metered, [Matched(metered, self.store)])
        embedder = FetchingEmbedder(embedder) if chained else embedder

        async def search() -> T:
            async with self.store.view(query.filter) as view:
                tools = Tools(
                    vectors=self.vectors,
                    embedder=embedder,
                    topology=self.topology,
                    tokenizer=self.tokenizer,
                    model=AskingModel(replies, view.revision) if has_model else None,
                )
                evidence = await strategy_named(query.strategy).retrieve(query.as_searched(), view, tools)
                timing = Timing(stage="retrieve", ms=(self.clock() - begun) * 1000)
                evidence = evidence.with_notes((*resolved.notes, *replies.notes()))
                return await read(evidence, timing, view)

        return await with_fetches(search)


async def _alone(evidence: Evidence, timing: Timing, view: ReadView) -> tuple[Evidence, Timing]:
    return evidence, timing
