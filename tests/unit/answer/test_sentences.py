"""Tests of sentences: what can be quoted of a passage, and the weights of a statement's words."""

from dataclasses import replace

import pytest

from quipu.answer.context import Passage
from quipu.answer.sentences import WeightedStatement, quotable_sentences
from tests.unit.answer.fakes import chunk, passages

LONG = "The caravan left the city at dawn and went on for forty days until it came to the lake in the desert of salt."


def _texts(text: str, *, title: str = "Notes", headings: tuple[str, ...] = ()) -> list[str]:
    passage = Passage(number=1, chunk=chunk(title, text, headings=headings))
    return [quotable.text for quotable in quotable_sentences([passage])]


def test_each_sentence_can_be_quoted() -> None:
    assert _texts(f"{LONG} {LONG}") == [LONG, LONG]


def test_a_short_sentence_is_quoted_with_the_next_of_its_line() -> None:
    assert _texts(f"Hello! {LONG}\nBye.\nSee you.") == [f"Hello! {LONG}", "Bye.", "See you."]


def test_headings_are_not_quoted() -> None:
    assert _texts(f"# Notes\n\n## Days\n\n{LONG}", headings=("Days",)) == [LONG]


def test_what_has_no_words_is_not_quoted() -> None:
    assert _texts(f"---\n\n{LONG}\n\n* * *") == [LONG]


def test_fences_of_code_and_rules_of_tables_are_not_quoted() -> None:
    code = f"```text\n{LONG}\n```\n\n~~~\nexport INDEX=kb\n~~~ {{.sh}}\n"
    table = "| City | Days |\n|:-----|-----:|\n| Lop | 40 |\n+---+---+\n"
    assert _texts(f"{code}\n{table}") == [LONG, "export INDEX=kb", "| City | Days |", "| Lop | 40 |"]


def test_a_fence_stands_in_no_quote() -> None:
    assert _texts("Set it first:\n```sh\nexport INDEX=kb\n```\nThen ask.") == [
        "Set it first:",
        "export INDEX=kb",
        "Then ask.",
    ]
    assert _texts(f"```\n{LONG[:70]}\n{LONG[70:]}\n```") == [f"{LONG[:70]}\n{LONG[70:]}"]
    assert _texts("``` a word in marks ``` is no fence.") == ["``` a word in marks ``` is no fence."]


def test_a_quote_keeps_line_breaks_and_spaces_as_they_are() -> None:
    wrapped = LONG.replace("forty days", "forty\n  days")
    assert _texts(wrapped) == [wrapped]


def test_each_sentence_is_about_its_title() -> None:
    first, _ = quotable_sentences([Passage(number=1, chunk=chunk("Lop Nur (lake)", f"{LONG} {LONG}"))])
    assert first.about - first.terms == {"lop", "nur"}


def test_a_row_of_a_table_is_about_what_its_header_says() -> None:
    row = replace(chunk("", "Anna Karenina of Moscow | 37"), header="Name | Shoe size")
    (quotable,) = quotable_sentences([Passage(number=1, chunk=row)])
    assert quotable.about - quotable.terms == {"sho", "siz"}  # "name" is asked of everything


TEXTS = {
    "Polo": "Marco Polo went to Genoa by ship and stayed in the prison of the city for a whole long year of his life.\n"
    "The ship was old and the prison was cold, and so the winter of that year was hard for everyone who was there."
}


def _read(text: str) -> WeightedStatement:
    return WeightedStatement.of(text, quotable_sentences(passages(TEXTS)))


def test_rarer_words_tell_more_and_unknown_words_most() -> None:
    weights = _read("Was the ship in Genoa a galley?").weights
    assert list(weights) == ["ship", "genoa", "galle"]
    assert weights["ship"] < weights["genoa"] < weights["galle"]


def test_the_share_of_all_words_is_one_and_of_none_is_nothing() -> None:
    statement = _read("Was the ship in Genoa?")
    assert statement.share({"ship", "genoa", "more"}) == pytest.approx(1.0)
    assert statement.share({"ship", "genoa"}, unless={"ship", "genoa"}) == 0.0
    assert _read("?").share({"ship"}) == 0.0
