"""Documents of an imported graph: each is parsed, chunked and committed with its recorded entities and relations.

They bypass the queue, whose workers use the extractor of the settings. An import that was cut short is repeated; it
skips the documents that are already in the index.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from quipu.errors import QuipuError
from quipu.ingest.documents import (
    ChangeStatus,
    ChunkedDocument,
    IngestConfig,
    change_status,
    content_hash,
    extractor_input,
    indexed_documents,
    read_document,
)
from quipu.ingest.extraction import chunk_facts
from quipu.ingest.graph_import.extractor import ImportedExtractor, identity_of, split_by_chunk
from quipu.model.delta import ChunkFacts, Delta, DocumentFacts
from quipu.model.derivation import IMPORTED_GRAPH
from quipu.model.document import SourceDocument
from quipu.model.event import EventSink, Progress
from quipu.model.imported_graph import ImportedChunk, ImportedExtraction, ImportedGraph
from quipu.ports.store import Store

BATCH_SIZE = 32  # documents per commit


@dataclass(slots=True)
class ImportedDocuments:
    """What happened to the documents of an imported graph; `failed` are (id, reason)."""

    n_added: int = 0
    n_updated: int = 0
    n_unchanged: int = 0
    n_chunks: int = 0
    failed: tuple[tuple[str, str], ...] = ()


async def import_documents(
    graph: ImportedGraph, store: Store, config: IngestConfig, on_event: EventSink
) -> ImportedDocuments:
    """Commit the new and changed documents of a graph, each with its recorded extraction.

    If the graph has communities, the same commits drop the mark that communities were adopted: they are adopted after
    this.
    """
    result = ImportedDocuments()
    for start in range(0, len(graph.documents), BATCH_SIZE):
        batch = graph.documents[start : start + BATCH_SIZE]
        indexed_by_id = await indexed_documents(batch, store)
        facts: list[DocumentFacts] = []
        for source in batch:
            indexed, own_config = indexed_by_id.get(source.id), _config_for(source, graph, config)
            if change_status(indexed, source, own_config) is ChangeStatus.UNCHANGED:
                result.n_unchanged += 1
                continue
            try:
                facts.append(await _document_facts(source, graph.extractions.get(source.id), own_config))
            except QuipuError as error:
                result.failed += ((source.id, str(error)),)
                continue
            is_update = bool(indexed and indexed.version)
            result.n_updated += is_update
            result.n_added += not is_update
        if facts:
            await store.commit(Delta(publish=facts, drop=[IMPORTED_GRAPH] if graph.communities else []))
        result.n_chunks += sum(len(document.chunks) for document in facts)
        on_event(Progress(stage="import", n_done=start + len(batch), n_total=len(graph.documents)))
    return result


async def survey_documents(graph: ImportedGraph, store: Store, config: IngestConfig) -> ImportedDocuments:
    """Count the documents of a graph that are new, changed and unchanged; nothing is read and nothing is added."""
    result = ImportedDocuments()
    indexed_by_id = await indexed_documents(graph.documents, store)
    for source in graph.documents:
        indexed = indexed_by_id.get(source.id)
        if change_status(indexed, source, _config_for(source, graph, config)) is ChangeStatus.UNCHANGED:
            result.n_unchanged += 1
        elif indexed and indexed.version:
            result.n_updated += 1
        else:
            result.n_added += 1
    return result


def _config_for(source: SourceDocument, graph: ImportedGraph, config: IngestConfig) -> IngestConfig:
    """Return a configuration whose extractor knows this document only, so that other documents do not change it."""
    recording = graph.extractions.get(source.id)
    recordings = {source.id: recording} if recording else {}
    return replace(config, extractor=ImportedExtractor(recordings, identity_of(recording)))


async def _document_facts(
    source: SourceDocument, recording: ImportedExtraction | None, config: IngestConfig
) -> DocumentFacts:
    document = await read_document(source, config)
    return DocumentFacts(
        id=source.id,
        title=document.parsed.title,
        content_hash=content_hash(source, config),
        chunks=tuple(await asyncio.to_thread(_all_chunk_facts, document, recording)),
        source=source.source,
        media_type=source.media_type,
        metadata=document.parsed.metadata,
        text=document.parsed.text,
        original=source.content if config.keep_originals else None,
    )


def _all_chunk_facts(document: ChunkedDocument, recording: ImportedExtraction | None) -> Iterator[ChunkFacts]:
    """Yield each chunk with its part of what was recorded of the document."""
    recording = recording or ImportedExtraction(document=document.source.id)
    inputs = [extractor_input(chunk) for chunk in document.chunks]
    extractions = split_by_chunk(recording, inputs, tuple(_own_chunks(recording.chunks, document)))
    return map(chunk_facts, document.chunks, extractions)


def _own_chunks(imported_chunks: Sequence[ImportedChunk], document: ChunkedDocument) -> Iterator[Sequence[int]]:
    """Yield, for each chunk of another system, the indices of the chunks with some of its text; all if there are none.

    Chunks of other systems overlap: the next one begins after the beginning of the last, maybe before its end.
    """
    text, start = document.parsed.text, 0
    starts, ends = [chunk.start for chunk in document.chunks], [chunk.end for chunk in document.chunks]
    for imported in imported_chunks:
        position = text.find(imported.text, start) if imported.text else -1
        position = text.find(imported.text) if position < 0 < start and imported.text else position
        if position < 0:
            yield range(len(starts))
            continue
        start = position + 1
        own = range(bisect_right(ends, position), bisect_left(starts, position + len(imported.text)))
        yield own or range(len(starts))
