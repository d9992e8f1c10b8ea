"""The ledger of workers: what all of them spend counts for each, as long as one of them works."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.errors import Unavailable
from quipu.model.usage import NOTHING, Amount, LedgerSums, SpendingByWorker, SpendingLimit
from quipu.ports.store import WorkerLedger
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.wrap.meter import SpendingBudget
from tests.spending import CALL, check_one_budget, check_waiting, sums_of

SPENT = Amount(cost=3, tokens=5, calls=1)


class Workers:
    """Opens stores of one index, each with an owner of its own, as in as many processes."""

    def __init__(self, database: Path, stack: AsyncExitStack) -> None:
        self._database, self._stack = database, stack

    async def store(self, lease_s: float = 60.0) -> RelationalStore:
        store = RelationalStore(SqliteBackend(self._database, busy_timeout_s=5.0), lease_s=lease_s)
        self._stack.push_async_callback(store.close)
        await store.prepare()
        return store

    async def ledger(self, lease_s: float = 60.0) -> WorkerLedger:
        return (await self.store(lease_s)).worker_ledger()


@pytest.fixture
async def workers(database: Path) -> AsyncIterator[Workers]:
    async with AsyncExitStack() as stack:
        yield Workers(database, stack)


async def test_what_one_worker_spends_and_reserves_is_missing_for_another(workers: Workers) -> None:
    await check_one_budget(await workers.ledger(), await workers.ledger())


async def test_a_call_waits_for_one_of_another_worker_that_may_cost_less(workers: Workers) -> None:
    await check_waiting(await workers.ledger(), await workers.ledger())


async def test_many_calls_at_once_never_exceed_the_limit(workers: Workers) -> None:
    budgets = [SpendingBudget(SpendingLimit(calls=7), await workers.ledger()) for _ in range(3)]
    outcomes = await asyncio.gather(*(budget.reserve(CALL) for budget in budgets * 2), return_exceptions=True)
    assert outcomes == [None] * 6
    for budget in budgets * 2:
        budget.settle(CALL, SPENT)
    for budget in budgets:
        await sums_of(budget)
    assert await sums_of(budgets[0]) == LedgerSums(spent=Amount(cost=18, tokens=30, calls=6), n_workers=3)


async def test_a_reservation_that_is_cancelled_is_taken_back(workers: Workers) -> None:
    budget = SpendingBudget(SpendingLimit(calls=5), await workers.ledger())
    for n_steps in range(6):
        call = asyncio.create_task(budget.reserve(CALL))
        for _ in range(n_steps):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert (await sums_of(budget)).reserved == NOTHING


async def test_what_a_dead_worker_had_reserved_counts_as_spent(workers: Workers) -> None:
    await (dead := await workers.store()).worker_ledger().add(LedgerSums(spent=SPENT, reserved=CALL))
    heir = await workers.ledger()
    await heir.add(LedgerSums())
    await dead.close()
    assert await heir.add(LedgerSums()) == LedgerSums(spent=SPENT + CALL, n_workers=1)


async def test_a_worker_on_another_machine_is_dead_when_its_lease_has_ended(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.stores.relational.jobs.is_dead", lambda _: False)
    remote, here = await workers.ledger(lease_s=0.3), await workers.ledger()
    await remote.add(LedgerSums(reserved=CALL))
    assert (await here.add(LedgerSums())).reserved == CALL
    await asyncio.sleep(0.4)
    assert await here.add(LedgerSums()) == LedgerSums(spent=CALL, n_workers=1)
    await remote.add(LedgerSums(spent=SPENT, reserved=NOTHING - CALL))  # it only slept: its call has been counted
    sums = await here.add(LedgerSums())
    assert (sums.spent + sums.reserved, sums.n_workers) == (SPENT, 2)


async def test_what_was_spent_is_forgotten_with_the_last_worker(workers: Workers) -> None:
    first, second = await workers.ledger(), await workers.ledger()
    await first.add(LedgerSums(spent=SPENT))
    await second.add(LedgerSums(spent=SPENT))
    await first.leave()
    assert await second.add(LedgerSums()) == LedgerSums(spent=SPENT + SPENT, n_workers=1)
    await first.add(LedgerSums())  # begins again while the other works
    await second.leave()
    assert (await first.add(LedgerSums())).spent == SPENT + SPENT
    await first.leave()
    await first.leave()  # once is enough
    assert (await first.add(LedgerSums())).spent == NOTHING


async def test_a_copy_has_no_workers(workers: Workers, tmp_path: Path) -> None:
    store = await workers.store()
    await store.worker_ledger().add(LedgerSums(spent=SPENT, reserved=CALL))
    copy = RelationalStore(SqliteBackend(tmp_path / "copy.sqlite", busy_timeout_s=5.0), lease_s=60.0)
    await store.copy_to(copy)
    await copy.prepare()
    await copy.worker_ledger().add(LedgerSums())
    assert await copy.worker_ledger().add(LedgerSums()) == LedgerSums(n_workers=1)
    await copy.close()


_SUMS = st.builds(Amount, cost=st.integers(0, 9), tokens=st.integers(0, 9), calls=st.integers(0, 1))
_STEPS = st.lists(st.tuples(st.sampled_from("abc"), _SUMS, st.booleans()), max_size=30)


@given(steps=_STEPS, limit=st.integers(0, 40))
def test_no_order_of_calls_and_deaths_exceeds_the_limit_or_loses_what_was_spent(
    steps: list[tuple[str, Amount, bool]], limit: int
) -> None:
    workers = SpendingByWorker({})
    expected = NOTHING
    for name, amount, ends in steps:
        before = SpendingByWorker.from_json(workers.to_json()).add(name, LedgerSums(), SpendingLimit(), 1.0)
        change = LedgerSums(reserved=amount)
        workers.add(name, change, SpendingLimit(cost=limit), 1.0)
        expected += amount if before.fits(change, SpendingLimit(cost=limit)) else NOTHING
        if ends:
            workers.end([name])
        expected = expected if workers.entries else NOTHING
        sums = SpendingByWorker.from_json(workers.to_json()).add("z", LedgerSums(), SpendingLimit(), 1.0)
        assert sums.spent + sums.reserved == expected
        assert expected.cost <= limit


async def test_leaving_waits_for_what_is_being_settled(workers: Workers) -> None:
    first, second = await workers.ledger(), await workers.ledger()
    await second.add(LedgerSums())
    await first.add(LedgerSums(reserved=CALL))
    first.settle(LedgerSums(spent=SPENT, reserved=NOTHING - CALL))
    await first.leave()
    assert await second.add(LedgerSums()) == LedgerSums(spent=SPENT, n_workers=1)


async def test_a_call_that_cannot_be_settled_stays_reserved(workers: Workers) -> None:
    store = await workers.store()
    ledger, other = store.worker_ledger(), await workers.ledger()
    await other.add(LedgerSums())
    await ledger.add(LedgerSums(reserved=CALL))
    await store.close()
    ledger.settle(LedgerSums(spent=SPENT, reserved=NOTHING - CALL))
    with pytest.raises(Unavailable):
        await ledger.leave()
    assert await other.add(LedgerSums()) == LedgerSums(spent=CALL, n_workers=1)
