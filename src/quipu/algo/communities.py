"""Communities: a graph divided level by level, anew or from how it was divided before."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quipu.algo.leiden import leiden
from quipu.algo.pairs import Ints, Pairs, inside, parts_of
from quipu.algo.settling import settle

MAX_FREE = 0.5  # of the nodes of a community: where more are free to move, it is divided anew
MIN_OVERLAP = 1 / 3  # of a community with one before (Jaccard), to be the same one


@dataclass(frozen=True, slots=True)
class Community:
    """Nodes that belong together, [n], rising; `parent` is the place of the community that holds it, -1 for none.

    `kept` is the number of the community it was before, -1 for a new one. It has no other below it where `is_finest`.
    """

    level: int
    parent: int
    nodes: Ints
    kept: int
    is_finest: bool


@dataclass(frozen=True, slots=True)
class Before:
    """How the nodes were divided before: for each level [n] the number of a node's community, -1 for none there.

    `free` [n] are the nodes that may move, among them all that had no community.
    """

    levels: Sequence[Ints]
    free: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Scope:
    """A community that is to be divided: its nodes, the graph within it, and its number before."""

    place: int
    level: int
    nodes: Ints
    pairs: Pairs
    kept: int


def divide(pairs: Pairs, *, max_size: int, before: Before | None = None) -> list[Community]:
    """Return the communities of every node, coarsest first, each after the one that holds it.

    Communities of more than `max_size` nodes are divided again, as far as that can be done; so are smaller ones that
    were before, as those of another system may be.
    """
    everything = np.arange(pairs.n)
    found: list[Community] = []
    scopes = [_Scope(-1, 0, everything, pairs, -1)] if pairs.n else []
    while scopes:
        below: list[_Scope] = []
        for scope in scopes:
            labels, kept = _divided(scope, before)
            parts = parts_of(labels)
            if len(parts) == 1 and scope.level:
                _mark_finest(found, scope.place)
                continue
            for part, graph in zip(parts, inside(scope.pairs, parts), strict=True):
                is_finest = len(part) <= max_size and not _was_divided(scope, part, before)
                number = kept.get(int(labels[part[0]]), -1)
                found.append(Community(scope.level, scope.place, scope.nodes[part], number, is_finest))
                if not is_finest:
                    below.append(_Scope(len(found) - 1, scope.level + 1, scope.nodes[part], graph, number))
        scopes = below
    return found


def _was_divided(scope: _Scope, part: Ints, before: Before | None) -> bool:
    """Say whether nodes that belong together were in several communities of the level below."""
    if before is None or scope.level + 1 >= len(before.levels):
        return False
    below = before.levels[scope.level + 1][scope.nodes[part]]
    return len(np.unique(below[below >= 0])) > 1


def _divided(scope: _Scope, before: Before | None) -> tuple[Ints, dict[int, int]]:
    """Return a label for each node of the scope, and which community before each label stands for."""
    if before is None or scope.level >= len(before.levels) or (scope.level and scope.kept < 0):
        return leiden(scope.pairs), {}
    old = before.levels[scope.level][scope.nodes]
    if scope.level:  # what came from elsewhere was in no part of this one
        old = np.where(before.levels[scope.level - 1][scope.nodes] == scope.kept, old, -1)
    free = before.free[scope.nodes] | (old < 0)
    if np.count_nonzero(free) > MAX_FREE * len(free):
        labels = leiden(scope.pairs)
        sizes = np.bincount(before.levels[scope.level][before.levels[scope.level] >= 0])
        return labels, matched(labels, old, sizes)
    known, compact = np.unique(old[old >= 0], return_inverse=True)
    start = np.full(len(old), -1, dtype=np.int64)
    start[old >= 0] = compact
    labels = settle(scope.pairs, start, free)
    return labels, {label: int(number) for label, number in enumerate(known)}


def matched(labels: Ints, old: Ints, old_sizes: Ints) -> dict[int, int]:
    """Return for labels the old one each has most in common with; none is given twice, -1 stands for none.

    The largest overlap (Jaccard) counts first, then the lower old label, then the lower new one.
    """
    is_known = old >= 0
    pairs, common = np.unique(np.stack([labels[is_known], old[is_known]]), axis=1, return_counts=True)
    sizes = np.bincount(labels)
    overlap = common / (sizes[pairs[0]] + old_sizes[pairs[1]] - common)
    given: dict[int, int] = {}
    taken: set[int] = set()
    for at in np.lexsort((pairs[0], pairs[1], -overlap.round(9))).tolist():
        label, number = int(pairs[0, at]), int(pairs[1, at])
        if overlap[at] >= MIN_OVERLAP and label not in given and number not in taken:
            given[label] = number
            taken.add(number)
    return given


def _mark_finest(found: list[Community], place: int) -> None:
    each = found[place]
    found[place] = Community(each.level, each.parent, each.nodes, each.kept, True)
