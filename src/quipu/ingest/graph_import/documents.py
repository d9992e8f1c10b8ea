"""Documents of an imported graph: each is parsed, chunked and committed with its recorded entities and relations.

They bypass the queue, whose workers use the extractor of the settings. An import that was cut short is repeated; it
skips the documents that are already in the index.
"""

from dataclasses import dataclass, replace

from quipu.errors import QuipuError
from quipu.ingest.documents import (
    ChangeStatus,
    IngestConfig,
    change_status,
    content_hash,
    extractor_input,
    indexed_documents,
    read_document,
)
from quipu.ingest.extraction import chunk_facts
from quipu.ingest.graph_import.extractor import ImportedExtractor, identity_of
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.derivation import IMPORTED_GRAPH
from quipu.model.document import SourceDocument
from quipu.model.event import EventSink, Progress
from quipu.model.imported_graph import ImportedGraph
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
                facts.append(await _document_facts(source, own_config))
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


def _config_for(source: SourceDocument, graph: ImportedGraph, config: IngestConfig) -> IngestConfig:
    """Return a configuration whose extractor knows this document only, so that other documents do not change it."""
    recording = graph.extractions.get(source.id)
    recordings = {source.id: recording} if recording else {}
    return replace(config, extractor=ImportedExtractor(recordings, identity_of(recording)))


async def _document_facts(source: SourceDocument, config: IngestConfig) -> DocumentFacts:
    document = await read_document(source, config)
    inputs = [extractor_input(chunk, (chunk.document_id,)) for chunk in document.chunks]
    results = [result async for result in config.extractor.extract(inputs)]
    return DocumentFacts(
        id=source.id,
        title=document.parsed.title,
        content_hash=content_hash(source, config),
        chunks=tuple(
            chunk_facts(document.chunks[result.index], result.extraction) for result in results if result.extraction
        ),
        source=source.source,
        media_type=source.media_type,
        metadata=document.parsed.metadata,
        text=document.parsed.text,
        original=source.content if config.keep_originals else None,
    )
