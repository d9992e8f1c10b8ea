"""Tests of sentences: what can be quoted of a passage, and the weights of a question's words."""

from dataclasses import replace

import pytest

from quipu.answer.context import Passage
from quipu.answer.sentences import EntityNames, QuotableSentence, WeightedQuestion, quotable_sentences
from quipu.model.graph import EntityMention
from tests.unit.answer.fakes import chunk, mentions, passages

LONG = "The caravan left the city at dawn and went on for forty days until it came to the lake in the desert of salt."


def _texts(text: str, *, title: str = "Notes", headings: tuple[str, ...] = ()) -> list[str]:
    passage = Passage(number=1, chunk=chunk(title, text, headings=headings))
    return [quotable.text for quotable in quotable_sentences([passage], EntityNames.of([]))]


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


def test_names_are_found_in_each_sentence_and_the_title_is_the_subject() -> None:
    text = f"{LONG} Marco Polo told of it while he sat in the prison of Genoa, and nobody there believed a word of it."
    passage = Passage(number=1, chunk=chunk("Lop Nur (lake)", text))
    first, second = quotable_sentences(
        [passage], EntityNames.of(mentions({"Marco Polo": "Person", "Genoa": "Location"}))
    )
    assert not first.names
    assert second.names == {"marco polo", "genoa"}
    assert first.subject == "lop nur"
    assert first.about - first.terms == {"lop", "nur"}


def test_the_type_of_a_name_is_the_one_most_mentions_give() -> None:
    said = [EntityMention(key="polo", surface="Polo", type=kind) for kind in ("Other", "Content", "Person", "Person")]
    assert EntityNames.of(said).type_by_key == {"polo": "Person"}


def test_a_row_of_a_table_is_about_what_its_header_says() -> None:
    row = replace(chunk("", "Anna Karenina of Moscow | 37"), header="Name | Shoe size")
    (quotable,) = quotable_sentences([Passage(number=1, chunk=row)], EntityNames.of([]))
    assert quotable.about - quotable.terms == {"sho", "siz"}  # "name" is asked of everything


TEXTS = {
    "Polo": "Marco Polo went to Genoa by ship and stayed in the prison of the city for a whole long year of his life.\n"
    "The ship was old and the prison was cold, and so the winter of that year was hard for everyone who was there."
}
NAMES = {"Marco Polo": "Person", "Genoa": "Location", "Il Milione": "Other"}


def _read(text: str) -> tuple[WeightedQuestion, list[QuotableSentence]]:
    names = EntityNames.of(mentions(NAMES))
    candidates = quotable_sentences(passages(TEXTS), names)
    return WeightedQuestion.of(text, candidates, names), candidates


def test_rarer_words_tell_more_and_unknown_words_most() -> None:
    question, _ = _read("Was the ship in Genoa a galley?")
    weights = question.weights
    assert list(weights) == ["ship", "genoa", "galle"]
    assert weights["ship"] < weights["genoa"] < weights["galle"]


def test_the_share_of_all_words_is_one_and_of_none_is_nothing() -> None:
    question, _ = _read("Was the ship in Genoa?")
    assert question.share({"ship", "genoa", "more"}) == pytest.approx(1.0)
    assert question.share({"ship", "genoa"}, unless={"ship", "genoa"}) == 0.0
    assert _read("?")[0].share({"ship"}) == 0.0


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("Who sat in the prison?", [True, False]),
        ("Who was Marco Polo?", [False, False]),
        ("Where was the prison?", [True, False]),
        ("Where in Genoa was the prison?", [False, False]),
        ("Why was the prison cold?", [False, False]),
    ],
)
def test_a_quote_offers_what_is_asked_unless_the_question_says_it(text: str, offered: list[bool]) -> None:
    question, candidates = _read(text)
    assert [question.is_offered_by(candidate) for candidate in candidates] == offered
