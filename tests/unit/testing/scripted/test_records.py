"""Tests of the rules that stand in for a model's extraction."""

from quipu.testing.scripted.records import find_records, names_in
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
    assert names_in("王羲之在会稽写了兰亭序。")[0] == "王羲之在"


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
