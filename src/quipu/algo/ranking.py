"""Rankings: cut them to a budget, merge several of them, and normalise their scores."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


def n_fitting(costs: Iterable[int], budget: int) -> int:
    """Return how many elements of a ranking fit into `budget`, counted from the first without a gap.

    The result is a prefix, not a knapsack: a smaller element never overtakes one that ranks above it.
    """
    count = total = 0
    for cost in costs:
        total += cost
        if total > budget:
            break
        count += 1
    return count


def round_robin(
    rankings: Sequence[Sequence[T]], identity: Callable[[T], Hashable], weights: Sequence[float] = ()
) -> list[T]:
    """Merge rankings in turns: the first of each ranking, then the second of each, and so on.

    Two elements are equal where `identity` returns the same for both; the first of equal ones stays. Only ranks count,
    so scores of different kinds are never compared. Source: LightRAG's fusion of its local, global and vector results.

    With `weights`, one for each ranking and none below 0, the element at rank r (from 1) of a ranking with weight w is
    placed at r / w; equal places follow the order of the rankings. A ranking of weight 2 gives twice as many elements
    as one of weight 1, and one of weight 0 gives none. A higher weight never moves an element of its ranking down.
    Equal weights give plain turns.
    """
    turns = [
        (round(rank / weight, 9), order, element)
        for order, (ranking, weight) in enumerate(zip(rankings, weights or [1.0] * len(rankings), strict=True))
        if weight > 0
        for rank, element in enumerate(ranking, 1)
    ]
    merged: dict[Hashable, T] = {}
    for _, _, element in sorted(turns, key=lambda turn: turn[:2]):
        merged.setdefault(identity(element), element)
    return list(merged.values())


def min_max_scaled(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return scores scaled so that the lowest is 0 and the highest is 1; all are 1 where all are equal."""
    if not len(scores):
        return scores
    lowest, span = scores.min(), scores.max() - scores.min()
    return (scores - lowest) / span if span > 0 else np.ones(len(scores))


def top_k(score_by_id: Mapping[str, float], k: int) -> list[tuple[str, float]]:
    """Return the `k` best ids with their scores, best first, equal scores by id."""
    return sorted(score_by_id.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
