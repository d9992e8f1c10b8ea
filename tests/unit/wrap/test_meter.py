"""Meter: what calls cost, call by call."""

import asyncio
from dataclasses import replace

import pytest

from quipu.errors import OverBudget, Overloaded, Refused, TooLong, Unavailable
from quipu.model.chat import TokenCount
from quipu.model.usage import SpendingLimit, Stage, UsageRow
from quipu.wrap.budget import Amount, SpendingBudget
from quipu.wrap.meter import Attempt, Meter, utc_day
from tests.unit.wrap.fakes import FREE_OF_PRICE, TERMS, settle

MOST = TokenCount(input=10, output=100)
ATTEMPT = Attempt(stage=Stage.EXTRACT, terms=TERMS, most=lambda: MOST, subject="a.md")
UNPRICED = replace(ATTEMPT, terms=FREE_OF_PRICE)
ROW = UsageRow(day="2026-01-02", stage=Stage.EXTRACT, model="fake/model", subject="a.md")


def _meter(limit: SpendingLimit | None = None, subject: str | None = None) -> Meter:
    budget = SpendingBudget(limit) if limit else None
    return Meter(subject=subject, budget=budget, today=lambda: "2026-01-02")


async def _count(meter: Meter, outcome: TokenCount | BaseException | None, attempt: Attempt = ATTEMPT) -> None:
    async def work() -> TokenCount | None:
        await asyncio.sleep(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    await meter.run(work, attempt, lambda tokens: tokens)


async def test_a_reply_is_counted_as_the_service_counts_it() -> None:
    meter = _meter()
    await _count(meter, TokenCount(input=12, cached=2, output=30))
    tokens = TokenCount(input=12, cached=2, output=30)
    assert meter.rows() == (replace(ROW, n_calls=1, tokens=tokens, cost=12 + 60),)


async def test_calls_of_one_kind_are_added_up() -> None:
    meter = _meter()
    for _ in range(3):
        await _count(meter, TokenCount(input=1, output=1))
    await _count(meter, TokenCount(output=1), replace(ATTEMPT, stage=Stage.SUMMARISE))
    assert [(row.stage, row.n_calls, row.cost) for row in meter.rows()] == [("extract", 3, 9), ("summarise", 1, 2)]


@pytest.mark.parametrize(
    "error", [Refused("no"), TooLong("no"), Unavailable("no"), Overloaded("429", retry_after_s=1.0)]
)
async def test_what_a_service_rejects_costs_nothing(error: Exception) -> None:
    meter = _meter(SpendingLimit(cost=1_000))
    with pytest.raises(type(error)):
        await _count(meter, error)
    assert meter.rows() == ()


@pytest.mark.parametrize(
    "error",
    [
        Overloaded("No reply in time.", may_cost=True),
        Refused("Withheld.", may_cost=True),
        asyncio.CancelledError(),
        ValueError("a bug"),
        None,
    ],
)
async def test_what_may_have_to_be_paid_for_is_counted_at_its_most(error: BaseException | None) -> None:
    meter = _meter()
    if error is None:
        await _count(meter, None)
    else:
        with pytest.raises(type(error)):
            await _count(meter, error)
    assert meter.rows() == (replace(ROW, n_interrupted=1, interrupted_tokens=MOST, interrupted_cost=10 + 200),)


async def test_a_call_without_a_price_is_counted_as_such() -> None:
    meter = _meter()
    await _count(meter, TokenCount(input=3), UNPRICED)
    assert [(row.n_unpriced, row.cost, row.tokens.input) for row in meter.rows()] == [(1, 0, 3)]


async def test_children_count_for_their_parents_under_their_own_subjects() -> None:
    engine = _meter(subject="")
    one, other = engine.child("Who?"), engine.child("Where?")
    await asyncio.gather(
        _count(one, TokenCount(input=1)), _count(other, TokenCount(input=2)), _count(one.child(), TokenCount(input=4))
    )
    assert [(row.subject, row.cost, row.n_calls) for row in one.rows()] == [("Who?", 5, 2)]
    assert [(row.subject, row.cost, row.n_calls) for row in other.rows()] == [("Where?", 2, 1)]
    assert [(row.subject, row.cost, row.n_calls) for row in engine.rows()] == [("", 7, 3)]
    assert one.child().subject == "Who?"


async def test_a_budget_covers_all_children() -> None:
    engine = _meter(SpendingLimit(calls=2))
    await _count(engine.child("a"), TokenCount())
    await _count(engine.child("b").child(), TokenCount())
    with pytest.raises(OverBudget, match="2 calls is used up"):
        await _count(engine.child("c"), TokenCount())


async def test_a_call_counts_at_its_most_until_it_is_settled() -> None:
    budget = SpendingBudget(SpendingLimit(cost=300))
    meter = Meter(budget=budget)
    gate = asyncio.Event()

    async def work() -> TokenCount:
        await gate.wait()
        return TokenCount(input=10, output=1)

    tasks = [asyncio.create_task(meter.run(work, ATTEMPT, lambda tokens: tokens)) for _ in range(2)]
    await settle()
    assert budget.reserved == Amount(cost=210, tokens=110, calls=1)  # the second waits
    gate.set()
    await asyncio.gather(*tasks)
    assert budget.spent == Amount(cost=24, tokens=22, calls=2)
    assert budget.reserved == Amount()


async def test_interrupted_calls_use_up_a_budget() -> None:
    budget = SpendingBudget(SpendingLimit(cost=300))
    meter = Meter(budget=budget)
    with pytest.raises(Overloaded):
        await _count(meter, Overloaded("late", may_cost=True))
    with pytest.raises(OverBudget):
        await _count(meter, TokenCount())
    assert budget.spent.cost == 210


async def test_a_rejected_call_gives_its_reserve_back() -> None:
    budget = SpendingBudget(SpendingLimit(cost=300))
    meter = Meter(budget=budget)
    for _ in range(5):
        with pytest.raises(Overloaded):
            await _count(meter, Overloaded("429"))
    assert (budget.spent, budget.reserved) == (Amount(), Amount())


async def test_a_child_refused_by_its_parent_gives_its_own_reserve_back() -> None:
    own = SpendingBudget(SpendingLimit(calls=5))
    child = _meter(SpendingLimit(calls=0)).child("q", own)
    with pytest.raises(OverBudget):
        await _count(child, TokenCount())
    assert own.reserved == Amount()


async def test_a_call_cancelled_while_it_waits_for_a_budget_costs_nothing() -> None:
    budget = SpendingBudget(SpendingLimit(calls=1))
    meter = Meter(budget=budget)
    await budget.reserve(Amount(calls=1))
    waiting = asyncio.create_task(_count(meter, TokenCount()))
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (meter.rows(), budget.reserved) == ((), Amount(calls=1))


async def test_a_budget_in_money_needs_a_price() -> None:
    with pytest.raises(OverBudget, match=r"No price is known of fake/unknown.*\[\[price\]\]"):
        await _count(_meter(SpendingLimit(cost=1)), TokenCount(), UNPRICED)
    meter = _meter(SpendingLimit(tokens=1_000))
    await _count(meter, TokenCount(input=5), UNPRICED)
    assert meter.rows()[0].tokens.input == 5


async def test_tokens_are_estimated_only_where_it_matters() -> None:
    def never() -> TokenCount:
        raise AssertionError("counted")

    await _count(_meter(), TokenCount(input=5), replace(ATTEMPT, most=never))


def test_a_day_is_one_of_the_calendar() -> None:
    assert len(utc_day()) == len("2026-01-02")
