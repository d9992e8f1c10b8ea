"""Queue: new and changed documents are queued for the pipeline; unchanged ones are skipped; documents are removed."""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from quipu.errors import InvalidInput
from quipu.ingest.documents import ChangeStatus, IngestConfig, change_status, indexed_documents
from quipu.ingest.pipeline import MAX_GROUP_BYTES, MAX_JOBS
from quipu.ingest.sources import MAX_BYTES, FoundSource, SkippedFiles, UnreadableSource, checked_id, checked_metadata
from quipu.model.delta import Delta
from quipu.model.document import SourceDocument
from quipu.model.event import EventSink, Progress
from quipu.ports.store import Store
from quipu.text.unicode import find_text_with_surrogate

REMOVE_BATCH = 64  # documents in one commit

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class EnqueueResult:
    """What happened to the documents that were added, by id.

    `n_by_other_reader` counts the `unchanged` documents that were read by another extractor or with other settings.
    The key describes that reader.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    n_by_other_reader: Counter[str] = field(default_factory=Counter)
    unreadable: list[UnreadableSource] = field(default_factory=list)
    skipped: SkippedFiles | None = None


async def no_preparation() -> None:
    """Do nothing."""


async def enqueue_documents(
    sources: Iterable[FoundSource],
    store: Store,
    config: IngestConfig,
    on_event: EventSink,
    prepare: Callable[[], Awaitable[None]] = no_preparation,
    *,
    reread: bool = False,
) -> EnqueueResult:
    """Queue new and changed documents durably, a few megabytes per commit.

    Unchanged documents are skipped, also those that another extractor or other settings have read, unless `reread`.
    The chunking of each document is decided here and queued with it, so that whoever resumes the work uses the same.
    `prepare` is awaited before the first documents are queued; it is not called if nothing is queued. Raises
    InvalidInput for a document that could not be stored.
    """
    result = EnqueueResult()
    batches = _batches(sources, result)
    while batch := await asyncio.to_thread(next, batches, None):
        source_by_id = {source.id: source for source in batch}
        indexed_by_id = await indexed_documents(list(source_by_id.values()), store)
        queued: list[SourceDocument] = []
        for source in source_by_id.values():
            indexed = indexed_by_id.get(source.id)
            status = change_status(indexed, source, config)
            if indexed and status is ChangeStatus.READ_OTHERWISE and not reread:
                result.n_by_other_reader[indexed.extractor] += 1
                result.unchanged.append(source.id)
            elif status is ChangeStatus.UNCHANGED:
                result.unchanged.append(source.id)
            else:
                queued.append(replace(source, chunking=config.chunking_of(source)))
                (result.updated if indexed and indexed.version else result.added).append(source.id)
        if queued:
            await prepare()
            await store.commit(Delta(enqueue=queued))
        n_read = len(result.added) + len(result.updated) + len(result.unchanged)
        on_event(Progress(stage="read", n_done=n_read, n_total=n_read))
    return result


def _batches(sources: Iterable[FoundSource], result: EnqueueResult) -> Iterator[list[SourceDocument]]:
    """Yield documents, a few megabytes at a time; note unreadable sources and skipped files in `result`."""
    batch: list[SourceDocument] = []
    n_bytes = 0
    for source in sources:
        if isinstance(source, UnreadableSource):
            result.unreadable.append(source)
            continue
        if isinstance(source, SkippedFiles):
            result.skipped = source
            continue
        _check(source)
        batch.append(source)
        n_bytes += len(source.content)
        if n_bytes >= MAX_GROUP_BYTES or len(batch) == MAX_JOBS:
            yield batch
            batch, n_bytes = [], 0
    if batch:
        yield batch


def _check(source: SourceDocument) -> None:
    """Raise InvalidInput for a document that could not be named, stored or filtered later."""
    document_id = checked_id(source.id)
    checked_metadata(source.metadata)
    if text := find_text_with_surrogate([document_id, source.title, source.source, source.metadata]):
        raise InvalidInput(
            f"{text[:80]!r}, of the document {document_id[:80]!r}, holds a lone surrogate.",
            remedy="Decode it from its bytes again, with errors='replace'.",
        )
    if len(source.content) > MAX_BYTES:
        raise InvalidInput(f"The document {document_id!r} holds more than {MAX_BYTES:,} bytes.", remedy="Split it.")
    for key, value in source.metadata.items():
        has_nul = any("\0" in str(text) for text in (key, *(value if isinstance(value, tuple) else (value,))))
        if not key.strip() or has_nul or (isinstance(value, float) and not math.isfinite(value)):
            raise InvalidInput(
                f"The metadata {key!r} = {value!r} of {document_id!r} cannot be compared.",
                remedy="Give every field a name, only finite numbers, and texts without NUL.",
            )


async def remove_documents(ids: Sequence[str], store: Store, on_event: EventSink) -> None:
    """Remove documents, many in one commit; `resume` completes a removal that was interrupted."""
    if ids:
        await store.commit(Delta(enqueue_removal=ids))
    for start in range(0, len(ids), REMOVE_BATCH):
        await store.commit(Delta(remove=ids[start : start + REMOVE_BATCH]))
        on_event(Progress(stage="remove", n_done=min(start + REMOVE_BATCH, len(ids)), n_total=len(ids)))
    _log.info("removed %d documents", len(ids))
