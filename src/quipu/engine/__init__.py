"""Quipu, the engine: documents in, cited answers out.

add      parse → chunk → extract → Delta(facts) → store.commit → refresh(derivations)
query    strategy(query, view, tools) → Evidence → pack → render → generate → cite → Answer
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from quipu.answer import stream
from quipu.derive.embedding import embed_stale
from quipu.engine import lookups, reports, state
from quipu.engine.answering import Asker
from quipu.engine.asked import asked as asked_as
from quipu.engine.comparing import Comparer
from quipu.engine.components import Components
from quipu.engine.estimating import HowRead, estimate_adding
from quipu.engine.handed_in import handed_in
from quipu.engine.readiness import Readiness
from quipu.engine.refreshing import Scope, bring_up_to_date, drop
from quipu.engine.reporting import Run
from quipu.engine.turn import turn_to_derive
from quipu.engine.working import work_through
from quipu.ingest.queue import EnqueueResult, enqueue_documents
from quipu.ingest.sources import text_source
from quipu.model.answer import Answer, AnswerPiece, Comparison
from quipu.model.chunking import Chunking
from quipu.model.delta import ChunkFacts, Delta
from quipu.model.derivation import DerivationState
from quipu.model.document import Document, Metadata, SourceDocument
from quipu.model.event import EventSink, Progress, ignore_event
from quipu.model.evidence import Evidence, Explanation
from quipu.model.query import Query
from quipu.model.results import (
    AddResult,
    DocumentDetails,
    EntityDetails,
    ImportResult,
    IndexStatus,
    RefreshResult,
    RelationDetails,
    RemoveResult,
    ReportDetails,
    SearchResult,
)
from quipu.model.tuning import TuningResult
from quipu.model.usage import Estimate, UsageRow
from quipu.retrieve import strategy_named
from quipu.retrieve.explaining import explaining

__all__ = ["Components", "Quipu"]

REMOVED_AT_ONCE = 64


class Quipu:
    """One knowledge base. Use it as an async context manager; every method may be called from many tasks at once."""

    def __init__(self, parts: Components) -> None:
        self._components = parts
        self._store = parts.store
        self._working, self._deriving = asyncio.Lock(), asyncio.Lock()
        self._readiness = Readiness(parts.store, parts.embedder)
        self._asker = Asker.of(parts)
        self._comparer = Comparer(ask=self.query, asker=self._asker)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Release store and models. Work under way is given back by the call that does it, when that ends."""
        await self._components.models.close()
        await self._store.close()

    # ---- documents in

    async def add(
        self,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        metadata: Metadata | None = None,
        chunking: Chunking | None = None,
        reread: bool = False,
        on_event: EventSink = ignore_event,
    ) -> AddResult:
        """Add files, folders or documents, and whatever was queued before; return when all of it can be queried.

        A document keeps its id (its path below `root`, by default the folder that holds the index), so that a changed
        file is an update and the same again costs nothing. A file that cannot be read is reported, not raised.
        `chunking` says how to cut them, over rules and settings. Documents that another model or other settings have
        read are left as they are unless `reread`. Raises NotFound for a path that does not exist.
        """
        run = Run(self._components)
        found = handed_in(sources, self._components, root, metadata)
        ready = partial(self._readiness.make_sure, run.parts.models, run.parts.ingest_config.extractor)
        ingest_config = run.parts.ingest_config.with_chunking(chunking)
        taken = await enqueue_documents(found, self._store, ingest_config, on_event, ready, reread=reread)
        return await self._finish(taken, on_event, run)

    async def estimate(
        self,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        metadata: Metadata | None = None,
        n_sample: int = 0,
        on_event: EventSink = ignore_event,
        **how: Unpack[HowRead],
    ) -> Estimate:
        """Return what `add` would take with a language model: calls, tokens, money and time, each with a range.

        Documents are read and cut for real, nothing is added. With `n_sample` so many chunks are read by the model
        first, and paid for; their replies are kept. `how` they are read, `chunking` and `reread`, is said as to `add`.
        """
        parts = self._components.metered_by(self._components.models.meter.child())
        found = handed_in(sources, self._components, root, metadata)
        return await estimate_adding(found, n_sample, parts=parts, on_event=on_event, **how)

    async def tune(
        self,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        on_event: EventSink = ignore_event,
        **sizes: Any,
    ) -> TuningResult:
        """Return how documents like these, or without any like those of the index, should be read; nothing is added.

        The report holds the text of an ontology file. `sizes` are `n_sample` chunks to learn from (12) and `n_compare`
        others to compare readings of (2). With `dry_run=True` no model is asked, and the report tells the cost.
        """
        from quipu.engine.tuning import Sizes, tune  # noqa: PLC0415 - takes time, and is seldom needed

        found = handed_in(sources, self._components, root, None) if sources else None
        return await tune(found, Sizes.of(sizes), self._components, on_event)

    async def add_text(
        self,
        text: str,
        *,
        id: str | None = None,  # noqa: A002 - the word every caller expects
        title: str = "",
        metadata: Metadata | None = None,
        media_type: str = "text/markdown",
        on_event: EventSink = ignore_event,
    ) -> AddResult:
        """Add a text. Without an id it is known by its content: another text is then another document."""
        source = text_source(text, id=id, title=title, metadata=metadata or {}, media_type=media_type)
        return await self.add(source, on_event=on_event)

    async def import_graph(self, *paths: str | Path, on_event: EventSink = ignore_event) -> ImportResult:
        """Add documents with what another system has read out of them, from JSON Lines files or folders of these.

        Its communities, and the reports on them, take the place of those there are; they may come alone, after their
        documents. The same again does nothing, and finishes what was cut short. Raises NotFound for a path that does
        not exist, and InvalidInput naming what cannot be read or is of nothing there: then nothing is added.
        """
        from quipu.engine.importing import import_recorded  # noqa: PLC0415 - takes time, and is seldom needed
        from quipu.ingest.recorded import read_graph  # noqa: PLC0415

        graph = await asyncio.to_thread(read_graph, [Path(path) for path in paths])
        run = Run(self._components)
        refresh = partial(self._refreshed, run.parts, on_event, Scope())
        return await import_recorded(graph, run, self._turn(run.parts), refresh, on_event)

    async def resume(self, on_event: EventSink = ignore_event) -> AddResult:
        """Work through what is queued, also what a process that died left behind."""
        return await self._finish(EnqueueResult(), on_event, Run(self._components))

    async def remove(self, ids: Sequence[str], on_event: EventSink = ignore_event) -> RemoveResult:
        """Remove documents with everything only they said. Raises NotFound naming ids that are not known."""
        wanted = lookups.listed(ids)
        await self._check_known(wanted)
        if wanted:
            await self._store.commit(Delta(enqueue_removal=wanted))  # a removal that is cut short is resumed
        for start in range(0, len(wanted), REMOVED_AT_ONCE):
            await self._store.commit(Delta(remove=wanted[start : start + REMOVED_AT_ONCE]))
            done = min(start + REMOVED_AT_ONCE, len(wanted))
            on_event(Progress(stage="remove", done=done, total=len(wanted)))
        return RemoveResult(removed=wanted, refreshed=await self.refresh(on_event=on_event))

    async def cancel(self, ids: Sequence[str]) -> int:
        """Drop the queued or failed work on these documents; live versions stay. Return how many were dropped.

        Raises NotFound naming an id that is not known.
        """
        wanted = lookups.listed(ids)
        await self._check_known(wanted)
        return len(await self._store.cancel(wanted))

    async def retry(self, ids: Sequence[str] | None = None) -> int:
        """Queue failed documents, and the failed chunks of partial ones, again (all, or these); return how many."""
        wanted = None if ids is None else lookups.listed(ids)
        await self._check_known(wanted or ())
        return await self._store.retry(wanted)

    async def refresh(
        self, names: Sequence[str] = (), *, rebuild: bool = False, on_event: EventSink = ignore_event
    ) -> RefreshResult:
        """Bring up to date what is derived: summaries, vectors, and each derivation that is kept or named here.

        What is named is kept from then on, with all it needs: `add` and `remove` bring it up to date, too. With
        `rebuild` these are made anew, or without names all that is kept, full text and links among it; what was
        imported stays as it came. Where the budget is spent or a model is gone, the report says so, and the rest is
        left for the next time. Raises NotFound for an unknown name.
        """
        run = Run(self._components)
        if rebuild and not names:
            await self._store.rebuild_text_index()
        report = await self._refreshed(run.parts, on_event, Scope(names=lookups.listed(names), rebuild=rebuild))
        return replace(report, usage=run.parts.models.meter.rows())

    async def plan(self, names: Sequence[str] = (), *, rebuild: bool = False) -> tuple[DerivationState, ...]:
        """Return what `refresh` would bring up to date, or make anew, and what it would cost; nothing is changed."""
        return await state.plan(
            self._components, self._asker.needs, Scope(names=lookups.listed(names), rebuild=rebuild)
        )

    async def drop(self, names: Sequence[str]) -> tuple[str, ...]:
        """Keep these derivations, and those that need them, no longer; return which were dropped."""
        async with self._deriving:
            return await drop(self._components, lookups.listed(names))

    async def reembed(self, on_event: EventSink = ignore_event) -> int:
        """Compute every vector with the embedder now set, beside the old ones, and swap; return how many."""
        embedder = self._components.embedder
        async with self._turn(self._components):
            await self._store.begin_reembedding(embedder.identity, embedder.dimension)
            computed = await embed_stale(self._store, embedder, on_event)
            await self._store.finish_reembedding(embedder.identity)
        await self._refreshed(self._components, on_event, Scope(with_derivations=False))
        return computed

    async def purge(self) -> int:
        """Drop replies no live document needs and other leftovers; return rows dropped."""
        return await self._store.purge()

    # ---- answers out

    async def query(self, query: str | Query, **options: Any) -> Answer:
        """Answer a question; `options` are fields of Query. The trace says how the answer came about.

        Raises Stale, before anything is asked, where the strategy needs what has not been made: the remedy names the
        command and its cost.
        """
        return await self._asker.answer(await self._ready(query, options))

    async def stream(self, query: str | Query, **options: Any) -> AsyncGenerator[AnswerPiece, None]:
        """Yield an answer in pieces while it is written; the last piece has no text and holds the whole answer."""
        asked = await self._ready(query, options)
        async with aclosing(stream(partial(self._asker.answer, asked))) as pieces:
            async for piece in pieces:
                yield piece

    async def retrieve(self, query: str | Query, **options: Any) -> Evidence:
        """Return the evidence for a question: ids, scores and reasons, without an answer."""
        return await self._asker.evidence(await self._ready(query, options))

    async def compare(self, query: str | Query, strategies: Sequence[str] = (), **options: Any) -> Comparison:
        """Ask the same of several strategies, by default all that can be run, and return what each found and said.

        One that fails is told of with its reason; raises NotFound for a strategy that does not exist.
        """
        return await self._comparer.compare(self._asked(query, options), lookups.listed(strategies))

    async def explain(
        self, query: str | Query, *, chunk: str = "", rank: int | None = None, **options: Any
    ) -> Explanation:
        """Return why chunks are among the evidence for a question: the one with this id or rank, else the first three.

        Raises NotFound for a chunk there is none of, and where the evidence does not go down to that rank.
        """
        asked = await self._ready(query, options)
        return await self._asker.read(asked, explaining(asked, chunk=chunk, rank=rank))

    async def usage(self, since: str = "", until: str = "") -> list[UsageRow]:
        """Return what models were asked and what it cost on the days from `since` to `until` (ISO dates, UTC)."""
        return await self._store.usage(since, until)

    async def prepare(
        self, query: str | Query, on_event: EventSink = ignore_event, **options: Any
    ) -> RefreshResult | None:
        """Make what the strategy of a query needs and lacks; None where it lacks nothing. Raises Stale where it cannot.

        A query with `auto_refresh` does so before it is asked.
        """
        strategy = strategy_named(self._asked(query, options).strategy)
        return await self._asker.needs.make(strategy, partial(self.refresh, on_event=on_event))

    async def _ready(self, query: str | Query, options: Mapping[str, Any]) -> Query:
        asked = self._asked(query, options)
        if asked.auto_refresh:
            await self.prepare(asked)
        return asked

    def _asked(self, query: str | Query, options: Mapping[str, Any]) -> Query:
        return asked_as(self._components.make_query, query, options)

    # ---- looking around

    async def search(self, text: str, k: int = 10) -> SearchResult:
        """Return passages that match words, by BM25, and entities by name; for people."""
        async with self._store.view() as view:
            return await lookups.search(view, text, k)

    async def documents(self) -> list[Document]:
        """Return every document, live, waiting or failed, ordered by id."""
        async with self._store.view() as view:
            return await view.documents()

    async def document(self, document_id: str) -> DocumentDetails:
        """Return one document with its chunks. Raises NotFound with near matches."""
        async with self._store.view() as view:
            return await lookups.document(view, document_id)

    async def chunk(self, chunk_id: str) -> ChunkFacts:
        """Return one chunk with everything it says. Raises NotFound."""
        async with self._store.view() as view:
            return await lookups.chunk(view, chunk_id)

    async def entity(self, name: str) -> EntityDetails:
        """Return what the index says about a name (or alias, or key). Raises NotFound with near matches."""
        async with self._store.view() as view:
            return await lookups.entity(view, name)

    async def relation(self, first: str, second: str) -> RelationDetails:
        """Return what the index says about two names together. Raises NotFound, naming what they do relate to."""
        async with self._store.view() as view:
            return await lookups.relation(view, first, second)

    async def report(self, report_id: str) -> ReportDetails:
        """Return a report on a community or aggregate by its id, or the beginning of it. Raises NotFound."""
        async with self._store.view() as view:
            return await reports.report(view, report_id)

    async def status(self) -> IndexStatus:
        """Return how much the index holds, what waits, and what is fresh, stale or missing of what is derived."""
        return await state.status(self._components, self._asker.needs)

    async def verify(self) -> list[str]:
        """Recompute every fold, link and index from the facts; return what differs, in words. Empty means sound."""
        return await self._store.verify()

    async def damage(self) -> list[str]:
        """Return what the database finds wrong with its files, in words: quicker than `verify`, which includes it."""
        return await self._store.damage()

    async def dump(self) -> AsyncIterator[str]:
        """Yield the canonical state as JSON lines: equal documents give equal bytes, whatever their history."""
        async with self._store.view() as view:
            async for line in view.dump():
                yield line

    async def _check_known(self, ids: Sequence[str]) -> None:
        async with self._store.view() as view:
            await lookups.check_known(view, ids)

    async def _finish(self, taken: EnqueueResult, on_event: EventSink, run: Run) -> AddResult:
        """Work through the queue, refresh, and report."""
        parts, handed_in = run.parts, {*taken.added, *taken.updated}
        await self._readiness.make_sure_of_waiting(self._store, parts.models, parts.ingest_config.extractor)
        work = await work_through(handed_in, self._store, parts.ingest_config, self._working, on_event)
        refreshed = await self._refreshed(parts, on_event, Scope(with_derivations=work.stopped is None))
        async with self._store.view() as view:
            finished = await view.documents(sorted(handed_in | work.status_by_document.keys()))
            counts = await view.counts()
        return run.report(taken, work, refreshed, finished=finished, counts=counts, notes=self._readiness.notes)

    async def _refreshed(self, parts: Components, on_event: EventSink, scope: Scope) -> RefreshResult:
        await self._store.wipe()
        async with self._turn(parts):
            return await bring_up_to_date(parts, on_event, scope)

    @asynccontextmanager
    async def _turn(self, parts: Components) -> AsyncIterator[None]:
        async with self._deriving, turn_to_derive(parts.store, parts.models):  # so that no two compute the same
            yield
