"""Extraction records: found by rules, and recorded ones."""

import json
import os
from pathlib import Path

import pytest

from quipu.errors import InvalidInput
from quipu.testing.scripted.records import RecordedExtractions, find_names, find_records
from tests.unit.testing.scripted.prompts import TEXT


def test_names_neighbours_and_acronyms_become_records() -> None:
    lines = [record.line() for record in find_records(TEXT, 20)]
    names = [line.split("<|>")[1] for line in lines if line.startswith("entity")]
    assert names == [
        "Alice Kober",
        "New York",
        "Brooklyn College",
        "World Health Organization",
        "WHO",
        "Michael Ventris",
        "Geneva",
    ]
    assert {line.count("<|>") for line in lines if line.startswith("entity")} == {3}
    assert "relation<|>Alice Kober<|>New York<|>related<|>Alice Kober was born in New York.<|>4" in lines
    assert lines[-1] == "alias<|>World Health Organization<|>WHO"


def test_names_without_capitals_are_found_in_chinese() -> None:
    assert find_names("王羲之在会稽写了兰亭序。")[0] == "王羲之在"


def test_there_are_no_more_entities_and_relations_than_allowed() -> None:
    text = " ".join(f"Anna{n} met Bruno{n} in Cadiz{n}." for n in range(20)).replace("0", "a")
    records = find_records(text, 5)
    assert [record.tag for record in records].count("entity") == 5
    assert [record.tag for record in records].count("relation") <= 5


def test_a_delimiter_in_the_text_does_not_break_a_record() -> None:
    records = find_records("Alice Kober <|> wrote to Michael Ventris.", 20)
    assert {record.line().count("<|>") for record in records if record.tag == "entity"} == {3}


def test_a_text_without_names_has_no_records() -> None:
    assert find_records("the rain fell on the hills, and nobody came.", 20) == []


PASSAGE = "The quick brown fox of Hertford jumps over a lazy dog named Argos. Argos sleeps in the garden of Ithaca."
DATA = Path(os.environ.get("QUIPU_DATA") or Path(__file__).resolve().parents[5] / "shared/data")
MUSIQUE = DATA / "musique_train100"


@pytest.fixture
def recorded(tmp_path: Path) -> RecordedExtractions:
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"id": "p1", "title": "Fox", "text": PASSAGE}) + "\n")
    extraction = {
        "passage_id": "p1",
        "entities": ["Argos", "Hertford"],
        "triples": [
            ["fox", "jumps over", "Argos"],
            ["Argos", "sleeps in", "Ithaca"],
            ["no", "third"],
            ["a", "is", "a"],
        ],
    }
    path = tmp_path / "extraction.jsonl"
    path.write_text(json.dumps(extraction) + "\n")
    return RecordedExtractions(path)


def lines(recorded: RecordedExtractions, text: str) -> list[str]:
    found = recorded.find(text)
    assert found is not None
    return [record.line() for record in found]


def test_a_passage_gets_what_was_recorded_of_it(recorded: RecordedExtractions) -> None:
    said = lines(recorded, f"  {PASSAGE}\n")
    assert [line.split("<|>")[1] for line in said if line.startswith("entity")] == [
        "Argos",
        "Hertford",
        "fox",
        "Ithaca",
    ]
    assert [line.split("<|>")[1:5] for line in said if line.startswith("relation")] == [
        ["fox", "Argos", "jumps over", "fox jumps over Argos"],
        ["Argos", "Ithaca", "sleeps in", "Argos sleeps in Ithaca"],
    ]


def test_an_entity_is_described_by_the_first_sentence_with_its_name(recorded: RecordedExtractions) -> None:
    sentence = "The quick brown fox of Hertford jumps over a lazy dog named Argos."
    assert lines(recorded, PASSAGE)[0] == f"entity<|>Argos<|>Other<|>{sentence}"


def test_a_part_of_a_passage_gets_what_names_something_in_it(recorded: RecordedExtractions) -> None:
    said = lines(recorded, "The quick brown fox of Hertford jumps over a lazy dog")
    assert [line.split("<|>")[1] for line in said] == ["Hertford", "fox", "Argos", "fox"]


def test_an_unknown_text_has_no_recording(recorded: RecordedExtractions) -> None:
    assert recorded.find("Something else that is long enough to be looked for.") is None
    assert recorded.find("Argos") is None


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"corpus\.jsonl"):
        RecordedExtractions(tmp_path / "extraction.jsonl")


@pytest.mark.skipif(not MUSIQUE.is_dir(), reason="musique_train100 is not there: set QUIPU_DATA")
def test_every_passage_of_a_real_recording_is_found() -> None:
    recorded = RecordedExtractions(MUSIQUE / "extraction.jsonl")
    passages = [json.loads(line)["text"] for line in (MUSIQUE / "corpus.jsonl").read_text("utf-8").splitlines()]
    found = [recorded.find(passage) for passage in passages]
    assert len(passages) == 1890 and None not in found
    lines = [record.line() for records in found for record in records or ()]
    assert {line.count("<|>") for line in lines if line.startswith("entity")} == {3}
    assert {line.count("<|>") for line in lines if line.startswith("relation")} == {5}
