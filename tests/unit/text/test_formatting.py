"""Tests of counts with their nouns."""

import pytest

from quipu.text.formatting import format_count


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
