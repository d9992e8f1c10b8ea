"""The answer without a model: which sentences are quoted, and when none is."""

import pytest

from quipu.answer.context import Passage
from quipu.answer.extractive import MAX_QUOTES, QuoteSelection, select_quotes
from tests.unit.answer.fakes import chunk, mentions, passages

LINEAR_B = {
    "Linear B": (
        "Linear B is a script of Mycenaean Greek, older than the alphabet, on tablets of clay found at Knossos. "
        "Michael Ventris read it in 1952, and he owed much to the triplets of Alice Kober, who never saw that day. "
        "Sir Arthur Evans had dug up the tablets half a century before and kept most of them to himself until he died."
    ),
    "Clay": (
        "Clay is found all over the world and was burnt to bricks, pots and tablets for ten thousand years and longer. "
        "Its colour is that of the iron within it, and so it may be yellow, red, brown or black, as everybody knows."
    ),
    "Alice Kober": (
        "Alice Kober was a scholar, born in New York in 1906 to parents who had come over from Hungary that summer. "
        "She was a teacher of classics at Brooklyn College for most of her life, and she filled in cards at night."
    ),
}
LINEAR_B_NAMES = {
    "Linear B": "Content",
    "Michael Ventris": "Person",
    "Alice Kober": "Person",
    "Arthur Evans": "Person",
    "New York": "Location",
    "Brooklyn College": "Organization",
    "Knossos": "Location",
    "Hungary": "Location",
}


def _answer(question: str, texts: dict[str, str], names: dict[str, str]) -> QuoteSelection:
    return select_quotes(question, passages(texts), mentions(names))


def test_the_sentence_with_the_words_of_the_question_comes_first() -> None:
    found = _answer("Who dug up the tablets of Linear B?", LINEAR_B, LINEAR_B_NAMES)
    assert found.quotes[0].text.startswith("Sir Arthur Evans had dug up the tablets")
    assert found.is_supported


def test_a_second_quote_follows_what_the_first_brought_in() -> None:
    question = "At which college was the scholar whose triplets helped Michael Ventris a teacher of classics?"
    found = _answer(question, LINEAR_B, LINEAR_B_NAMES)
    assert [quote.passage.chunk.title for quote in found.quotes[:2]] == ["Linear B", "Alice Kober"]
    assert "Brooklyn College" in found.quotes[1].text


def test_a_question_for_a_time_prefers_the_sentence_with_one() -> None:
    texts = {
        "Bridge": "The old bridge over the river was built by masons of the guild, who were not paid for it at all.\n"
        "The old bridge over the river was built in 1352 by people who came from far away and then went home again."
    }
    assert "1352" in _answer("When was the old bridge built?", texts, {}).quotes[0].text
    assert "1352" not in _answer("Did masons build the old bridge over the river?", texts, {}).quotes[0].text


def test_a_question_for_a_person_or_a_place_prefers_the_sentence_that_names_one() -> None:
    texts = {
        "Bridge": "The old bridge over the river was built by people of Prague, who did the work and went home.\n"
        "The old bridge over the river was built by Peter Parler, who came to do the work and went home again."
    }
    names = {"Prague": "Location", "Peter Parler": "Person"}
    assert "Peter Parler" in _answer("Who built the old bridge?", texts, names).quotes[0].text
    assert "Prague" in _answer("Where was the old bridge built?", texts, names).quotes[0].text


def test_forms_of_a_russian_word_meet() -> None:
    texts = {
        "Береста": "Бересту варили, чтобы она стала мягкой, и писали на ней острым железным писалом, без чернил. "
        "Первую грамоту нашла Нина Акулова на Неревском раскопе, и за эту находку ей дали премию в сто рублей сразу."
    }
    found = _answer("Кто нашёл первые грамоты на раскопе?", texts, {"Нина Акулова": "Person"})
    assert "Нина Акулова" in found.quotes[0].text


def test_chinese_is_matched_by_pairs_of_characters() -> None:
    texts = {
        "沈括": "沈括是北宋的科学家，他在汴京做官多年，主持过许多工程和测量。"
        "沈括晚年住在润州的梦溪园，在那里写成一本书，记下许多发明。"
    }
    found = _answer("沈括晚年住在哪里？", texts, {"沈括": "Person", "梦溪园": "Location"})
    assert "梦溪园" in found.quotes[0].text
    assert found.is_supported


@pytest.mark.parametrize(
    "question",
    [
        "What is the population of the capital of Zanzibar?",
        "Кто открыл Антарктиду?",
        "谁发现了南极洲？",
        "?!",
    ],
)
def test_a_question_about_something_else_is_not_supported(question: str) -> None:
    assert not _answer(question, LINEAR_B, LINEAR_B_NAMES).is_supported


def test_without_passages_nothing_is_supported() -> None:
    found = select_quotes("Who was Alice Kober?", [], [])
    assert found.quotes == ()
    assert not found.is_supported


def test_no_more_than_four_quotes_are_given_and_none_twice() -> None:
    texts = {f"Cat ({n})": f"The cat of house {n} sat upon the mat and would not be moved." for n in range(9)}
    found = _answer("Where did the cat sit?", texts, {})
    assert len(found.quotes) == MAX_QUOTES
    assert len({quote.passage.number for quote in found.quotes}) == MAX_QUOTES


def test_equal_sentences_are_taken_in_the_order_of_the_passages() -> None:
    same = "The cat sat upon the mat and would not be moved by any means at all, said the boy who had seen it."
    cats = [Passage(number=1, chunk=chunk(title, same)) for title in ("Cat (B)", "Cat (A)")]
    found = select_quotes("Where did the cat sit?", cats, [])
    assert [quote.passage.chunk.title for quote in found.quotes] == ["Cat (B)", "Cat (A)"]


def test_what_says_nothing_new_and_is_about_nothing_named_is_not_quoted() -> None:
    texts = {
        "Floor": "The cat sat upon the mat and would not be moved by any means at all, said the boy who saw it.",
        "Roof": "The mat had been woven by a weaver of the town, who had come there long ago with his seven daughters.",
    }
    found = _answer("Where did the cat upon the mat stay?", texts, {})
    assert [quote.passage.chunk.title for quote in found.quotes] == ["Floor"]


def test_single_words_here_and_there_support_no_answer() -> None:
    texts = {
        "Bern": "A bureau was opened in Bern, the capital of the country, and it has been there ever since that day.",
        "Roads": "A road was built through Peru, Chile and Bolivia, and it has been used by carts ever since that day.",
    }
    found = _answer("What is the capital of Peru?", texts, {"Bern": "Location", "Peru": "Location"})
    assert found.total_share == pytest.approx(1.0)
    assert not found.is_supported


def test_the_order_of_mentions_does_not_matter() -> None:
    question = "At which college was the scholar whose triplets helped Michael Ventris a teacher of classics?"
    said = mentions(LINEAR_B_NAMES)
    assert select_quotes(question, passages(LINEAR_B), said) == select_quotes(question, passages(LINEAR_B), said[::-1])
