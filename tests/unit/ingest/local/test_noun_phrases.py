"""Terms in small letters."""

from quipu.ingest.local.terms import find_terms
from quipu.text.sentences import sentence_spans


def _terms(text: str) -> set[str]:
    return {occurrence.name for occurrence in find_terms(text, sentence_spans(text))}


def test_what_a_sentence_defines_is_a_term() -> None:
    assert _terms("In machine learning, gradient descent is an algorithm.") == {"gradient descent"}
    assert _terms("The first album is a success.") == set()


def test_a_pair_of_words_said_three_times_is_a_term() -> None:
    text = "The transmission line hums. A transmission line fails; each transmission line ends."

    assert _terms(text) == {"transmission line"}
    assert _terms("The transmission line hums. A transmission line fails.") == set()
