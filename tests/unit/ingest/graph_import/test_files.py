"""Recorded graphs are read whole and checked before anything is added."""

import json
from pathlib import Path

import pytest

from quipu.errors import InvalidInput, NotFound
from quipu.ingest.graph_import import read_graph
from quipu.model.cluster import Finding
from quipu.model.extraction import ExtractedEntity, ExtractedRelation
from quipu.model.graph import OTHER_TYPE, UNKNOWN_TYPE
from quipu.model.imported_graph import ImportedCommunity, ImportedReport

TEXT = {"id": "d1", "title": "Scripts", "text": "Alice Kober studied Linear B at Brooklyn College."}
RECORD = {
    "passage_id": "d1",
    "entities": [{"name": "Alice Kober", "type": "PERSON", "description": "A classicist."}, "Linear B"],
    "relations": [{"source": "Alice Kober", "target": "Linear B", "weight": 3, "keywords": "study, script"}],
    "triples": [["Alice Kober", "taught at", "Brooklyn College"], ["Linear B", "script"]],
}
COMMUNITY = {"community": 0, "level": 0, "parent": -1, "entities": ["Alice Kober", "Linear B"], "text_units": ["d1"]}
REPORT = {
    "community": 0,
    "level": 0,
    "title": "Linear B",
    "summary": "Kober studied it.",
    "rank": 7.5,
    "findings": [{"summary": "She counted signs.", "explanation": "On cards."}, "She taught."],
}


def _write(folder: Path, name: str, *lines: object) -> Path:
    path = folder / name
    path.write_text("".join(line if isinstance(line, str) else f"{json.dumps(line)}\n" for line in lines))
    return path


def test_a_folder_is_read_with_texts_records_communities_and_reports(tmp_path: Path) -> None:
    _write(tmp_path, "corpus.jsonl", TEXT)
    _write(tmp_path, "extraction.jsonl", RECORD)
    _write(tmp_path, "communities.jsonl", COMMUNITY)
    _write(tmp_path, "reports.jsonl", REPORT)
    _write(tmp_path, "queries.jsonl", {"question": "Who?", "answers": ["Kober"]})
    (tmp_path / "README.md").write_text("not a record")
    graph = read_graph([tmp_path])
    assert [(source.id, source.title, source.content.decode()) for source in graph.documents] == [
        ("d1", "Scripts", TEXT["text"])
    ]
    assert graph.extractions["d1"].entities == (
        ExtractedEntity(name="Alice Kober", type="Person", description="A classicist."),
        ExtractedEntity(name="Linear B", type="Other"),
    )
    assert graph.extractions["d1"].relations == (
        ExtractedRelation(source="Alice Kober", target="Linear B", keywords=("study", "script"), weight=3.0),
        ExtractedRelation(
            source="Alice Kober",
            target="Brooklyn College",
            keywords=("taught at",),
            description="Alice Kober taught at Brooklyn College",
        ),
    )
    assert graph.communities == (ImportedCommunity(id="0", level=0, entities=("Alice Kober", "Linear B")),)
    findings = (Finding(summary="She counted signs.", explanation="On cards."), Finding(summary="She taught."))
    assert graph.reports == (
        ImportedReport(community="0", title="Linear B", summary="Kober studied it.", findings=findings, rating=7.5),
    )


def test_text_and_record_may_stand_in_one_line(tmp_path: Path) -> None:
    graph = read_graph([_write(tmp_path, "all.jsonl", {**RECORD, **TEXT})])
    assert len(graph.documents) == len(graph.extractions) == 1


def test_the_identity_follows_what_is_recorded_and_not_the_order_of_lines(tmp_path: Path) -> None:
    one = read_graph([_write(tmp_path, "one.jsonl", TEXT, RECORD)])
    same = read_graph([_write(tmp_path, "same.jsonl", RECORD, TEXT)])
    other = read_graph([_write(tmp_path, "other.jsonl", TEXT, {**RECORD, "triples": []})])
    assert one.identity == same.identity != other.identity


def test_names_all_in_capitals_become_what_the_text_writes(tmp_path: Path) -> None:
    record = {
        "id": "d1",
        "entities": ["ALICE KOBER", "NASA", "LINEAR B"],
        "relations": [{"source": "ALICE KOBER", "target": "SIGN GROUPS"}],
    }
    text = {"id": "d1", "text": "Alice Kober read linear b. NASA did not."}
    communities = {"community": "c", "level": 0, "entities": ["ALICE KOBER", "SIGN GROUPS"]}
    graph = read_graph([_write(tmp_path, "all.jsonl", text, record, communities)])
    assert [entity.name for entity in graph.extractions["d1"].entities] == ["Alice Kober", "NASA", "linear b"]
    assert graph.extractions["d1"].relations[0].target == "Sign Groups"
    assert graph.communities[0].entities == ("Alice Kober", "Sign Groups")


