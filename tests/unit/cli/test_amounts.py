"""Amounts: money, tokens and time as people read them."""

import pytest

from quipu.cli.output import duration, money, spent, tokens
from tests.unit.cli.conftest import ASKED, READ


@pytest.mark.parametrize(
    ("micro", "text"),
    [(0, "0.00"), (1_234, "0.0012"), (999_999, "1.0000"), (1_000_000, "1.00"), (1_234_567_890, "1,234.57")],
)
def test_money_has_as_many_digits_as_it_needs(micro: int, text: str) -> None:
    assert money(micro) == text


@pytest.mark.parametrize(("n", "text"), [(999_999, "999,999"), (1_000_000, "1.00M"), (12_345_678, "12.35M")])
def test_tokens_are_shortened_from_a_million_on(n: int, text: str) -> None:
    assert tokens(n) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (60, "1 min"), (7_199, "120 min"), (9_000, "2.5 h")]
)
def test_durations_are_told_in_their_largest_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_what_was_spent_is_one_line() -> None:
    assert spent([READ]) == "3 calls: 3,000 tokens in, 1,000 of them cached, 900 out, 0.0023 USD"
    assert spent([ASKED]) == "1 call: 2.00M tokens in, 100 out; 1 broke off, at most 0.00 USD more"
