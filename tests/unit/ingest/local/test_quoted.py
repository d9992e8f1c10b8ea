"""Names and titles in quotation marks."""

import pytest

from quipu.ingest.local.quoted import find_quoted


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
