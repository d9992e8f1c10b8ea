"""Content-defined batches: a sequence is cut where its own elements decide, so that one change moves few cuts.

A sequence that is too heavy for one batch is cut before the element with the lowest mark among those that leave enough
on both sides; then each part is cut in the same way, as in a treap (R. Seidel, C. Aragon, Randomized Search Trees,
1996). A mark is a digest of its element. So an added or removed element changes only its own batch: nothing is counted
from the start of the sequence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Batch:
    """Elements [start, end) of a sequence: a leaf, or a node whose `parts` cover that range in order."""

    start: int
    end: int
    parts: tuple["Batch", ...] = ()

    @property
    def depth(self) -> int:
        """How many levels the tree below this batch has, this one included."""
        return 1 + max((part.depth for part in self.parts), default=0)


def batch_tree(weights: Sequence[int], marks: Sequence[int], *, room: int, width: int) -> Batch:
    """Return the tree of batches over a sequence of one or more elements, each with its weight and its mark.

    A leaf weighs at most `room`, unless it is a single heavier element. Other nodes have at most `width` parts;
    `width` is at least 2.
    """
    level = [Batch(start, end) for start, end in _leaf_spans(weights, marks, room)]
    while len(level) > 1:
        groups = _leaf_spans([1] * len(level), [marks[batch.start] for batch in level], width)
        level = [_parent(level[start:end]) for start, end in groups]
    return level[0]


def _parent(batches: Sequence[Batch]) -> Batch:
    return batches[0] if len(batches) == 1 else Batch(batches[0].start, batches[-1].end, tuple(batches))


def _leaf_spans(weights: Sequence[int], marks: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Return the spans of the leaves, in order."""
    cumulative = [0, *accumulate(weights)]
    spans: list[tuple[int, int]] = []
    stack = [(0, len(weights))]
    while stack:
        start, end = stack.pop()
        if cumulative[end] - cumulative[start] <= room or end - start == 1:
            spans.append((start, end))
        else:
            cut = _cut_point(cumulative, marks, start, end, min_weight=room // 4)
            stack += [(cut, end), (start, cut)]
    return spans


def _cut_point(cumulative: Sequence[int], marks: Sequence[int], start: int, end: int, *, min_weight: int) -> int:
    """Return the position with the lowest mark among those where both sides keep `min_weight`, or among all."""
    inside = range(start + 1, end)
    balanced = [
        cut
        for cut in inside
        if cumulative[cut] - cumulative[start] >= min_weight and cumulative[end] - cumulative[cut] >= min_weight
    ]
    return min(balanced or inside, key=lambda cut: (marks[cut], cut))
