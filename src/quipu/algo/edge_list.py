"""Undirected weighted graphs as arrays of edges: their subgraphs, components and modularity."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EdgeList:
    """A graph of `n` nodes: each edge once, with `sources < targets`, ordered by both; `weights` > 0; all [m]."""

    n: int
    sources: Ints
    targets: Ints
    weights: Floats

    def degrees(self) -> Floats:
        """Return the summed weight of each node's edges, [n]."""
        ends = np.concatenate([self.sources, self.targets])
        return np.bincount(ends, weights=np.tile(self.weights, 2), minlength=self.n).astype(np.float64)


def edge_list(n: int, first: Ints, second: Ints, weights: Floats) -> EdgeList:
    """Return the graph of these edges, given in any order and direction.

    Weights of the same pair are added. An edge from a node to itself is left out.
    """
    codes = np.minimum(first, second) * max(n, 1) + np.maximum(first, second)
    is_edge = first != second
    unique, inverse = np.unique(codes[is_edge], return_inverse=True)
    summed = np.bincount(inverse, weights=weights[is_edge], minlength=len(unique)).astype(np.float64)
    return EdgeList(n, unique // max(n, 1), unique % max(n, 1), summed)


def members_by_label(labels: Ints) -> list[Ints]:
    """Return the nodes of each label, ascending; the groups are ordered by their first node."""
    order = np.argsort(labels, kind="stable")
    if not len(order):
        return []
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return sorted(np.split(order, cuts), key=lambda members: int(members[0]))


def induced_subgraphs(graph: EdgeList, parts: Sequence[Ints]) -> list[EdgeList]:
    """Return the graph within each part; its nodes are numbered by their position in the part."""
    part_of, position = np.full(graph.n, -1, dtype=np.int64), np.zeros(graph.n, dtype=np.int64)
    for number, part in enumerate(parts):
        part_of[part], position[part] = number, np.arange(len(part))
    source_part = part_of[graph.sources]
    inner = np.flatnonzero((source_part >= 0) & (source_part == part_of[graph.targets]))
    order = inner[np.argsort(source_part[inner], kind="stable")]
    cuts = np.searchsorted(source_part[order], np.arange(len(parts) + 1)).tolist()
    sources, targets = position[graph.sources[order]], position[graph.targets[order]]
    weights = graph.weights[order]
    return [
        EdgeList(len(part), sources[start:end], targets[start:end], weights[start:end])
        for part, start, end in zip(parts, cuts[:-1], cuts[1:], strict=True)
    ]


def connected_components(graph: EdgeList) -> Ints:
    """Return, for each node [n], the first node of its component."""
    first = np.arange(graph.n)
    while True:
        low = np.minimum(first[graph.sources], first[graph.targets])
        lowered = first.copy()
        for ends in (graph.sources, graph.targets, first[graph.sources], first[graph.targets]):
            np.minimum.at(lowered, ends, low)
        while not np.array_equal(lowered, lowered[lowered]):
            lowered = lowered[lowered]
        if np.array_equal(lowered, first):
            return first
        first = lowered


def modularity(graph: EdgeList, labels: Ints, resolution: float = 1.0) -> float:
    """Return the modularity of a partition (Newman, 2004); 0 for a graph without edges."""
    total = float(graph.weights.sum())
    if not total:
        return 0.0
    is_inside = labels[graph.sources] == labels[graph.targets]
    by_label = np.bincount(labels, weights=graph.degrees())
    return float(graph.weights[is_inside].sum() / total - resolution * np.square(by_label / (2 * total)).sum())
