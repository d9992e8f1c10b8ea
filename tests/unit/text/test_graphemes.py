"""Tests of grapheme boundaries."""

import pytest

from quipu.text.graphemes import is_grapheme_boundary


@pytest.mark.parametrize(
    "grapheme",
    ["a", "é", "q\u0301\u0323", "👩‍👩‍👧", "👍🏽", "🇫🇷", "각", "🏴\U000e0067\U000e0062\U000e007f", "❤\ufe0f", "中"],
)
def test_a_grapheme_is_whole_and_its_neighbours_are_apart(grapheme: str) -> None:
    text = f"x{grapheme}{grapheme}y"
    boundaries = [index for index in range(len(text) + 1) if is_grapheme_boundary(text, index)]
    assert boundaries == [0, 1, 1 + len(grapheme), 1 + 2 * len(grapheme), len(text)]
