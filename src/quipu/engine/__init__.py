"""Quipu, the engine: documents in, cited answers out.

add      parse → chunk → extract → Delta(facts) → store.commit → refresh(derivations)
query    strategy(query, view, tools) → Evidence → pack → render → generate → cite → Answer
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, Unpack

from quipu.derive.derivation import embed_stale
from quipu.engine.answering import answer_question, explain_evidence, find_evidence, find_passages, stream_answer
from quipu.engine.backups import Backups
from quipu.engine.comparison import compare_strategies
from quipu.engine.components import Components, ModelAccess
from quipu.engine.conversations import Conversations
from quipu.engine.duplicates import DuplicateFinder
from quipu.engine.edits import Edits
from quipu.engine.graph_export import GraphExports
from quipu.engine.ingestion import (
    GraphSource,
    IngestRun,
    ModelCheck,
    ReadingOptions,
    collect_sources,
    copies_notes,
    import_sources,
    work_repeatedly,
    work_until_finished,
)
from quipu.engine.lookups import Lookups, unique_ids
from quipu.engine.mirroring import Mirrors
from quipu.engine.refresh import RefreshScope, derivation_lease, drop_derivations, refresh_index
from quipu.engine.status import DerivationStates, plan_refresh, read_status
from quipu.ingest.documents import EnqueueResult, enqueue_documents, no_preparation, remove_documents
from quipu.ingest.sources import FoundSource, text_source
from quipu.model.answer import Answer, AnswerPiece, Comparison, PieceSink
from quipu.model.delta import Delta
from quipu.model.derivation import DerivationState
from quipu.model.document import Metadata, SourceDocument
from quipu.model.event import EventSink, ignore_event
from quipu.model.evidence import Evidence, Explanation
from quipu.model.query import Query
from quipu.model.results import (
    AddResult,
    EnqueuedDocuments,
    ImportResult,
    IndexStatus,
    RefreshResult,
    RemoveResult,
    RetrievedPassage,
)
from quipu.model.tuning import TuningResult
from quipu.model.usage import Estimate, UsageRow
from quipu.model.validity import as_days
from quipu.retrieve import strategy_named
from quipu.retrieve.explanation import ChunkChoice
from quipu.retrieve.question import QueryOptions, build_query
from quipu.wrap.meter import span

__all__ = ["Components", "Quipu"]


class Quipu(Lookups, GraphExports, Mirrors, Backups, ModelAccess):
    """One knowledge base. Use it as an async context manager; every method may be called from many tasks at once."""

    def __init__(self, components: Components) -> None:
        self._components, self._store, self._states = components, components.store, DerivationStates(components)
        self._working, self._deriving = asyncio.Lock(), asyncio.Lock()
        self._model_check = ModelCheck(components.store, components.embedder, components.ingest_config.reader)
        self.conversations = Conversations(components=components, stream_answer=self.stream)
        self.edits = Edits(components, self._lease, DuplicateFinder(components.topology))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store and the models. A call that is still running gives its unfinished work back when it ends."""
        await self._components.close_past()
        await self._components.models.close()
        await self._store.close()

    # ---- documents in

    async def add(
        self,
        /,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        metadata: Metadata | None = None,
        max_cost: float = 0.0,
        on_event: EventSink = ignore_event,
        **options: Unpack[ReadingOptions],
    ) -> AddResult:
        """Add files, folders or documents, and finish the queue; return when all of them can be queried.

        A file's id is its path below `root`, by default the folder that holds the index: adding a changed file updates
        its document, and adding the same file again costs nothing. A file that cannot be read is part of the result,
        not an error. `options` are `chunking`, which overrides rules and settings, and `reread`: documents that were
        read with another model or other settings stay as they are without it. At `max_cost` (money; 0: no limit), as
        at the budget, work stops and is kept, and the result says so. Raises NotFound for a path that does not exist.
        """
        run = IngestRun(self._components.within(max_cost), on_event)
        return await self._add_found(collect_sources(sources, self._components, root, metadata), run, **options)

    async def _add_found(self, documents: Iterable[FoundSource], run: IngestRun, **options: Any) -> AddResult:
        with span("quipu.add"):
            return await self._finish(await self._enqueue(documents, run, **options), run)

    async def enqueue(
        self,
        /,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        metadata: Metadata | None = None,
        **options: Unpack[ReadingOptions],
    ) -> EnqueuedDocuments:
        """Put files, folders or documents into the queue, durably, and return at once; `resume` works through it.

        The arguments are those of `add`. A file that cannot be read is part of the result. No model is asked.
        """
        documents = collect_sources(sources, self._components, root, metadata)
        enqueued = await self._enqueue(documents, IngestRun(self._components), asks_model=False, **options)
        return EnqueuedDocuments(
            added=tuple(enqueued.added),
            updated=tuple(enqueued.updated),
            unchanged=tuple(enqueued.unchanged),
            unreadable=tuple((bad.id, str(bad.error)) for bad in enqueued.unreadable),
        )

    async def _enqueue(
        self, documents: Iterable[FoundSource], run: IngestRun, /, asks_model: bool = True, **options: Any
    ) -> EnqueueResult:
        config = run.components.ingest_config.with_chunking(options.get("chunking"))
        check = partial(self._model_check.check, run.components.models, config.extractor)
        prepare, reread = check if asks_model else no_preparation, options.get("reread", False)
        return await enqueue_documents(documents, self._store, config, run.on_event, prepare, reread=reread)

    async def estimate(
        self,
        /,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        metadata: Metadata | None = None,
        n_sample: int = 0,
        on_event: EventSink = ignore_event,
        **options: Unpack[ReadingOptions],
    ) -> Estimate:
        """Return what `add` would cost with a language model: calls, tokens, money and time, each with a range.

        Documents are read and cut, but nothing is added. With `n_sample`, the model first reads that many chunks, which
        is paid for; the replies are cached. `options` are `chunking` and `reread`, as in `add`.
        """
        from quipu.engine.estimation import estimate_add

        meter = self._components.models.meter.child()
        components, on_event = self._components.metered_by(meter), meter.counting(on_event)
        documents = collect_sources(sources, self._components, root, metadata)
        return await estimate_add(documents, n_sample, components=components, on_event=on_event, **options)

    async def tune(
        self,
        /,
        *sources: str | Path | SourceDocument,
        root: Path | None = None,
        on_event: EventSink = ignore_event,
        **sizes: Any,
    ) -> TuningResult:
        """Suggest an ontology for documents like these, or like the documents of the index; nothing is added.

        The result holds the text of an ontology file. `sizes` are `n_sample`, the number of chunks to learn from (12),
        and `n_compare`, the number of other chunks to compare on (2). With `dry_run=True` no model is asked, and the
        result holds the cost.
        """
        from quipu.engine.tuning import SampleSizes, tune

        documents = collect_sources(sources, self._components, root, None) if sources else None
        return await tune(documents, SampleSizes.of(sizes), self._components, on_event)

    async def add_text(
        self,
        text: str,
        *,
        id: str | None = None,
        title: str = "",
        metadata: Metadata | None = None,
        media_type: str = "text/markdown",
        on_event: EventSink = ignore_event,
    ) -> AddResult:
        """Add a text. Without an id, its id is made from its content: a changed text is then another document."""
        source = text_source(text, id=id, title=title, metadata=metadata or {}, media_type=media_type)
        return await self.add(source, on_event=on_event)

    async def import_graph(
        self, *sources: GraphSource, name: str = "graph", dry_run: bool = False, on_event: EventSink = ignore_event
    ) -> ImportResult:
        """Add documents with the graph that another system extracted: files, folders, or data as LightRAG's custom_kg.

        Communities and reports replace those of the index. Importing the same again changes nothing, and completes an
        interrupted import. Raises NotFound for a missing path, and InvalidInput, with the place, for what cannot be
        read; then nothing is added. `name` begins the ids of documents that are made of data without passages.
        """
        run = IngestRun(self._components, on_event)
        refresh = partial(self._refresh, run, RefreshScope())
        return await import_sources(sources, run, self._lease(run.components), refresh, name=name, dry_run=dry_run)

    async def resume(self, on_event: EventSink = ignore_event, *, max_cost: float = 0.0) -> AddResult:
        """Work through the queue, including work that a dead process left unfinished; `max_cost` is that of `add`."""
        return await self._finish(EnqueueResult(), IngestRun(self._components.within(max_cost), on_event))

    async def work(
        self, on_event: EventSink = ignore_event, *, poll_s: float = 2, until_empty: bool = False
    ) -> AddResult:
        """Read documents that others queue, as one of any number of workers, until this is cancelled.

        All workers share one budget, and the number of calls at once. This looks for documents every `poll_s` seconds
        and returns its last result when work stops; with `until_empty`, as soon as none waits.
        """
        async with self._components.sharing_limits() as components:
            return await work_repeatedly(self._finish, components, on_event, poll_s=poll_s, until_empty=until_empty)

    async def remove(self, ids: Sequence[str], on_event: EventSink = ignore_event) -> RemoveResult:
        """Remove documents with all facts that no other document states. Raises NotFound naming unknown ids."""
        ids = await self._known_documents(ids)
        await remove_documents(ids, self._store, on_event)
        refreshed = await self.refresh(on_event=on_event)
        return RemoveResult(removed=ids, refreshed=refreshed, is_kept=self._components.keeps_history)

    async def cancel(self, ids: Sequence[str]) -> int:
        """Drop the queued or failed jobs of these documents; return how many. Raises NotFound naming an unknown id."""
        ids = await self._known_documents(ids)
        return len((await self._store.commit(Delta(cancel=ids))).cancelled)

    async def retry(self, ids: Sequence[str] | None = None) -> int:
        """Queue failed documents (None: all) and chunks again, but no file that a parser refused; return how many."""
        ids = None if ids is None else await self._known_documents(ids)
        return (await self._store.commit(Delta(retry=ids))).n_retried

    async def refresh(
        self,
        names: Sequence[str] = (),
        *,
        rebuild: bool = False,
        on_event: EventSink = ignore_event,
        max_cost: float = 0.0,
    ) -> RefreshResult:
        """Bring derived data up to date: summaries, vectors, and every derivation that exists or is named here.

        A named derivation and all it needs are computed, and from then on `add` and `remove` keep them up to date. With
        `rebuild` the named derivations are computed from the start; without names, everything is, with full text and
        links, but imported data stays as it came. If the budget or `max_cost` (money; 0: no limit) is spent or a model
        does not answer, the result says so, and the next refresh does the rest. Raises NotFound for an unknown name.
        """
        return await self._refreshed(IngestRun(self._components.within(max_cost), on_event), names, rebuild=rebuild)

    async def _refreshed(self, run: IngestRun, names: Sequence[str], *, rebuild: bool = False) -> RefreshResult:
        if rebuild and not names:
            await self._store.commit(Delta(rebuild_text=True))
        result = await self._refresh(run, RefreshScope(names=unique_ids(names), rebuild=rebuild))
        return replace(result, usage=run.components.models.meter.rows())

    async def plan(self, names: Sequence[str] = (), *, rebuild: bool = False) -> tuple[DerivationState, ...]:
        """Return what `refresh` with these arguments would compute, and the cost of it; nothing is changed."""
        scope = RefreshScope(names=unique_ids(names), rebuild=rebuild)
        return await plan_refresh(self._components, self._states, scope)

    async def drop(self, names: Sequence[str]) -> tuple[str, ...]:
        """Drop these derivations and those that need them; return the names of what was dropped."""
        async with self._deriving:
            return await drop_derivations(self._components, unique_ids(names))

    async def reembed(self, on_event: EventSink = ignore_event) -> int:
        """Compute every vector with the embedder of the settings, beside the old ones, then swap; return how many."""
        run = IngestRun(self._components, on_event)
        embedder = run.components.bulk_embedder or run.components.embedder
        async with self._lease(run.components), self._store.reembedding(embedder.identity, embedder.dimension):
            n_embedded = await embed_stale(self._store, embedder, run.on_event)
        await self._refresh(run, RefreshScope(with_derivations=False))
        return n_embedded

    # ---- answers out

    async def query(self, /, query: str | Query, **options: Unpack[QueryOptions]) -> Answer:
        """Answer a question; `options` are those of QueryOptions. The trace says how the answer was found.

        At `max_cost`, as at the budget, no more calls are made: passages are quoted, and a note says why. Without
        `may_fall_back`, OverBudget is raised.
        Raises Stale, before any model is asked, where the strategy needs a derivation that is missing: the remedy names
        the command that makes it, and the cost. Raises Overloaded where `max_waiting_questions` wait already.
        """
        return await self._answer(*self._query(query, options))

    async def stream(self, /, query: str | Query, **options: Unpack[QueryOptions]) -> AsyncGenerator[AnswerPiece, None]:
        """Yield an answer in pieces while it is made: stages, text, and in the last piece the whole answer."""
        async with aclosing(stream_answer(partial(self._answer, *self._query(query, options)))) as pieces:
            async for piece in pieces:
                yield piece

    async def retrieve(self, /, query: str | Query, **options: Unpack[QueryOptions]) -> Evidence:
        """Return the evidence for a question: ids, scores and reasons, without an answer."""
        return await find_evidence(*await self._prepared(query, options), self._states)

    async def passages(self, /, query: str | Query, **options: Unpack[QueryOptions]) -> list[RetrievedPassage]:
        """Return the passages that a strategy ranks for a question, best first, each with its text and document."""
        return await find_passages(*await self._prepared(query, options), self._states)

    async def compare(
        self, /, query: str | Query, strategies: Sequence[str] = (), **options: Unpack[QueryOptions]
    ) -> Comparison:
        """Ask several strategies the same question, by default all that can run, and return what each found.

        A strategy that fails is listed with its error; all of them share `max_cost`. Raises InvalidInput for an unknown
        strategy.
        """
        query, components = self._query(query, options)
        answer = partial(self._answer, components=components)
        return await compare_strategies(query, unique_ids(strategies), answer, components, self._states)

    async def explain(
        self, /, query: str | Query, *, chunk: str = "", rank: int | None = None, **options: Unpack[QueryOptions]
    ) -> Explanation:
        """Return why chunks are in the evidence for a question: the one with this id or rank, else the first three.

        Raises NotFound for an unknown chunk and for a rank beyond the evidence, InvalidInput where both are given.
        """
        choice = ChunkChoice(chunk=chunk, rank=rank)
        return await explain_evidence(*await self._prepared(query, options), self._states, choice)

    async def usage(self, since: str = "", until: str = "") -> list[UsageRow]:
        """Return the calls of models and their cost from `since` to `until` (UTC); raises InvalidInput for no date."""
        return await self._store.usage(*as_days(since, until))

    async def prepare(
        self, /, query: str | Query, on_event: EventSink = ignore_event, **options: Unpack[QueryOptions]
    ) -> RefreshResult | None:
        """Compute the missing derivations that the strategy of a query needs; None if none is missing.

        A query with `auto_refresh` does this before it is asked. Raises Stale where they could not be made.
        """
        return await self._prepare(*self._query(query, options), on_event)

    async def _prepare(
        self, query: Query, components: Components, on_event: EventSink = ignore_event
    ) -> RefreshResult | None:
        refresh = partial(self._refreshed, IngestRun(components, on_event))
        return await self._states.make_missing(strategy_named(query.strategy), refresh)

    async def _answer(self, query: Query, components: Components, on_piece: PieceSink | None = None) -> Answer:
        if query.auto_refresh:
            await self._prepare(query, components)
        return await answer_question(query, components, self._states, on_piece)

    async def _prepared(self, query: str | Query, options: QueryOptions) -> tuple[Query, Components]:
        """Return the query, after the derivations it needs were made if it asks for that, and what it may use."""
        prepared, components = self._query(query, options)
        if prepared.auto_refresh:
            await self._prepare(prepared, components)
        return prepared, components

    def _query(self, query: str | Query, options: QueryOptions) -> tuple[Query, Components]:
        prepared = build_query(self._components.make_query, query, options)
        return prepared, self._components.within(prepared.max_cost)

    # ---- looking around

    async def status(self) -> IndexStatus:
        """Return the size of the index, its queue, and which derived data is fresh, stale or missing."""
        return await read_status(self._components, self._states)

    async def _finish(self, enqueued: EnqueueResult, run: IngestRun) -> AddResult:
        """Work through the queue, refresh, and return the result."""
        own_ids, components, config = {*enqueued.added, *enqueued.updated}, run.components, run.components.ingest_config
        await self._model_check.check_if_waiting(self._store, components.models, config.extractor)
        work = await work_until_finished(own_ids, self._store, config, self._working, run.on_event)
        if work.stopped is None and components.merge_duplicates_above:
            await self.edits.merge_duplicates(components.merge_duplicates_above)
        refreshed = await self._refresh(run, RefreshScope(with_derivations=work.stopped is None))
        async with self._store.view() as view:
            finished = await view.documents(sorted(own_ids | work.status_by_document.keys()))
            notes = (*self._model_check.notes, *await copies_notes(finished, view))
            counts = await view.counts("jobs", "extractors")
        return run.result(enqueued, work, refreshed, finished=finished, counts=counts, notes=notes)

    async def _refresh(self, run: IngestRun, scope: RefreshScope) -> RefreshResult:
        await self._components.drop_past()
        await self._store.purge(text_only=True)
        async with self._lease(run.components):
            return await refresh_index(run.components, run.on_event, scope)

    @asynccontextmanager
    async def _lease(self, components: Components) -> AsyncIterator[None]:
        async with self._deriving, derivation_lease(components.store, components.models):
            yield
