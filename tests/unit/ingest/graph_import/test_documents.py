"""A recorded graph's documents are published with their records, once."""

from dataclasses import replace
from pathlib import Path

from quipu.ingest.documents import IngestConfig
from quipu.ingest.graph_import.documents import import_documents
from quipu.model.chunking import Chunking
from quipu.model.document import SourceDocument
from quipu.model.event import ignore_event
from quipu.model.extraction import ExtractedEntity, ExtractedRelation
from quipu.model.graph import RelationMention
from quipu.model.imported_graph import ImportedChunk, ImportedExtraction, ImportedGraph
from quipu.parse import FILE_TYPES, parse
from quipu.providers.local import ByteTokenizer
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from tests.unit.retrieve.fakes import WordEmbedder


class _Unasked:
    """The extractor of the settings, which has no part in an import."""

    identity = "unasked/1"
    description = "nobody"
    n_ahead = 0


def _graph(
    identity: str = "recorded/1 a", *, weight: float = 1.0, text: str = "Kober studied Linear B."
) -> ImportedGraph:
    source = SourceDocument(
        id="d1", title="Scripts", content=b"Kober studied Linear B.", media_type="text/markdown", source="d1"
    )
    recording = ImportedExtraction(
        document="d1",
        entities=(ExtractedEntity(name="Kober", type="Person", description="A classicist."),),
        relations=(ExtractedRelation(source="Kober", target="Linear B", description="studied", weight=weight),),
    )
    return ImportedGraph(identity=identity, documents=(source,), extractions={"d1": recording})


def _recipe() -> IngestConfig:
    return IngestConfig(
        parse=parse,
        file_types=FILE_TYPES,
        extractor=_Unasked(),  # type: ignore[arg-type]
        tokenizer=ByteTokenizer(),
        embedder=WordEmbedder(),
    )


async def _open(folder: Path) -> RelationalStore:
    store = RelationalStore(SqliteBackend(folder / "index.sqlite", busy_timeout_s=1), lease_s=60)
    await store.prepare()
    return store


async def test_entities_and_relations_are_those_recorded(tmp_path: Path) -> None:
    store = await _open(tmp_path)
    done = await import_documents(_graph(weight=2.5), store, _recipe(), ignore_event)
    assert (done.n_added, done.n_updated, done.n_unchanged, done.n_chunks, done.failed) == (1, 0, 0, 1, ())
    async with store.view() as view:
        (kober,) = await view.entities(["kober"])
        (relation,) = await view.relations(["kober -- linear b"])
        assert (kober.name, kober.type, kober.description) == ("Kober", "Person", "A classicist.")
        assert (relation.description, relation.weight) == ("studied", 2.5)
    await store.close()


async def test_the_same_again_does_nothing_and_another_record_is_an_update(tmp_path: Path) -> None:
    store = await _open(tmp_path)
    await import_documents(_graph(), store, _recipe(), ignore_event)
    again = await import_documents(_graph(), store, _recipe(), ignore_event)
    assert (again.n_added, again.n_updated, again.n_unchanged) == (0, 0, 1)
    other = await import_documents(_graph("recorded/1 b", weight=4.0), store, _recipe(), ignore_event)
    assert (other.n_added, other.n_updated, other.n_unchanged) == (0, 1, 0)
    async with store.view() as view:
        (relation,) = await view.relations(["kober -- linear b"])
        assert relation.weight == 4.0
    await store.close()


async def test_a_document_that_cannot_be_read_fails_alone(tmp_path: Path) -> None:
    store = await _open(tmp_path)
    empty = SourceDocument(id="d0", title="", content=b"", media_type="application/pdf", source="d0")
    graph = ImportedGraph(
        identity="recorded/1 a", documents=(empty, *_graph().documents), extractions=_graph().extractions
    )
    done = await import_documents(graph, store, _recipe(), ignore_event)
    assert done.n_added == 1
    assert [document for document, _ in done.failed] == ["d0"]
    await store.close()


async def test_a_document_more_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    store = await _open(tmp_path)
    await import_documents(_graph(), store, _recipe(), ignore_event)
    more = SourceDocument(id="d2", title="More", content=b"Evans dug.", media_type="text/markdown", source="d2")
    both = replace(_graph("recorded/1 b"), documents=(*_graph().documents, more))
    done = await import_documents(both, store, _recipe(), ignore_event)
    assert (done.n_added, done.n_updated, done.n_unchanged) == (1, 0, 1)
    await store.close()


async def test_what_comes_from_a_chunk_goes_to_the_chunks_with_its_text(tmp_path: Path) -> None:
    paragraphs = [f"Kober met Evans in year {year}, and they spoke about the signs of Linear B." for year in range(6)]
    source = SourceDocument(id="d1", title="", content="\n\n".join(paragraphs).encode(), source="d1")
    met = ExtractedRelation(source="Kober", target="Evans", description="met", weight=1.0)
    chunks = (
        ImportedChunk(text="\n\n".join(paragraphs[:3])),
        ImportedChunk(text="\n\n".join(paragraphs[2:5]), relations=(met,)),
        ImportedChunk(text=paragraphs[5], entities=(ExtractedEntity(name="Knossos", type="Place"),)),
        ImportedChunk(text="words that the document does not have", relations=(met,)),
    )
    recording = ImportedExtraction(document="d1", chunks=chunks)
    graph = ImportedGraph(identity="recorded/1 a", documents=(source,), extractions={"d1": recording})
    store = await _open(tmp_path)
    await import_documents(graph, store, replace(_recipe(), chunking=Chunking(max_tokens=32)), ignore_event)
    async with store.view() as view:
        own = await view.chunks(document_id="d1")
        relations = await view.mentions(RelationMention, [chunk.id for chunk in own])
    assert len(own) == 6
    assert sorted(chunk.ordinal for chunk in own if relations.get(chunk.id)) == [0, 2]
    await store.close()
