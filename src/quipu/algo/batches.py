"""Batches: a row of items cut at places the items themselves decide, so that one change moves few of the cuts.

A row too heavy for one batch is cut before the item with the lowest mark among those that leave enough on either side,
and each part in turn, as a treap would be (R. Seidel, C. Aragon, Randomized Search Trees, 1996). A mark is a digest of
its item, so an item more or less touches the batch it is in; cuts elsewhere stay, as nothing is counted from the start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Batch:
    """Items [start, end) of a row: a leaf, or what its parts, in order, add up to."""

    start: int
    end: int
    parts: tuple["Batch", ...] = ()

    @property
    def depth(self) -> int:
        """How many levels of batches are below and including this one."""
        return 1 + max((part.depth for part in self.parts), default=0)


def batch_tree(weights: Sequence[int], marks: Sequence[int], *, room: int, width: int) -> Batch:
    """Return the tree of batches over a row of at least one item, each with its weight and its mark.

    Leaves weigh at most `room`, but for a single item that weighs more; other batches have at most `width` parts, which
    is at least 2.
    """
    level = [Batch(start, end) for start, end in _cut(weights, marks, room)]
    while len(level) > 1:
        groups = _cut([1] * len(level), [marks[batch.start] for batch in level], width)
        level = [_joined(level[start:end]) for start, end in groups]
    return level[0]


def _joined(batches: Sequence[Batch]) -> Batch:
    return batches[0] if len(batches) == 1 else Batch(batches[0].start, batches[-1].end, tuple(batches))


def _cut(weights: Sequence[int], marks: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Return the spans of the parts of a row, in order."""
    before = [0, *accumulate(weights)]
    spans: list[tuple[int, int]] = []
    waiting = [(0, len(weights))]
    while waiting:
        start, end = waiting.pop()
        if before[end] - before[start] <= room or end - start == 1:
            spans.append((start, end))
        else:
            at = _place(before, marks, start, end, least=room // 4)
            waiting += [(at, end), (start, at)]
    return spans


def _place(before: Sequence[int], marks: Sequence[int], start: int, end: int, *, least: int) -> int:
    """Return before which item to cut: the lowest mark where both sides keep `least`, or else anywhere."""
    inside = range(start + 1, end)
    balanced = [at for at in inside if before[at] - before[start] >= least and before[end] - before[at] >= least]
    return min(balanced or inside, key=lambda at: (marks[at], at))
