"""Leiden communities of a graph, level by level, computed from scratch or from an earlier partition.

V. A. Traag, L. Waltman, N. J. van Eck: From Louvain to Leiden: guaranteeing well-connected communities (2019). The
search itself is graspologic-native's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from quipu.algo.edge_list import EdgeList, Ints, induced_subgraphs, members_by_label
from quipu.algo.incremental_leiden import update_partition

VERSION = "leiden/1"
SEED = 20260521
RANDOMNESS = 0.001
N_ROUNDS = 3  # of the whole algorithm, each from the result of the last; more rounds hardly improve it
MAX_FREE = 0.5  # share of free nodes above which a community is divided from scratch
MIN_OVERLAP = 1 / 3  # Jaccard overlap from which a community counts as an earlier one


def leiden(graph: EdgeList, *, resolution: float = 1.0) -> Ints:
    """Return a community label for each node, [n]. A node without edges has a community of its own.

    Equal graphs get equal labels. Labels count from 0 in the order of their first nodes.
    """
    from graspologic_native import leiden as search  # noqa: PLC0415 - only a rebuild needs it

    labels = np.arange(graph.n)
    if len(graph.weights):
        names = [str(node) for node in range(graph.n)]
        ends = (map(names.__getitem__, side.tolist()) for side in (graph.sources, graph.targets))
        _, community_by_name = search(
            edges=list(zip(*ends, graph.weights.tolist(), strict=True)),
            starting_communities=None,
            resolution=resolution,
            randomness=RANDOMNESS,
            iterations=N_ROUNDS,
            use_modularity=True,
            seed=SEED,
            trials=1,
        )
        nodes = np.fromiter(map(int, community_by_name), np.int64, len(community_by_name))
        labels[nodes] = graph.n + np.fromiter(community_by_name.values(), np.int64, len(community_by_name))
    return renumbered(labels)


def renumbered(labels: Ints) -> Ints:
    """Return the same partition with labels from 0, in the order of their first nodes."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


@dataclass(frozen=True, slots=True)
class Community:
    """One community: its `nodes` [n], ascending, and the position of its parent in the list, -1 for none.

    `previous` is the number of the earlier community it continues, -1 for a new one. `is_finest` says that it has no
    community below it.
    """

    level: int
    parent: int
    nodes: Ints
    previous: int
    is_finest: bool


@dataclass(frozen=True, slots=True)
class PreviousPartition:
    """An earlier partition: for each level [n], the number of each node's community, -1 for none.

    `free` [n] marks the nodes that may move. Every node without a community must be free.
    """

    levels: Sequence[Ints]
    free: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Subgraph:
    """A community that is divided next: its position, level and nodes, the graph among them, its earlier number."""

    position: int
    level: int
    nodes: Ints
    graph: EdgeList
    previous: int


def hierarchical_leiden(
    graph: EdgeList, *, max_size: int, previous: PreviousPartition | None = None
) -> list[Community]:
    """Return the communities of every node, coarsest level first, each after its parent.

    A community of more than `max_size` nodes is divided again where possible. So is a smaller one that was divided in
    the previous partition, as an imported partition may have it.
    """
    communities: list[Community] = []
    pending = [_Subgraph(-1, 0, np.arange(graph.n), graph, -1)] if graph.n else []
    while pending:
        next_level: list[_Subgraph] = []
        for subgraph in pending:
            labels, number_by_label = _divide(subgraph, previous)
            parts = members_by_label(labels)
            if len(parts) == 1 and subgraph.level:
                communities[subgraph.position] = replace(communities[subgraph.position], is_finest=True)
                continue
            for part, part_graph in zip(parts, induced_subgraphs(subgraph.graph, parts), strict=True):
                is_finest = len(part) <= max_size and not _was_divided(subgraph, part, previous)
                number = number_by_label.get(int(labels[part[0]]), -1)
                nodes, level = subgraph.nodes[part], subgraph.level
                communities.append(Community(level, subgraph.position, nodes, number, is_finest))
                if not is_finest:
                    next_level.append(_Subgraph(len(communities) - 1, level + 1, nodes, part_graph, number))
        pending = next_level
    return communities


def _was_divided(subgraph: _Subgraph, part: Ints, previous: PreviousPartition | None) -> bool:
    """Return whether the nodes of a part were in several communities of the level below."""
    if previous is None or subgraph.level + 1 >= len(previous.levels):
        return False
    below = previous.levels[subgraph.level + 1][subgraph.nodes[part]]
    return len(np.unique(below[below >= 0])) > 1


def _divide(subgraph: _Subgraph, previous: PreviousPartition | None) -> tuple[Ints, dict[int, int]]:
    """Return a label for each node of the subgraph, and the earlier community that each label continues."""
    level = subgraph.level
    if previous is None or level >= len(previous.levels) or (level and subgraph.previous < 0):
        return leiden(subgraph.graph), {}
    numbers = previous.levels[level][subgraph.nodes]
    if level:  # a node from another parent was in none of these communities
        numbers = np.where(previous.levels[level - 1][subgraph.nodes] == subgraph.previous, numbers, -1)
    free = previous.free[subgraph.nodes] | (numbers < 0)
    if np.count_nonzero(free) > MAX_FREE * len(free):
        labels = leiden(subgraph.graph)
        sizes = np.bincount(previous.levels[level][previous.levels[level] >= 0])
        return labels, match_communities(labels, numbers, sizes)
    distinct, compact = np.unique(numbers[numbers >= 0], return_inverse=True)
    start = np.full(len(numbers), -1, dtype=np.int64)
    start[numbers >= 0] = compact
    labels = update_partition(subgraph.graph, start, free)
    return labels, {label: int(number) for label, number in enumerate(distinct)}


def match_communities(labels: Ints, numbers: Ints, sizes: Ints) -> dict[int, int]:
    """Return, for each label, the number of the earlier community it overlaps most; no number is used twice.

    `numbers` [n] are the earlier communities of the nodes (-1 for none), and `sizes` their sizes, by number. The
    largest Jaccard overlap is matched first, then the lower number, then the lower label.
    """
    had_community = numbers >= 0
    pairs, common = np.unique(np.stack([labels[had_community], numbers[had_community]]), axis=1, return_counts=True)
    label_sizes = np.bincount(labels)
    overlap = common / (label_sizes[pairs[0]] + sizes[pairs[1]] - common)
    number_by_label: dict[int, int] = {}
    matched_numbers: set[int] = set()
    for index in np.lexsort((pairs[0], pairs[1], -overlap.round(9))).tolist():
        label, number = int(pairs[0, index]), int(pairs[1, index])
        if overlap[index] >= MIN_OVERLAP and label not in number_by_label and number not in matched_numbers:
            number_by_label[label] = number
            matched_numbers.add(number)
    return number_by_label
