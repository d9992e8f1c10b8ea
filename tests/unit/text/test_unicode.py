"""Tests of grapheme boundaries and surrogates."""

import pytest

from quipu.model.query import Filter, Query, Turn
from quipu.text.unicode import find_text_with_surrogate, is_grapheme_boundary


@pytest.mark.parametrize(
    "grapheme",
    ["a", "é", "q\u0301\u0323", "👩‍👩‍👧", "👍🏽", "🇫🇷", "각", "🏴\U000e0067\U000e0062\U000e007f", "❤\ufe0f", "中"],
)
def test_a_grapheme_is_whole_and_its_neighbours_are_apart(grapheme: str) -> None:
    text = f"x{grapheme}{grapheme}y"
    boundaries = [index for index in range(len(text) + 1) if is_grapheme_boundary(text, index)]
    assert boundaries == [0, 1, 1 + len(grapheme), 1 + 2 * len(grapheme), len(text)]


def test_the_first_text_with_a_surrogate_is_found() -> None:
    assert find_text_with_surrogate(["Novgorod", "𝔮", "a\udcff", "\ud800b"]) == "a\udcff"
    assert find_text_with_surrogate(["Novgorod", "𝔮"]) is None


@pytest.mark.parametrize(
    "value",
    ["\udcff", ["a", ("\udcff",)], {"a": ("b", "\udcff")}, {"\udcff": 1}, Turn(role="user", text="\udcff")],
)
def test_every_text_in_a_value_is_searched(value: object) -> None:
    assert find_text_with_surrogate(value) == "\udcff"


@pytest.mark.parametrize(
    "query",
    [
        Query(text="Who\udcff?"),
        Query(text="Who?", history=(Turn(role="user", text="\udcff"),)),
        Query(text="Who?", filter=Filter(documents=("a.md\udcff",))),
        Query(text="Who?", strategy="\udcff"),
    ],
)
def test_every_text_of_a_query_is_searched(query: Query) -> None:
    assert find_text_with_surrogate(query) is not None


def test_values_without_text_hold_no_surrogate() -> None:
    assert find_text_with_surrogate((3, None, 1.5, b"bytes")) is None
