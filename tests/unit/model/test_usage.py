"""Usage: prices and sums of costs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.model.chat import Role, TokenCount
from quipu.model.usage import MICRO, Price, Stage, UsageRow, total

ROW = UsageRow(day="2026-01-02", stage=Stage.EXTRACT, model="m", subject="a.md")
FULL = replace(
    ROW,
    n_calls=1,
    tokens=TokenCount(input=2, cached=1, output=3),
    cost=4,
    n_unpriced=5,
    n_interrupted=6,
    interrupted_tokens=TokenCount(input=7, output=8),
    interrupted_cost=9,
)


@pytest.mark.parametrize(
    ("price", "tokens", "cost"),
    [
        (Price(input=2.5, output=10.0), TokenCount(input=MICRO), 2_500_000),
        (Price(input=2.5, output=10.0), TokenCount(input=1_000, output=500), 7_500),
        (Price(input=2.0, output=8.0, cached=0.5), TokenCount(input=1_000, cached=400), 1_400),
        (Price(input=2.0, output=8.0), TokenCount(input=1_000, cached=400), 2_000),
        (Price(input=0.15, output=0.6), TokenCount(input=1), 1),
        (Price(input=0.07, output=0.0), TokenCount(input=100), 7),
        (Price(input=0.0, output=0.0), TokenCount(input=100, output=100), 0),
    ],
)
def test_a_price_is_for_a_million_tokens_rounded_up_to_millionths(price: Price, tokens: TokenCount, cost: int) -> None:
    assert price.cost(tokens) == cost


@given(
    cents=st.integers(0, 10_000),
    given_=st.integers(0, 10**6),
    cached=st.integers(0, 10**6),
    output=st.integers(0, 10**6),
)
def test_prices_with_two_decimals_are_exact(cents: int, given_: int, cached: int, output: int) -> None:
    cached = min(cached, given_)
    price = Price(input=cents / 100, output=2 * cents / 100, cached=0.0)
    exact = cents * (given_ - cached) + 2 * cents * output
    assert price.cost(TokenCount(input=given_, cached=cached, output=output)) == -(-exact // 100)


def test_rows_are_added_field_by_field() -> None:
    assert (
        replace(
            ROW,
            n_calls=2,
            tokens=TokenCount(input=4, cached=2, output=6),
            cost=8,
            n_unpriced=10,
            n_interrupted=12,
            interrupted_tokens=TokenCount(input=14, output=16),
            interrupted_cost=18,
        )
        == FULL + FULL
    )
    assert ROW + FULL == FULL


def test_the_total_is_the_sum_of_all_rows() -> None:
    assert total([FULL, replace(FULL, subject="b.md"), FULL]) == FULL + FULL + FULL


def test_every_role_of_a_chat_model_is_a_stage() -> None:
    assert {role.value for role in Role} <= {stage.value for stage in Stage}
