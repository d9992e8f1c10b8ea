"""Budget: what is spent stays within a limit, whatever is in flight. All times are virtual."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.errors import OverBudget
from quipu.model.usage import MICRO, SpendingLimit
from quipu.wrap.budget import NOTHING, Amount, SpendingBudget
from tests.unit.wrap.fakes import settle
from tests.unit.wrap.virtual_time import run


def _amount(n: int) -> Amount:
    return Amount(cost=n, tokens=n, calls=n)


async def test_what_is_reserved_is_given_back_and_what_was_spent_stays() -> None:
    budget = SpendingBudget(SpendingLimit(cost=10))
    await budget.reserve(_amount(8))
    assert (budget.reserved, budget.spent) == (_amount(8), NOTHING)
    budget.settle(_amount(8), _amount(3))
    assert (budget.reserved, budget.spent) == (NOTHING, _amount(3))


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
    assert budget.reserved == _amount(10**12)


async def test_a_call_waits_for_those_in_flight_where_they_may_leave_enough() -> None:
    budget = SpendingBudget(SpendingLimit(cost=10))
    await budget.reserve(_amount(8))
    waiting = asyncio.create_task(budget.reserve(_amount(8)))
    await settle()
    assert not waiting.done()
    budget.settle(_amount(8), _amount(1))
    await waiting
    assert budget.reserved == _amount(8)


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
            SpendingLimit(cost=5 * MICRO),
            Amount(cost=4_980_000, calls=1_234),
            Amount(cost=50_000, calls=1),
            r"The budget of 5\.00 does not allow another call: 4\.98 spent in 1,234 calls, 0\.02 left, "
            r"and the next may take 0\.05\. Everything paid for is kept: .*--budget 5\.00",
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
                assert budget.spent.cost + most > limit
                refused.append(most)
                return
            assert budget.spent.cost + budget.reserved.cost <= limit + sum(errors)
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
        assert budget.reserved == NOTHING
        assert budget.spent.cost <= limit + sum(errors)

    run(scenario())
