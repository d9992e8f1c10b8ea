"""Reading a question: which of its words tell most, and what a quote offers it."""

import pytest

from quipu.answer.question import Question, read_question
from quipu.answer.quotable import Quotable, known_names, quotables
from tests.unit.answer.fakes import mentions, passages

TEXTS = {
    "Polo": "Marco Polo went to Genoa by ship and stayed in the prison of the city for a whole long year of his life.\n"
    "The ship was old and the prison was cold, and so the winter of that year was hard for everyone who was there."
}
NAMES = {"Marco Polo": "Person", "Genoa": "Location", "Il Milione": "Other"}


def _read(text: str) -> tuple[Question, list[Quotable]]:
    names = known_names(mentions(NAMES))
    candidates = quotables(passages(TEXTS), names)
    return read_question(text, candidates, names), candidates


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
