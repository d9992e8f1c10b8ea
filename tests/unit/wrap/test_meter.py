"""Meter: what calls cost, call by call."""

import asyncio
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.errors import OverBudget, Overloaded, Refused, TooLong, Unavailable
from quipu.model.chat import TokenCount
from quipu.model.event import DocumentDone, Event, Progress, Spending, ignore_event
from quipu.model.usage import MICRO, NOTHING, Amount, LedgerSums, SpendingLimit, Stage, UsageRow
from quipu.wrap.meter import Meter, MeteredCall, SpendingBudget, utc_day
from tests.spending import sums_of
from tests.unit.wrap.fakes import PRICING, UNKNOWN_PRICE, settle
from tests.unit.wrap.virtual_time import run

MOST = TokenCount(input=10, output=100)
CALL = MeteredCall(stage=Stage.EXTRACT, pricing=PRICING, max_tokens=lambda: MOST, subject="a.md")
UNPRICED = replace(CALL, pricing=UNKNOWN_PRICE)
ROW = UsageRow(day="2026-01-02", stage=Stage.EXTRACT, model="fake/model", subject="a.md")


def _meter(limit: SpendingLimit | None = None, subject: str | None = None) -> Meter:
    budget = SpendingBudget(limit) if limit else None
    return Meter(subject=subject, budget=budget, today=lambda: "2026-01-02")


async def _count(meter: Meter, outcome: TokenCount | BaseException | None, attempt: MeteredCall = CALL) -> None:
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
    await _count(meter, TokenCount(output=1), replace(CALL, stage=Stage.SUMMARISE))
    assert [(row.stage, row.n_calls, row.cost) for row in meter.rows()] == [("extract", 3, 9), ("summarise", 1, 2)]


async def test_events_tell_what_this_meter_and_its_children_have_counted_so_far() -> None:
    events: list[Event] = []
    parent = _meter()
    meter = parent.child("")
    on_event = meter.counting(events.append)
    await _count(parent, TokenCount(input=100))
    on_event(Progress(stage="extract", n_done=0, n_total=2, document_id="a.md"))
    await _count(meter.child("a.md"), TokenCount(input=12, output=30))
    await _count(meter, None)
    on_event(DocumentDone(document_id="a.md", status="ready"))
    first, last = events
    assert first == Progress(stage="extract", n_done=0, n_total=2, document_id="a.md")
    n_tokens = 42 + MOST.input + MOST.output  # an interrupted call may have taken the most
    assert last.spent == Spending(n_calls=2, n_tokens=n_tokens, cost=72 + 210)
    assert meter.counting(ignore_event) is ignore_event


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

    tasks = [asyncio.create_task(meter.run(work, CALL, lambda tokens: tokens)) for _ in range(2)]
    await settle()
    assert (await sums_of(budget)).reserved == Amount(cost=210, tokens=110, calls=1)  # the second waits
    gate.set()
    await asyncio.gather(*tasks)
    assert await sums_of(budget) == LedgerSums(spent=Amount(cost=24, tokens=22, calls=2))


async def test_interrupted_calls_use_up_a_budget() -> None:
    budget = SpendingBudget(SpendingLimit(cost=300))
    meter = Meter(budget=budget)
    with pytest.raises(Overloaded):
        await _count(meter, Overloaded("late", may_cost=True))
    with pytest.raises(OverBudget):
        await _count(meter, TokenCount())
    assert (await sums_of(budget)).spent.cost == 210


async def test_a_rejected_call_gives_its_reserve_back() -> None:
    budget = SpendingBudget(SpendingLimit(cost=300))
    meter = Meter(budget=budget)
    for _ in range(5):
        with pytest.raises(Overloaded):
            await _count(meter, Overloaded("429"))
    assert await sums_of(budget) == LedgerSums()


async def test_a_child_refused_by_its_parent_gives_its_own_reserve_back() -> None:
    own = SpendingBudget(SpendingLimit(calls=5))
    child = _meter(SpendingLimit(calls=0)).child("q", own)
    with pytest.raises(OverBudget):
        await _count(child, TokenCount())
    assert (await sums_of(own)).reserved == Amount()


async def test_a_call_cancelled_while_it_waits_for_a_budget_costs_nothing() -> None:
    budget = SpendingBudget(SpendingLimit(calls=1))
    meter = Meter(budget=budget)
    await budget.reserve(Amount(calls=1))
    waiting = asyncio.create_task(_count(meter, TokenCount()))
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (meter.rows(), (await sums_of(budget)).reserved) == ((), Amount(calls=1))


async def test_a_budget_in_money_needs_a_price() -> None:
    with pytest.raises(OverBudget, match=r"No price is known for fake/unknown.*\[\[price\]\]"):
        await _count(_meter(SpendingLimit(cost=1)), TokenCount(), UNPRICED)
    meter = _meter(SpendingLimit(tokens=1_000))
    await _count(meter, TokenCount(input=5), UNPRICED)
    assert meter.rows()[0].tokens.input == 5


async def test_tokens_are_estimated_only_where_it_matters() -> None:
    def never() -> TokenCount:
        raise AssertionError("counted")

    await _count(_meter(), TokenCount(input=5), replace(CALL, max_tokens=never))


