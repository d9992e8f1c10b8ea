"""Tests of counts with their nouns, and of lines that a document wraps."""

import pytest

from quipu.text.formatting import format_count, wrapped_lines


@pytest.mark.parametrize(
    ("n", "noun", "expected"),
    [
        (0, "passage", "0 passages"),
        (1, "pair", "1 pair"),
        (1, "community", "1 community"),
        (2, "entity", "2 entities"),
        (2_000, "document", "2,000 documents"),
    ],
)
def test_one_is_singular_and_all_else_plural(n: int, noun: str, expected: str) -> None:
    assert format_count(n, noun) == expected


PROSE = """The caravan left Tabriz before the sun had risen above
the walls, and nobody had told the merchants of Venice."""


@pytest.mark.parametrize(
    ("text", "wrapped"),
    [
        (PROSE, [0]),
        (f"## Leaving\n{PROSE}\n\n{PROSE}", [1, 4]),
        (f"- {PROSE}\n- It came back.", [0]),
        (f"```\n{PROSE}\n```\n{PROSE}", [4]),
        ("| The caravan left Tabriz before the sun had risen above |\n| the walls |", []),
        ("The caravan left Tabriz before the sun had risen above.\n\nNobody was told.", []),
        ("The caravan left Tabriz\nbefore the sun had risen", []),  # verses
        ("The caravan left Tabriz before the sun had risen above it.\nNobody\nwas told.", []),  # had room
        ("", []),
    ],
)
def test_lines_of_a_paragraph_that_had_no_room_for_the_next_word_are_wrapped(text: str, wrapped: list[int]) -> None:
    assert list(wrapped_lines(text.split("\n"))) == wrapped
