"""Publishing: a recorded graph's documents with what is recorded of them, beside the queue: nothing waits for a model.

The queue's workers read whatever waits, with what the settings name. Here each document is read and committed with its
record at once; a run that is cut short is done again, and passes over what is there.
"""

import asyncio
from dataclasses import dataclass, replace

from quipu.errors import QuipuError
from quipu.ingest.chunkers.semantic import sentence_similarities
from quipu.ingest.documents import (
    ChangeStatus,
    IngestConfig,
    change_status,
    chunk_document,
    content_hash,
    parse_document,
)
from quipu.ingest.extraction import chunk_facts
from quipu.ingest.recorded.extractor import RecordedExtractor, identity_of
from quipu.model.delta import ChunkFacts, Delta, DocumentFacts
from quipu.model.derivation import ADOPTED
from quipu.model.document import SourceDocument
from quipu.model.event import EventSink, Progress
from quipu.model.extraction import ChunkInput
from quipu.model.graph import Chunk
from quipu.model.imported_graph import ImportedGraph
from quipu.ports.store import Store

AT_ONCE = 32  # documents committed together


@dataclass(slots=True)
class Published:
    """What became of the documents of a recorded graph; `failed` are (id, why)."""

    n_added: int = 0
    n_updated: int = 0
    n_unchanged: int = 0
    n_chunks: int = 0
    failed: tuple[tuple[str, str], ...] = ()


async def publish_graph(
    graph: ImportedGraph, store: Store, ingest_config: IngestConfig, on_event: EventSink
) -> Published:
    """Publish the documents that are not there as they stand, each with what is recorded of it.

    With the first goes the note that the graph's communities are those there are: they are to be adopted after this.
    """
    done = Published()
    for start in range(0, len(graph.documents), AT_ONCE):
        batch = graph.documents[start : start + AT_ONCE]
        async with store.view() as view:
            live = {document.id: document for document in await view.documents([source.id for source in batch])}
        facts: list[DocumentFacts] = []
        for source in batch:
            before, own = live.get(source.id), _recipe_of(source, graph, ingest_config)
            if change_status(before, source, own) is ChangeStatus.UNCHANGED:
                done.n_unchanged += 1
                continue
            try:
                facts.append(await _facts(source, own))
            except QuipuError as error:
                done.failed += ((source.id, str(error)),)
                continue
            done.n_updated += bool(before and before.version)
            done.n_added += not (before and before.version)
        if facts:
            await store.commit(Delta(publish=facts, drop=[ADOPTED] if graph.communities else []))
        done.n_chunks += sum(len(each.chunks) for each in facts)
        on_event(Progress(stage="import", done=start + len(batch), total=len(graph.documents)))
    return done


def _recipe_of(source: SourceDocument, graph: ImportedGraph, ingest_config: IngestConfig) -> IngestConfig:
    """Return how a document is read: by what is recorded of it alone, so that others may come without touching it."""
    recording = graph.recordings.get(source.id)
    known = {source.id: recording} if recording else {}
    return replace(ingest_config, extractor=RecordedExtractor(known, identity_of(recording)))


async def _facts(source: SourceDocument, ingest_config: IngestConfig) -> DocumentFacts:
    drafted = await asyncio.to_thread(parse_document, source, ingest_config)
    (likeness,) = await sentence_similarities([drafted.sentences], ingest_config.embedder)
    document = await asyncio.to_thread(chunk_document, drafted, likeness, ingest_config)
    inputs = [_input(chunk) for chunk in document.chunks]
    said: dict[int, ChunkFacts] = {}
    async for outcome in ingest_config.extractor.extract(inputs):
        if outcome.extraction is not None:
            said[outcome.index] = chunk_facts(document.chunks[outcome.index], outcome.extraction)
    return DocumentFacts(
        id=source.id,
        title=document.parsed.title,
        content_hash=content_hash(source, ingest_config),
        chunks=tuple(said[index] for index in range(len(inputs))),
        source=source.source,
        media_type=source.media_type,
        metadata=document.parsed.metadata,
    )


def _input(chunk: Chunk) -> ChunkInput:
    return ChunkInput(
        text=chunk.text,
        title=chunk.title,
        headings=chunk.headings,
        header=chunk.header,
        documents=(chunk.document_id,),
    )
