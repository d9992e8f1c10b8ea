"""Names in quotation marks, speakers of a chat, and terms."""

import pytest

from quipu.ingest.local.pattern_names import find_quoted, find_speakers, find_terms
from quipu.text.sentences import sentence_spans


def _names(text: str) -> list[str]:
    return [occurrence.name for occurrence in find_quoted(text)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('the song "Weight of the World" by', ["Weight of the World"]),
        ("роман «Мастер и Маргарита» издали", ["Мастер и Маргарита"]),
        ("他写成《史记》，人称“太史公”。", ["史记", "太史公"]),
        ("the “Open Door,” he said", ["Open Door"]),
    ],
)
def test_titles_and_names_are_found_in_every_typography(text: str, names: list[str]) -> None:
    assert _names(text) == names


@pytest.mark.parametrize(
    "text", ['He said "that is not what we want" and left', '"We leave. They stay."', 'a 6" pipe and a 7" pipe', '"']
)
def test_speech_and_stray_marks_are_no_titles(text: str) -> None:
    assert _names(text) == []


def test_a_closing_mark_does_not_open_the_next_title() -> None:
    assert _names('He sang "Yesterday" and "Let It Be" twice') == ["Yesterday", "Let It Be"]


def _speakers(text: str) -> list[str]:
    return [occurrence.name for occurrence in find_speakers(text)]


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ("Time: 20260105_11:00\nLiHua: Hey!\nWolfgangSchulz: Awesome!", ["LiHua", "WolfgangSchulz"]),
        ("小明：你好！\n王老师：下周五之前发到我的邮箱。", ["小明", "王老师"]),
        ("Аня: Привет, как дела?", ["Аня"]),
    ],
)
def test_labels_of_speech_are_speakers(text: str, speakers: list[str]) -> None:
    assert _speakers(text) == speakers


@pytest.mark.parametrize(
    "text",
    [
        "Returns: a path.\nThrows: if you pass none.\nEffects: none.\nRemarks: none.\nRequires: none.",
        "说明：请注意。\n",
        "Note: read this first.",
        "Paris: a guide to the city.",
        "Address: 5 Main Street\nPhone: 42",
    ],
)
def test_other_labels_are_not(text: str) -> None:
    assert _speakers(text) == []


def _terms(text: str) -> set[str]:
    return {occurrence.name for occurrence in find_terms(text, sentence_spans(text))}


def test_what_a_sentence_defines_is_a_term() -> None:
    assert _terms("In machine learning, gradient descent is an algorithm.") == {"gradient descent"}
    assert _terms("The first album is a success.") == set()


def test_a_pair_of_words_said_three_times_is_a_term() -> None:
    text = "The transmission line hums. A transmission line fails; each transmission line ends."

    assert _terms(text) == {"transmission line"}
    assert _terms("The transmission line hums. A transmission line fails.") == set()


def test_words_that_begin_a_longer_phrase_are_no_term() -> None:
    text = "One latent glyph sheet, a latent glyph sheet and the latent glyph sheet here. The glyph sheet ends."

    assert _terms(text) == {"glyph sheet"}
