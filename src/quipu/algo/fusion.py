"""Fusion: several rankings of the same kind made into one."""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")


def round_robin(rankings: Sequence[Sequence[T]], identity: Callable[[T], Hashable]) -> list[T]:
    """Take the first of each ranking in turn, then the second of each, and so on; of equal items the first stays.

    LightRAG's fusion of its local, global and vector results: it looks at ranks alone, so scores of different kinds
    never meet. Two items are equal where `identity` returns the same for both.
    """
    taken: dict[Hashable, T] = {}
    for rank in range(max(map(len, rankings), default=0)):
        for ranking in rankings:
            if rank < len(ranking):
                taken.setdefault(identity(ranking[rank]), ranking[rank])
    return list(taken.values())
