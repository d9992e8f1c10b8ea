"""A working directory of LightRAG becomes an imported graph: each part belongs to the chunks it came from."""

import json
from pathlib import Path

import pytest

from quipu.errors import InvalidInput
from quipu.ingest.graph_import import read_graph
from quipu.ingest.graph_import.lightrag import CHUNKS_FILE, GRAPH_FILE
from quipu.model.extraction import ExtractedEntity
from quipu.model.graph import UNKNOWN_TYPE
from quipu.model.imported_graph import ImportedChunk
from tests.unit.ingest.graph_import.lightrag_directory import TEXT, VENTRIS, write_directory, write_graph, write_store


def _chunks(folder: Path) -> tuple[ImportedChunk, ...]:
    return read_graph([folder]).extractions["doc-1"].chunks


def test_documents_have_the_id_the_text_and_the_file_that_lightrag_kept(tmp_path: Path) -> None:
    graph = read_graph([write_directory(tmp_path / "rag_storage")])
    document = graph.documents[0]
    assert (document.id, document.title, document.source) == ("doc-1", "scripts.txt", "scripts.txt")
    assert document.content.decode() == TEXT


def test_a_part_of_a_description_belongs_to_the_chunk_whose_reply_has_it(tmp_path: Path) -> None:
    first, second = _chunks(write_directory(tmp_path / "rag"))
    assert second.text == VENTRIS
    assert first.entities == (
        ExtractedEntity(name="Alice Kober", type="Person", description="A classicist."),
        ExtractedEntity(name="Linear B", type="Concept", description="A script that Kober sorted."),
    )
    assert second.entities == (
        ExtractedEntity(name="Linear B", type="Concept", description="A script that Ventris deciphered."),
        ExtractedEntity(name="Michael Ventris", type="Person", description="An architect."),
    )


def test_without_cached_replies_each_chunk_of_an_entity_has_the_whole_description(tmp_path: Path) -> None:
    folder = write_directory(tmp_path / "rag")
    (folder / "kv_store_llm_response_cache.json").unlink()
    for chunk in _chunks(folder):
        descriptions = [entity.description for entity in chunk.entities if entity.name == "Linear B"]
        assert descriptions == ["A script that Kober sorted.", "A script that Ventris deciphered."]


def test_the_weight_of_a_relation_is_divided_among_its_chunks(tmp_path: Path) -> None:
    first, second = _chunks(write_directory(tmp_path / "rag"))
    weights = [(r.source, r.weight) for chunk in (first, second) for r in chunk.relations]
    assert weights == [("Alice Kober", 1.0), ("Michael Ventris", 1.5), ("Michael Ventris", 1.5)]
    assert first.relations[0].keywords == ("study", "cards")


def test_what_a_person_added_in_lightrag_gets_a_document_of_its_own_words(tmp_path: Path) -> None:
    graph = read_graph([write_directory(tmp_path / "rag_storage")])
    own = graph.documents[1]
    assert (own.id, own.title) == ("rag_storage#Knossos", "Knossos")
    assert own.content.decode() == "Knossos: A palace.\n\nLinear B was found at Knossos."
    assert graph.extractions[own.id].relations[0].target == "Linear B"


def test_documents_that_lightrag_has_not_read_and_files_of_no_use_are_listed(tmp_path: Path) -> None:
    failed, vectors, replies = read_graph([write_directory(tmp_path)]).omissions
    reason = "of which LightRAG has no chunks (failed Connection error.)"
    assert failed == f"{tmp_path / 'kv_store_doc_status.json'}: document 'doc-2', {reason}"
    assert vectors.startswith(f"{tmp_path / 'vdb_*.json'}: 0.0 MB of vectors")
    assert "cached replies" in replies


def test_a_document_that_lightrag_has_not_finished_is_imported_and_told(tmp_path: Path) -> None:
    folder = write_directory(tmp_path)
    write_store(folder, "doc_status", {"doc-1": {"status": "failed", "error_msg": "Connection error."}})
    graph = read_graph([folder])
    assert graph.documents[0].id == "doc-1"
    what = "what LightRAG has not yet extracted of document 'doc-1' (failed Connection error.)"
    assert f"{folder / 'kv_store_doc_status.json'}: {what}" in graph.omissions


def test_the_end_of_a_relation_that_lightrag_knows_nothing_of_has_no_description(tmp_path: Path) -> None:
    folder = write_directory(tmp_path)
    write_graph(folder, [("Babbage", "UNKNOWN", "UNKNOWN", ["doc-1-chunk-000"])], [])
    assert _chunks(folder)[0].entities == (ExtractedEntity(name="Babbage", type=UNKNOWN_TYPE),)


