"""What a budget has spent and reserved, by its ledger."""

from quipu.model.usage import LedgerSums
from quipu.wrap.meter import SpendingBudget


async def sums_of(budget: SpendingBudget) -> LedgerSums:
    """Return the sums of the ledger of a budget."""
    return await budget.ledger.add(LedgerSums())
