"""What a budget has spent and reserved, by its ledger, and what every ledger of several processes promises."""

import asyncio

import pytest

from quipu.errors import OverBudget
from quipu.model.usage import NOTHING, Amount, LedgerSums, SpendingLimit
from quipu.ports.store import SpendingLedger
from quipu.wrap.meter import SpendingBudget

CALL = Amount(cost=10, tokens=100, calls=1)


async def sums_of(budget: SpendingBudget) -> LedgerSums:
    """Return the sums of the ledger of a budget."""
    return await budget.ledger.add(LedgerSums())


async def check_one_budget(*ledgers: SpendingLedger) -> None:
    """Check that what one of two processes spends and reserves is missing for the other."""
    first, second = [SpendingBudget(SpendingLimit(calls=2), ledger) for ledger in ledgers]
    spent = Amount(cost=3, tokens=5, calls=1)
    await first.reserve(CALL)
    sums = await sums_of(second)
    assert (sums.spent, sums.reserved) == (NOTHING, CALL)
    first.settle(CALL, spent)
    await sums_of(first)  # what is settled is added before what is asked after it
    await second.reserve(CALL)
    second.settle(CALL, spent)
    await sums_of(second)
    sums = await sums_of(first)
    assert (sums.spent, sums.reserved) == (spent + spent, NOTHING)
    for budget in (first, second):
        with pytest.raises(OverBudget, match="2 calls is used up"):
            await budget.reserve(CALL)


async def check_waiting(*ledgers: SpendingLedger) -> None:
    """Check that a call waits for one of another process that may cost less than it has reserved."""
    first, second = [SpendingBudget(SpendingLimit(calls=1), ledger) for ledger in ledgers]
    await first.reserve(CALL)
    waiting = asyncio.create_task(second.reserve(CALL))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    first.settle(CALL, NOTHING)
    async with asyncio.timeout(60):
        await waiting
    assert (await sums_of(first)).reserved == CALL
