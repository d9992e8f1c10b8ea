"""Custom graphs: what LightRAG's `insert_custom_kg` takes, with and without passages."""

import json
from pathlib import Path
from typing import Any

import pytest

from quipu.errors import InvalidInput
from quipu.ingest.graph_import import custom_graph_from, read_graph
from quipu.ingest.graph_import.lines import MAX_FILE_BYTES
from quipu.model.imported_graph import ImportedGraph
from quipu.text.names import MAX_NAME_CHARS

GRAPH: dict[str, list[dict[str, Any]]] = {
    "chunks": [
        {"content": "Ventris deciphered it.", "source_id": "s1", "chunk_order_index": 1},
        {"content": "Kober studied Linear B.", "source_id": "s1", "file_path": "notes/scripts.txt", "tokens": 5},
    ],
    "entities": [
        {"entity_name": "Kober", "entity_type": "PERSON", "description": "A classicist.", "source_id": "s1"},
        {"entity_name": "Knossos", "entity_type": "place", "description": "A palace."},
    ],
    "relationships": [
        {"src_id": "Kober", "tgt_id": "Linear B", "keywords": "study, cards", "weight": 2.0, "source_id": "s1<SEP>s9"},
        {"src_id": "Linear B", "tgt_id": "Knossos", "description": "It was found there."},
    ],
}


def _read(value: object, name: str = "notes") -> ImportedGraph:
    return read_graph([custom_graph_from(value, name)], name)


def test_chunks_of_a_source_are_a_document_in_their_order(tmp_path: Path) -> None:
    document = _read(GRAPH).documents[0]
    assert (document.id, document.title, document.source) == ("s1", "scripts.txt", "notes/scripts.txt")
    assert document.content.decode() == "Kober studied Linear B.\n\nVentris deciphered it."


def test_entities_and_relations_belong_to_their_source() -> None:
    recording = _read(GRAPH).extractions["s1"]
    assert [(e.name, e.type, e.description) for e in recording.entities] == [("Kober", "Person", "A classicist.")]
    assert [(r.target, r.keywords, r.weight) for r in recording.relations] == [("Linear B", ("study", "cards"), 2.0)]


def test_what_has_no_source_gets_a_document_of_its_own_words() -> None:
    graph = _read(GRAPH)
    assert {document.id: document.content.decode() for document in graph.documents[1:]} == {
        "notes#Knossos": "Knossos (place): A palace.",
        "notes#Linear B": "Linear B – Knossos: It was found there.",
    }
    assert graph.omissions == ("notes: 1 source without a chunk, such as 's9'; what names them gets texts of its own",)


def test_a_json_file_is_a_custom_graph_of_its_name(tmp_path: Path) -> None:
    file = tmp_path / "notes.json"
    file.write_text(json.dumps(GRAPH), "utf-8")
    assert [document.id for document in read_graph([file]).documents] == [
        "s1",
        "notes.json#Knossos",
        "notes.json#Linear B",
    ]


def test_long_names_have_short_ids_and_too_long_ones_are_refused() -> None:
    (document,) = _read({"entities": [{"entity_name": "a" * MAX_NAME_CHARS}]}).documents
    assert len(document.id) < MAX_NAME_CHARS
    assert document.content == b"a" * MAX_NAME_CHARS
    with pytest.raises(InvalidInput, match="1 record with a name longer than 300 characters"):
        _read({"entities": [{"entity_name": "a" * 5_000}]})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, r"No graph was found in notes"),
        ([], r"notes: .*valid dictionary"),
        ({"chunks": [{"content": " ", "source_id": "s"}]}, r"`content` of item 1 of `chunks` is empty"),
        ({"chunks": [{"content": "\u200b", "source_id": "s"}]}, r"document 's' holds no text"),
        ({"chunks": [{"content": "a\0b", "source_id": "s"}]}, r"document 's' holds a NUL"),
        ({"chunks": [{"content": "x"}]}, r"`source_id` of item 1 of `chunks` is missing"),
        ({"entities": [{"entity_name": 7}]}, r"`entity_name` of item 1 of `entities` should be a valid string"),
        ({"entities": [{"entity_name": "?"}]}, r"`entity_name` of item 1 of `entities` is '\?', without a letter"),
        ({"entities": "Kober"}, r"`entities` should be a valid list"),
        ({"relationships": [{"src_id": "A"}]}, r"`tgt_id` of item 1 of `relationships` is missing"),
        ({"relationships": [{"src_id": "A", "tgt_id": "B", "weight": 0}]}, r"`weight` of item 1 of `relationships`"),
        ({"chunks": [{"content": "x", "source_id": "a\0b"}]}, r"cannot be the id of a document"),
        ({"relationships": [{"src_id": "A", "tgt_id": "B", "weight": float("nan")}]}, r"`weight` of item 1"),
    ],
)
def test_a_part_that_cannot_be_read_is_named(value: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        _read(value)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"chunks": ', "7", '{"entities": [{"entity_name": "\\ud800"}]}'])
def test_a_file_that_holds_no_custom_graph_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "graph.json").write_text(text)
    with pytest.raises(InvalidInput, match=r"graph\.json: "):
        read_graph([tmp_path / "graph.json"])


def test_a_relation_of_an_entity_with_itself_is_left_out() -> None:
    relations = [{"src_id": "Knossos", "tgt_id": "the Knossos"}]
    graph = _read({**GRAPH, "relationships": relations})
    assert graph.omissions == ('notes: item 1 of `relationships`: "Knossos" is related to itself',)


def test_a_file_that_is_too_large_to_be_read_whole_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "graph.json").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)  # takes no space on the disk
    with pytest.raises(InvalidInput, match=r"graph\.json has 4,294,967,297 bytes"):
        read_graph([tmp_path / "graph.json"])
