"""Fusion: several rankings of the same kind made into one."""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")


def round_robin(
    rankings: Sequence[Sequence[T]], identity: Callable[[T], Hashable], weights: Sequence[float] = ()
) -> list[T]:
    """Take the first of each ranking in turn, then the second of each, and so on; of equal items the first stays.

    LightRAG's fusion of its local, global and vector results: it looks at ranks alone, so scores of different kinds
    never meet. Two items are equal where `identity` returns the same for both.

    With `weights`, one a ranking and none below 0, the item at place r (from 1) of a ranking with weight w comes at
    r / w, equal ones in the order of the rankings: a ranking of weight 2 is taken from twice as often as one of weight
    1, one of weight 0 never. Raising a weight never moves an item of that ranking down past another's. Equal weights
    are turns.
    """
    turns = [
        (round(place / weight, 9), order, item)
        for order, (ranking, weight) in enumerate(zip(rankings, weights or [1.0] * len(rankings), strict=True))
        if weight > 0
        for place, item in enumerate(ranking, 1)
    ]
    taken: dict[Hashable, T] = {}
    for _, _, item in sorted(turns, key=lambda turn: turn[:2]):
        taken.setdefault(identity(item), item)
    return list(taken.values())