def test_a_day_is_one_of_the_calendar() -> None:
    assert len(utc_day()) == len("2026-01-02")


def _amount(n: int) -> Amount:
    return Amount(cost=n, tokens=n, calls=n)


async def test_what_is_reserved_is_given_back_and_what_was_spent_stays() -> None:
    budget = SpendingBudget(SpendingLimit(cost=10))
    await budget.reserve(_amount(8))
    assert await sums_of(budget) == LedgerSums(reserved=_amount(8), spent=NOTHING)
    budget.settle(_amount(8), _amount(3))
    assert await sums_of(budget) == LedgerSums(reserved=NOTHING, spent=_amount(3))


@pytest.mark.parametrize("limit", [SpendingLimit(cost=10), SpendingLimit(tokens=10), SpendingLimit(calls=10)])
async def test_each_kind_of_limit_holds(limit: SpendingLimit) -> None:
    budget = SpendingBudget(limit)
    await budget.reserve(_amount(10))
    budget.settle(_amount(10), _amount(10))
    with pytest.raises(OverBudget):
        await budget.reserve(_amount(1))


async def test_without_a_limit_all_fits() -> None:
    budget = SpendingBudget(SpendingLimit())
    await budget.reserve(_amount(10**12))
    assert (await sums_of(budget)).reserved == _amount(10**12)


async def test_a_call_waits_for_those_in_flight_where_they_may_leave_enough() -> None:
    budget = SpendingBudget(SpendingLimit(cost=10))
    await budget.reserve(_amount(8))
    waiting = asyncio.create_task(budget.reserve(_amount(8)))
    await settle()
    assert not waiting.done()
    budget.settle(_amount(8), _amount(1))
    await waiting
    assert (await sums_of(budget)).reserved == _amount(8)


async def test_a_call_that_waited_in_vain_is_refused() -> None:
    budget = SpendingBudget(SpendingLimit(cost=10))
    await budget.reserve(_amount(8))
    waiting = asyncio.create_task(budget.reserve(_amount(8)))
    await settle()
    budget.settle(_amount(8), _amount(8))
    with pytest.raises(OverBudget):
        await waiting


async def test_what_can_never_fit_is_refused_at_once() -> None:
    budget = SpendingBudget(SpendingLimit(cost=10))
    await budget.reserve(_amount(8))
    with pytest.raises(OverBudget):
        await budget.reserve(_amount(11))


@pytest.mark.parametrize(
    ("limit", "spent", "most", "message"),
    [
        (
            SpendingLimit(cost=5 * MICRO, currency="EUR"),
            Amount(cost=4_980_000, calls=1_234),
            Amount(cost=50_000, calls=1),
            r"The budget of 5\.00 EUR does not allow another call: 4\.98 EUR spent in 1,234 calls, 0\.02 EUR left, "
            r"and the next call may take 0\.05 EUR\. Everything paid for is kept: .*--budget 5\.00",
        ),
        (
            SpendingLimit(tokens=1_000),
            Amount(tokens=1_100, calls=1),
            Amount(tokens=300, calls=1),
            r"The budget of 1,000 tokens does not allow another call: 1,100 tokens spent in 1 call, 0 tokens left",
        ),
        (SpendingLimit(calls=2), Amount(calls=2), Amount(calls=1), r"The budget of 2 calls is used up\."),
    ],
)
async def test_the_message_says_what_was_spent_and_what_to_do(
    limit: SpendingLimit, spent: Amount, most: Amount, message: str
) -> None:
    budget = SpendingBudget(limit)
    budget.settle(NOTHING, spent)
    with pytest.raises(OverBudget, match=message):
        await budget.reserve(most)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), limit=st.integers(0, 200), n_calls=st.integers(1, 40))
def test_no_history_goes_over_the_limit(seed: int, limit: int, n_calls: int) -> None:
    """Calls of random cost, length and fate run at once; some cost more than estimated, by an error that is known."""

    async def scenario() -> None:
        rng = random.Random(seed)
        budget, errors, refused = SpendingBudget(SpendingLimit(cost=limit)), list[int](), list[int]()

        async def call() -> None:
            most = rng.randint(0, 60)
            actual = rng.choice([0, rng.randint(0, most), most, most + 5])
            try:
                await budget.reserve(Amount(cost=most))
            except OverBudget:
                assert (await sums_of(budget)).spent.cost + most > limit
                refused.append(most)
                return
            sums = await sums_of(budget)
            assert sums.spent.cost + sums.reserved.cost <= limit + sum(errors)
            try:
                await asyncio.sleep(rng.choice([0.0, 0.1, 1.0]))
            except asyncio.CancelledError:
                actual = most  # may have been paid for
                raise
            finally:
                errors.append(max(actual - most, 0))
                budget.settle(Amount(cost=most), Amount(cost=actual))

        tasks = [asyncio.create_task(call()) for _ in range(n_calls)]
        for task in tasks:
            if rng.random() < 0.2:
                asyncio.get_running_loop().call_later(rng.choice([0.0, 0.1, 1.0]), task.cancel)
        await asyncio.wait(tasks)
        assert [task.exception() for task in tasks if not task.cancelled() and task.exception()] == []
        sums = await sums_of(budget)
        assert sums.reserved == NOTHING
        assert sums.spent.cost <= limit + sum(errors)

    run(scenario())