def test_names_in_mixed_case_stay_as_they_are(tmp_path: Path) -> None:
    record = {"id": "d1", "entities": ["Alice Kober", "LINEAR B"]}
    graph = read_graph([_write(tmp_path, "all.jsonl", {"id": "d1", "text": "linear b"}, record)])
    assert [entity.name for entity in graph.extractions["d1"].entities] == ["Alice Kober", "LINEAR B"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{broken\n"], r"line 1 is not a JSON object"),
        ([TEXT, {"question": "Who?"}], r"line 2 is not a passage"),
        ([TEXT, {"id": "d1", "entities": [{"name": ""}]}], r"line 2: `name` of item 1 of `entities` is empty\."),
        (
            [TEXT, {"id": "d1", "relations": [{"source": "A", "target": "B", "weight": -1}]}],
            r"`weight` of item 1 of `relations` should be greater than 0\.",
        ),
        ([TEXT, {"id": "d1", "relations": [{"source": "A"}]}], r"`target` of item 1 of `relations` is missing\."),
        ([TEXT, {"id": "d1", "triples": [["A", 7, "B"]]}], r"item 2 of item 1 of `triples` should be a valid string\."),
        ([TEXT, {**REPORT, "findings": [{"explanation": "x"}]}], r"2: `summary` of item 1 of `findings` is missing\."),
        ([TEXT, {"id": "", "text": "A blank id."}], r"line 2: `id` should be a text that is not empty, or a whole"),
        ([TEXT, {"id": "  ", "text": "A blank id."}], r"line 2: `id` should be a text that is not empty, or a whole"),
        ([TEXT, {"id": True, "text": "No id."}], r"line 2: `id` should be a text that is not empty, or a whole"),
        ([TEXT, {**COMMUNITY, "community": ""}], r"line 2: `community` should be a text that is not empty"),
        ([TEXT, {"id": "d2", "text": "A\0B"}], r"line 2: `text` holds a NUL"),
        ([TEXT, {"id": "d\0", "text": "A"}], r"line 2: `id` holds a NUL"),
        ([TEXT, {"id": "d2", "text": ""}], r"line 2: `text` holds no text"),
        ([TEXT, {"id": "d2", "text": " \u200b\x01"}], r"line 2: `text` holds no text"),
        (
            [TEXT, "[" * 100_000 + "\n"],
            r"line 2 is not a JSON object \(a number of too many digits, or too many brackets",
        ),
        ([RECORD], r"line 1: there are records of 'd1', but not its text"),
        ([TEXT, TEXT], r"line 2: 'd1' is recorded a second time"),
        ([TEXT, REPORT], r"graph\.jsonl, line 2: the report is on community 0, which is missing"),
        (
            [TEXT, {**COMMUNITY, "parent": 9}],
            r"graph\.jsonl, line 2: community 0 has the parent 9, which is missing",
        ),
        (
            [TEXT, {**COMMUNITY, "level": 1, "parent": 5}, {**COMMUNITY, "community": 5, "level": 1}],
            r"line 2: community 0 of level 1 has the parent 5 of level 1 \(.*line 3\)",
        ),
        (
            [TEXT, {**COMMUNITY, "level": 0, "parent": 0}],
            r"line 2: community 0 of level 0 has the parent 0 of level 0",
        ),
        ([TEXT, COMMUNITY, {**REPORT, "rank": 11}], r"line 3: `rank` should be less than or equal to 10\."),
        ([{"question": "Who?"}], r"line 1 is not a passage"),
    ],
)
def test_what_cannot_be_meant_is_named_with_its_line(tmp_path: Path, lines: list[object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_graph([_write(tmp_path, "graph.jsonl", *lines)])


def test_bytes_that_are_no_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "graph.jsonl"
    file.write_bytes(json.dumps(TEXT).encode() + '\n{"id": "d2", "text": "Sébastien"}\n'.encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"line 2 is not valid UTF-8\. Convert the file to UTF-8\."):
        read_graph([file])


def test_broken_json_is_told_by_its_column_alone(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_graph([_write(tmp_path, "graph.jsonl", TEXT, '{"id":\n')])
    assert "line 2 is not a JSON object (column 7: Expecting value)" in str(caught.value)


def test_triples_that_are_not_whole_are_left_out_and_told(tmp_path: Path) -> None:
    record = {**RECORD, "triples": [["Alice", "knew"], ["Alice", " ", "Bob"], ["Alice", "met", "Bob"]]}
    file = _write(tmp_path, "graph.jsonl", TEXT, record)
    graph = read_graph([file])
    assert graph.omissions == (
        f'{file}, line 2: ["Alice", "knew"] is not a triple',
        f'{file}, line 2: ["Alice", "", "Bob"] is not a triple',
    )
    assert [each.target for each in graph.extractions["d1"].relations] == ["Linear B", "Bob"]


def test_of_a_relation_with_itself_the_entity_stays_and_the_rest_is_told(tmp_path: Path) -> None:
    relations = [{"source": "Linear B", "target": "the Linear B"}, {"source": "Knossos", "target": "Knossos"}]
    record = {"id": "d1", "entities": ["Linear B"], "relations": relations}
    file = _write(tmp_path, "graph.jsonl", TEXT, record)
    graph = read_graph([file])
    assert graph.extractions["d1"].entities == (
        ExtractedEntity(name="Linear B", type=OTHER_TYPE),
        ExtractedEntity(name="Knossos", type=UNKNOWN_TYPE),
    )
    assert graph.extractions["d1"].relations == ()
    assert graph.omissions == (
        f'{file}, line 2: "Linear B" is related to itself',
        f'{file}, line 2: "Knossos" is related to itself',
    )


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        read_graph([tmp_path / "nowhere"])


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, "queries.jsonl", {"question": "Who?"})
    with pytest.raises(InvalidInput, match="No graph was found"):
        read_graph([tmp_path])