def test_quotation_marks_that_early_versions_put_around_values_are_dropped(tmp_path: Path) -> None:
    folder = write_directory(tmp_path)
    chunk = ["doc-1-chunk-000"]
    nodes = [('"ALICE KOBER"', '"PERSON"', '"A classicist."<SEP>"A scholar."', chunk), ('"LINEAR B"', '""', "", chunk)]
    write_graph(folder, nodes, [('"ALICE KOBER"', '"LINEAR B"', 1.0, '"She studied it."', '"study, signs"', chunk)])
    first = _chunks(folder)[0]
    assert [(e.name, e.type, e.description) for e in first.entities] == [
        ("Alice Kober", "Person", "A classicist."),
        ("Alice Kober", "Person", "A scholar."),
        ("Linear B", "Other", ""),
    ]
    (relation,) = first.relations
    assert (relation.source, relation.description) == ("Alice Kober", "She studied it.")
    assert relation.keywords == ("study", "signs")


def test_names_without_a_letter_and_stores_of_other_systems_are_told(tmp_path: Path) -> None:
    folder = write_directory(tmp_path)
    write_store(folder, "community_reports", {})
    write_graph(folder, [("?!", "person", "Nobody.", ["doc-1-chunk-000"])], [])
    told = read_graph([folder]).omissions
    assert f"{folder / GRAPH_FILE}: 1 entity without letter or digit in the name, or relations of these" in told
    assert f"{folder / 'kv_store_community_reports.json'}: a store that LightRAG does not have by default" in told


def test_a_document_without_a_text_of_its_own_is_made_of_its_chunks(tmp_path: Path) -> None:
    folder = write_directory(tmp_path / "rag")
    write_store(folder, "full_docs", {})
    graph = read_graph([folder])
    assert graph.documents[0].content.decode().endswith(f"\n\n{VENTRIS}")


def test_sources_that_are_missing_and_relations_with_itself_are_counted(tmp_path: Path) -> None:
    folder = write_directory(tmp_path)
    nodes = [("Knossos", "place", "A palace.", ["doc-9-chunk-000"])]
    write_graph(folder, nodes, [("Knossos", "Knossos", 1.0, "It.", "", ["doc-1-chunk-000"])])
    graph = read_graph([folder])
    where = folder / GRAPH_FILE
    assert f'{where}: "Knossos" is related to itself' in graph.omissions
    assert f"{where}: 1 source of entities or relations, because {CHUNKS_FILE} has no such chunks" in graph.omissions
    assert graph.documents[1].content == b"Knossos (Place): A palace."


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (CHUNKS_FILE, '{"c": {"content": 7, "full_doc_id": "d"}}', r"record 'c': `content` Input should be a valid"),
        (CHUNKS_FILE, '{"c": {"content": "x"}}', r"record 'c': `full_doc_id` Field required"),
        (CHUNKS_FILE, '{"c": ', r"text_chunks.json: Invalid JSON: EOF"),
        (CHUNKS_FILE, "[" * 100_000, r"text_chunks.json: Invalid JSON: recursion limit"),
        (CHUNKS_FILE, "[]", r"text_chunks.json: Input should be an object"),
        (GRAPH_FILE, "<graphml><graph>", "is not valid XML"),
        (GRAPH_FILE, '<!DOCTYPE g [<!ENTITY a "b">]><graphml/>', "line 1: the file has a document type"),
        (GRAPH_FILE, "<html/>", "line 1: the file begins with <html>"),
        ("kv_store_llm_response_cache.json", '{"a": 1}', "cache.json, record 'a': Input should be an object"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_with_the_place(tmp_path: Path, name: str, content: str, message: str) -> None:
    folder = write_directory(tmp_path)
    (folder / name).write_text(content)
    with pytest.raises(InvalidInput, match=message):
        read_graph([folder])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    folder = write_directory(tmp_path)
    (folder / GRAPH_FILE).unlink()
    with pytest.raises(InvalidInput, match=f"{GRAPH_FILE} is missing"):
        read_graph([folder])


def test_a_weight_that_is_no_positive_number_is_named_with_its_line(tmp_path: Path) -> None:
    folder = write_directory(tmp_path)
    nodes = [(name, "place", "", ["doc-1-chunk-000"]) for name in ("Pylos", "Knossos")]
    write_graph(folder, nodes, [("Pylos", "Knossos", "nan", "", "", [])])
    with pytest.raises(InvalidInput, match=r"line 36: the weight 'nan' is not a number above 0"):
        read_graph([folder])


def test_the_folder_above_the_workspaces_of_lightrag_is_told_apart(tmp_path: Path) -> None:
    write_directory(tmp_path / "rag" / "space1")
    with pytest.raises(InvalidInput, match=r"a workspace of LightRAG, such as .*space1"):
        read_graph([tmp_path / "rag"])


def test_a_text_with_characters_that_utf_8_cannot_encode_is_refused(tmp_path: Path) -> None:
    folder = write_directory(tmp_path)
    rows = json.dumps({"doc-1": {"content": "\ud800"}})
    (folder / "kv_store_full_docs.json").write_text(rows)
    with pytest.raises(InvalidInput, match=r"full_docs\.json"):
        read_graph([folder])
