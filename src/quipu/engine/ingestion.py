"""Ingestion: from sources to the result of an add: collect them, check the models, work through the queue, count."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from quipu.answer import copies_by_document
from quipu.engine.components import Components, Models
from quipu.errors import InvalidInput, OverBudget
from quipu.ingest.documents import DocumentReader, EnqueueResult, IngestConfig
from quipu.ingest.pipeline import PipelineResult, process_queue
from quipu.ingest.sources import FoundSource, checked_id, checked_metadata, find_sources
from quipu.model.chunking import Chunking
from quipu.model.document import Document, DocumentStatus, Metadata, SourceDocument
from quipu.model.event import EventSink, ignore_event
from quipu.model.graph import IndexCounts
from quipu.model.imported_graph import ImportedGraph
from quipu.model.results import AddResult, ImportResult, RefreshResult
from quipu.ports.ingest import Extractor
from quipu.ports.providers import Embedder
from quipu.ports.store import ReadView, Store
from quipu.text.formatting import format_count
from quipu.wrap.meter import annotate, span

if TYPE_CHECKING:
    from quipu.ingest.graph_import.documents import ImportedDocuments

_log = logging.getLogger(__name__)

POLL_S = 0.2  # how often to look whether another process has finished documents that were added here
_WAITING = (
    DocumentStatus.QUEUED,
    DocumentStatus.PARSING,
    DocumentStatus.EXTRACTING,
)  # documents a model may still have to read
_READABLE = (DocumentStatus.READY, DocumentStatus.PARTIAL)
_MAX_COPIES = 3  # named in a note
_UNFINISHED = (*_WAITING, DocumentStatus.REMOVING)

Source = str | Path | SourceDocument
GraphSource = str | Path | Mapping[str, object] | ImportedGraph


class ReadingOptions(TypedDict, total=False):
    """Options of `add` for reading documents."""

    chunking: Chunking | None
    reread: bool


def collect_sources(
    sources: Sequence[Source], components: Components, root: Path | None, metadata: Metadata | None
) -> Iterator[FoundSource]:
    """Return the documents among `sources` as they are, then the files found under the paths.

    Ids of files are paths below `root`, by default the folder that holds the index. `metadata` is added to each. Lists
    among the sources stand for their members. Raises InvalidInput for anything else and for invalid metadata.
    """
    sources = _flattened(sources)
    checked_metadata(metadata)
    files = find_sources(
        [Path(source) for source in sources if not isinstance(source, SourceDocument)],
        root=Path(root) if root else components.outer_folder,
        file_types=components.ingest_config.file_types,
        metadata=metadata,
        is_index=components.is_index,
    )
    documents = (_with_metadata(source, metadata) for source in sources if isinstance(source, SourceDocument))
    return chain(documents, files)


def _flattened(sources: Sequence[object]) -> list[Source]:
    flat: list[Source] = []
    for source in sources:
        if isinstance(source, (str, Path, SourceDocument)):
            flat.append(source)
        elif isinstance(source, (list, tuple)):
            flat += _flattened(source)
        else:
            raise InvalidInput(
                f"{repr(source)[:80]} is not a document.",
                remedy="Give paths, lists of paths or a SourceDocument; use add_text for a text.",
            )
    return flat


def _with_metadata(source: SourceDocument, metadata: Metadata | None) -> SourceDocument:
    return replace(source, metadata={**source.metadata, **metadata}) if metadata else source


@dataclass(slots=True)
class ModelCheck:
    """Checks once, before the first document is read, that the models answer; `notes` are for the user.

    With `store` and `embedder` it also checks that the embedder is the one of the index, and with `reader` that the
    processes which read documents can do so.
    """

    store: Store | None = None
    embedder: Embedder | None = None
    reader: DocumentReader | None = None
    notes: tuple[str, ...] = ()
    is_finished: bool = False

    async def check(self, models: Models, extractor: Extractor) -> None:
        """Check the models and the extractor, once. Raises Unavailable if documents cannot be read with them.

        Raises Mismatch if the vectors of the index come from another embedder, and OverBudget if the budget allows no
        call at all. If the budget ends during the check, nothing is raised and the check is not repeated: the documents
        stay in the queue until there is more budget.
        """
        if self.is_finished:
            return
        if self.store and self.embedder:
            await self.store.set_embedder(self.embedder.identity, self.embedder.dimension)
        if self.reader:
            await self.reader.check()
        try:
            self.notes = await models.check(models.meter)
            await extractor.check()
        except OverBudget:
            if not models.meter.rows():
                raise
        self.is_finished = True

    async def check_if_waiting(self, store: Store, models: Models, extractor: Extractor) -> None:
        """Run `check` if documents wait in the queue to be read."""
        if self.is_finished:
            return
        async with store.view() as view:
            jobs = (await view.counts("jobs")).jobs
        if any(jobs.get(status) for status in _WAITING):
            await self.check(models, extractor)


async def work_until_finished(
    document_ids: Collection[str], store: Store, ingest_config: IngestConfig, lock: asyncio.Lock, on_event: EventSink
) -> PipelineResult:
    """Work until the queue is empty and these documents are finished, here or by another process.

    `lock` lets one pipeline of an engine run at a time: it takes whatever is queued, for all callers that wait.
    """
    work = PipelineResult()
    while True:
        async with lock:
            with span("quipu.read"):
                await process_queue(store, ingest_config, work, on_event)
                annotate(n_chunks=work.n_chunks, n_extracted=work.n_extracted)
        if work.stopped is not None or work.status_by_document.keys() >= set(document_ids):
            return work
        async with store.view() as view:
            if not any(document.status in _UNFINISHED for document in await view.documents(sorted(document_ids))):
                return work
        await asyncio.sleep(POLL_S)


async def work_repeatedly(
    work: Callable[[EnqueueResult, "IngestRun"], Awaitable[AddResult]],
    components: Components,
    on_event: EventSink,
    *,
    poll_s: float,
    until_empty: bool,
) -> AddResult:
    """Run `work` whenever documents wait; return its last result that did anything, when it stops or at the end."""
    result = AddResult()
    while True:
        async with components.store.view() as view:
            is_waiting = bool((await view.counts("jobs")).n_waiting)
        if is_waiting:
            latest = await work(EnqueueResult(), IngestRun(components, on_event))
            result = latest if latest.n_resumed or latest.n_removed or latest.failed or latest.stopped else result
        if result.stopped or (until_empty and not is_waiting):
            return result
        await asyncio.sleep(poll_s)  # what waits now may be another worker's


def _of_each(documents: Iterable[Document], note: Callable[[Document], str]) -> tuple[tuple[str, str], ...]:
    """Return (document, note) for each document that was read and has the note."""
    notes = ((document.id, note(document)) for document in documents if document.status is not DocumentStatus.FAILED)
    return tuple((document, text) for document, text in notes if text)


class IngestRun:
    """One call of the engine that works on documents: `components` count what it costs, `seconds` how long it takes.

    Events sent to `on_event` tell what the call has spent by then.
    """

    def __init__(self, components: Components, on_event: EventSink = ignore_event) -> None:
        self.components = components.metered_by(components.models.meter.child(""))
        self.on_event = self.components.models.meter.counting(on_event)
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self._start

    def result(
        self,
        enqueued: EnqueueResult,
        work: PipelineResult,
        refreshed: RefreshResult,
        *,
        finished: Sequence[Document],
        counts: IndexCounts,
        notes: Sequence[str] = (),
    ) -> AddResult:
        """Return what happened to the documents of this call, and to those that waited in the queue before it."""
        own_ids = {*enqueued.added, *enqueued.updated}
        readable = {document.id for document in finished if document.status in _READABLE}
        unreadable = [
            Document(id=bad.id, title="", status=DocumentStatus.FAILED, source=bad.source, error=str(bad.error))
            for bad in enqueued.unreadable
        ]
        failed = [document for document in finished if document.status is DocumentStatus.FAILED]
        result = AddResult(
            n_added=len(readable.intersection(enqueued.added)),
            n_updated=len(readable.intersection(enqueued.updated)),
            n_unchanged=len(enqueued.unchanged),
            n_resumed=len(readable - own_ids),
            failed=(*unreadable, *failed),
            partial=tuple(document for document in finished if document.status is DocumentStatus.PARTIAL),
            n_chunks=work.n_chunks,
            n_extracted=work.n_extracted,
            n_reused=work.n_reused,
            n_dropped=work.n_dropped,
            n_removed=work.n_removed,
            n_embedded=refreshed.n_embedded,
            n_summarised=refreshed.n_summarised,
            summary_failures=refreshed.summary_failures,
            skipped=tuple((*kind, n) for kind, n in enqueued.skipped.n_by_reason.items()) if enqueued.skipped else (),
            assumed_encodings=_of_each(finished, lambda read: str(read.metadata.get("assumed_encoding") or "")),
            warnings=_of_each(finished, lambda read: read.warning),
            extractor=self.components.ingest_config.extractor.description,
            seconds=self.seconds,
            stopped=str(work.stopped or refreshed.stopped or ""),
            n_waiting=counts.n_waiting,
            usage=self.components.models.meter.rows(),
            notes=tuple(notes),
            n_other_extractor=enqueued.n_by_other_reader.total(),
            other_extractors=tuple(sorted(enqueued.n_by_other_reader)),
            extractors=tuple(counts.extractors.items()),
            derivations=refreshed.derivations,
        )
        _report(result)
        return result


def _report(result: AddResult) -> None:
    """Write counts to the log and to the open span."""
    n_failed = len(result.failed)
    annotate(n_added=result.n_added, n_updated=result.n_updated, n_unchanged=result.n_unchanged, n_failed=n_failed)
    _log.info(
        "added %d documents, updated %d, unchanged %d, failed %d: %d chunks, %.1f s",
        *(result.n_added, result.n_updated, result.n_unchanged, n_failed, result.n_chunks, result.seconds),
    )
    for document in (*result.failed, *result.partial):
        _log.warning("document %r is %s; `quipu docs` says why", document.id, document.status.value)
    if n_skipped := sum(n for *_, n in result.skipped):
        _log.warning("skipped %d files", n_skipped)
    if result.stopped:
        _log.warning("stopped early: %d documents wait", result.n_waiting)


async def import_sources(
    sources: Sequence[GraphSource],
    run: IngestRun,
    lease: AbstractAsyncContextManager[None],
    refresh: Callable[[], Awaitable[RefreshResult]],
    *,
    name: str,
    dry_run: bool,
) -> ImportResult:
    """Import the graph in `sources`, or with `dry_run` only say what importing it would do.

    Raises as `_read_sources` and `_import_graph`; then nothing is added.
    """
    graph = await _read_sources(sources, name)
    return await _plan(graph, run) if dry_run else await _import_graph(graph, run, lease, refresh)


async def _read_sources(sources: Sequence[GraphSource], name: str) -> ImportedGraph:
    """Return the graph in files and folders, and in custom graphs, which get the `name`; or one that has been read.

    Raises NotFound for a missing path, and InvalidInput with the place for what cannot be read.
    """
    from quipu.ingest.graph_import import custom_graph_from, read_graph

    if len(sources) == 1 and isinstance(sources[0], ImportedGraph):
        return sources[0]
    readable = [
        Path(source) if isinstance(source, str | Path) else custom_graph_from(source, name) for source in sources
    ]
    return await asyncio.to_thread(read_graph, readable, checked_id(name))


async def _plan(graph: ImportedGraph, run: IngestRun) -> ImportResult:
    """Return what importing a graph would do; nothing is added."""
    from quipu.ingest.graph_import.documents import survey_documents

    components = run.components
    counts = await survey_documents(graph, components.store, components.ingest_config)
    result = _import_result(graph, counts, RefreshResult(), run)
    return replace(
        result, is_dry_run=True, n_communities=len(graph.communities), n_reports=len(graph.reports), seconds=run.seconds
    )


async def _import_graph(
    graph: ImportedGraph,
    run: IngestRun,
    lease: AbstractAsyncContextManager[None],
    refresh: Callable[[], Awaitable[RefreshResult]],
) -> ImportResult:
    """Publish the documents of a graph, import its communities under the derivation `lease`, then `refresh`.

    Raises InvalidInput where communities come without documents and none of their entities is in the index, and
    Mismatch where the vectors of the index come from another embedder.
    """
    from quipu.derive.imported_communities import (
        CommunityImportResult,
        import_communities,
        is_imported,
    )
    from quipu.ingest.graph_import.documents import import_documents

    components = run.components
    await components.store.set_embedder(components.embedder.identity, components.embedder.dimension)
    published = await import_documents(graph, components.store, components.ingest_config, run.on_event)
    imported = CommunityImportResult()
    if graph.communities and not await is_imported(graph, components.store):
        async with lease:  # communities that are detected meanwhile would replace these
            imported = await import_communities(components.derivation_context(run.on_event), graph)
        if not (imported.n_communities or graph.documents):
            raise InvalidInput(
                f"{graph.communities[0].location}: none of the entities in the communities is in the index.",
                remedy="Import the documents they come from first, or in the same call.",
            )
    result = _import_result(graph, published, await refresh(), run)
    return replace(
        result,
        n_communities=imported.n_communities,
        n_reports=imported.n_reports,
        unknown=imported.unknown,
    )


def _import_result(
    graph: ImportedGraph, counts: "ImportedDocuments", refreshed: RefreshResult, run: IngestRun
) -> ImportResult:
    size = graph.size()
    return ImportResult(
        n_added=counts.n_added,
        n_updated=counts.n_updated,
        n_unchanged=counts.n_unchanged,
        failed=counts.failed,
        n_chunks=counts.n_chunks,
        n_entities=size.n_entities,
        n_relations=size.n_relations,
        n_claims=size.n_claims,
        omissions=graph.omissions,
        refreshed=refreshed,
        seconds=run.seconds,
        usage=run.components.models.meter.rows(),
    )


async def copies_notes(documents: Sequence[Document], view: ReadView) -> tuple[str, ...]:
    """Return a note where the whole text of some of these documents is that of others; answers show it once."""
    copies = await copies_by_document(documents, view)
    if not copies:
        return ()
    pairs = [f"{name} ({others[0]})" for name, others in sorted(copies.items())]
    more = f" and {len(pairs) - _MAX_COPIES:,} more" if len(pairs) > _MAX_COPIES else ""
    verb = "has" if len(pairs) == 1 else "have"
    return (
        f"{format_count(len(pairs), 'document')} {verb} the text of another: {', '.join(pairs[:_MAX_COPIES])}{more}.",
    )
