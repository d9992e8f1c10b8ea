"""Pairs: an undirected weighted graph as arrays, and its parts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A graph of `n` nodes: each linked pair once, `sources < targets`, ordered by both; `weights` > 0; all [m]."""

    n: int
    sources: Ints
    targets: Ints
    weights: Floats

    def degrees(self) -> Floats:
        """Return the weight of all links of each node, [n]."""
        ends = np.concatenate([self.sources, self.targets])
        return np.bincount(ends, weights=np.tile(self.weights, 2), minlength=self.n).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Rows:
    """The same graph by node: links of node i are [starts[i], starts[i + 1]) of `ends` and `weights`, by end."""

    starts: Ints
    ends: Ints
    weights: Floats


def rows_of(pairs: Pairs) -> Rows:
    """Return the links of each node, both ways."""
    here, there = np.concatenate([pairs.sources, pairs.targets]), np.concatenate([pairs.targets, pairs.sources])
    order = np.lexsort((there, here))
    starts = np.searchsorted(here[order], np.arange(pairs.n + 1))
    return Rows(starts, there[order], np.tile(pairs.weights, 2)[order])


def pairs_of(n: int, first: Ints, second: Ints, weights: Floats) -> Pairs:
    """Return the graph of these links, in any order and either direction; those of one pair are added up.

    A link of a node to itself is left out.
    """
    codes = np.minimum(first, second) * max(n, 1) + np.maximum(first, second)
    is_pair = first != second
    unique, at = np.unique(codes[is_pair], return_inverse=True)
    summed = np.bincount(at, weights=weights[is_pair], minlength=len(unique)).astype(np.float64)
    return Pairs(n, unique // max(n, 1), unique % max(n, 1), summed)


def parts_of(labels: Ints) -> list[Ints]:
    """Return the nodes of each label, rising; parts are ordered by their first node."""
    order = np.argsort(labels, kind="stable")
    if not len(order):
        return []
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return sorted(np.split(order, cuts), key=lambda part: int(part[0]))


def inside(pairs: Pairs, parts: Sequence[Ints]) -> list[Pairs]:
    """Return the graph within each of these parts, its nodes numbered by their place in the part."""
    part_of, place = np.full(pairs.n, -1, dtype=np.int64), np.zeros(pairs.n, dtype=np.int64)
    for number, part in enumerate(parts):
        part_of[part], place[part] = number, np.arange(len(part))
    at = part_of[pairs.sources]
    kept = np.flatnonzero((at >= 0) & (at == part_of[pairs.targets]))
    order = kept[np.argsort(at[kept], kind="stable")]
    cuts = np.searchsorted(at[order], np.arange(len(parts) + 1))
    sources, targets, weights = place[pairs.sources[order]], place[pairs.targets[order]], pairs.weights[order]
    ranges = [slice(start, end) for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]
    return [
        Pairs(len(part), sources[some], targets[some], weights[some]) for part, some in zip(parts, ranges, strict=True)
    ]


def components(pairs: Pairs) -> Ints:
    """Return the first node of the component of each node, [n]."""
    first = np.arange(pairs.n)
    while True:
        low = np.minimum(first[pairs.sources], first[pairs.targets])
        lowered = first.copy()
        for ends in (pairs.sources, pairs.targets, first[pairs.sources], first[pairs.targets]):
            np.minimum.at(lowered, ends, low)
        while not np.array_equal(lowered, lowered[lowered]):
            lowered = lowered[lowered]
        if np.array_equal(lowered, first):
            return first
        first = lowered


def modularity(pairs: Pairs, labels: Ints, resolution: float = 1.0) -> float:
    """Return the modularity of a partition (Newman, 2004); 0 for a graph without links."""
    total = float(pairs.weights.sum())
    if not total:
        return 0.0
    is_inside = labels[pairs.sources] == labels[pairs.targets]
    by_label = np.bincount(labels, weights=pairs.degrees())
    return float(pairs.weights[is_inside].sum() / total - resolution * np.square(by_label / (2 * total)).sum())
