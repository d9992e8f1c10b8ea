"""Budget: how much of a ranking fits."""

from collections.abc import Iterable


def n_fitting(costs: Iterable[int], budget: int) -> int:
    """Return how many items, from the first on without a gap, cost no more than `budget` together.

    A prefix, not a knapsack: a smaller item never overtakes one that was ranked above it.
    """
    count = total = 0
    for cost in costs:
        total += cost
        if total > budget:
            break
        count += 1
    return count
