"""Tests of capital runs: names in a question that nobody knows yet."""

import pytest

from quipu.text.capitals import capital_runs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Which film did Christopher Nolan direct after The Prestige?", ["Christopher Nolan", "Prestige"]),
        ("Who is J. R. Hartley?", ["J. R. Hartley"]),
        ("Did the US and Saint-Denis agree?", ["US", "Saint-Denis"]),
        ("Кому служил Марко Поло?", ["Марко Поло"]),
        ("马可·波罗服务于谁？", []),
        ("where was he born?", []),
        ("WHO WAS IT?", []),
        ("Did The Who play?", []),
        ("In 1905 Einstein wrote.", ["Einstein"]),
        ("", []),
    ],
)
def test_runs_of_capitalised_words(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in capital_runs(text)] == expected
