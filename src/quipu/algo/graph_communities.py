"""Communities of a graph in at most three levels, as a function of the graph alone that changes little with it.

1. The middle level: the largest clusters of at most 80 nodes in the Paris dendrogram (T. Bonald et al.:
   Hierarchical Graph Clustering using Node Pair Sampling, 2018), then some local moves of nodes between them.
2. Level 0: middle communities joined by modularity with local moves (V. D. Blondel et al.: Louvain, 2008).
3. The finest level: the largest clusters of at most 10 nodes in the Paris dendrogram of each middle community alone.

Deviations from the papers:
- Paris merges two clusters that are nearest to each other. Here all such pairs merge in one round (B. Sumengen et al.:
  Reciprocal Agglomerative Clustering, 2021), which gives the same dendrogram. A cluster with one neighbour joins it.
- In each round of moves, half of the nodes move at the same time; marks made from their names choose which half. The
  number of rounds is fixed. Louvain moves one node after the other until nothing changes.
So a change of the graph affects the communities near it, rather than everything that is visited after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from quipu.algo.edge_list import EdgeList, Floats, Ints, connected_components, members_by_label

Marks = npt.NDArray[np.uint64]

VERSION = "paris-louvain/1"
MAX_SIZE = 10  # nodes of a finest community, as in Microsoft GraphRAG; one that has no parts may be larger
MAX_MIDDLE = 80  # nodes of a middle community before nodes move between them
_NODE_ROUNDS, _JOIN_ROUNDS, _LAST_ROUNDS = 4, 6, 3  # of moves; more hardly raise modularity, and carry changes further
_MAX_PASSES = 5  # over graphs of groups; rarely reached
_MIN_GAIN = 1e-9  # share of a node's degree; a smaller gain is rounding
_NODE_MARGIN = (
    0.1  # share of a node's degree that a move between middle communities must gain, so that small changes move nothing
)


@dataclass(frozen=True, slots=True)
class Community:
    """One community: its `nodes` [n], ascending, and the position of its parent in the list, -1 for none.

    `is_finest` says that it has no community below it.
    """

    level: int
    parent: int
    nodes: Ints
    is_finest: bool


def find_communities(graph: EdgeList, marks: Marks) -> list[Community]:
    """Return the communities of every node, coarsest level first, each after its parent.

    `marks` [n] are hashes of the nodes' names: they decide between equal neighbours, so that the numbers of nodes have
    as little influence as possible. A node without edges is a community of its own.
    """
    links = _links(graph, marks)
    total = max(float(links.degrees.sum()), _MIN_GAIN)
    clusters = _paris_clusters(links, max_size=MAX_MIDDLE, min_similarity=1 / total)
    moved = _move(links, clusters, total, n_rounds=_NODE_ROUNDS, margin=_NODE_MARGIN)
    middle = _connected_groups(links, moved)
    coarse = _join(_contract(links, middle), total)[middle]
    return _as_tree([coarse, middle, _divide(links, middle)])


@dataclass(frozen=True, slots=True)
class _Links:
    """A graph of nodes or of groups: each edge in both directions, [m], ordered by `rows`, then by `columns`.

    `degrees` [n] also count the weight inside a group; `sizes` [n] are numbers of nodes, `marks` [n] their least mark.
    """

    rows: Ints
    columns: Ints
    weights: Floats
    degrees: Floats
    sizes: Ints
    marks: Marks


def _links(graph: EdgeList, marks: Marks) -> _Links:
    rows = np.concatenate([graph.sources, graph.targets])
    columns = np.concatenate([graph.targets, graph.sources])
    order = np.lexsort((columns, rows))
    weights = np.tile(graph.weights, 2)[order]
    return _Links(rows[order], columns[order], weights, graph.degrees(), np.ones(graph.n, dtype=np.int64), marks)


def _contract(links: _Links, groups: Ints) -> _Links:
    """Return the graph of these groups [n], which are numbered from 0."""
    n = int(groups.max(initial=-1)) + 1
    rows, columns = groups[links.rows], groups[links.columns]
    is_between = rows != columns
    pairs, weights = _sum_by_code(rows[is_between] * n + columns[is_between], links.weights[is_between])
    least = np.full(n, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(least, groups, links.marks)
    degrees = np.bincount(groups, weights=links.degrees, minlength=n).astype(np.float64)
    sizes = np.bincount(groups, weights=links.sizes, minlength=n).astype(np.int64)
    return _Links(pairs // max(n, 1), pairs % max(n, 1), weights, degrees, sizes, least)


def _sum_by_code(codes: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Return the distinct codes, ascending, and the sum of the weights of each."""
    order = np.argsort(codes, kind="stable")
    starts = _run_starts(codes[order])
    if not len(starts):
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    return codes[order][starts], np.add.reduceat(weights[order], starts)


def _run_starts(sorted_values: Ints) -> Ints:
    """Return where each run of equal values starts."""
    return np.flatnonzero(np.diff(sorted_values, prepend=-1)).astype(np.int64)


def _number(labels: Ints) -> Ints:
    """Return the same partition with numbers from 0, in the order of labels."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _paris_clusters(links: _Links, *, max_size: int, min_similarity: float = 0.0) -> Ints:
    """Return for each node the number of the largest cluster that holds it within two bounds, [n].

    A cluster has at most `max_size` nodes, and each of its merges had a higher similarity than `min_similarity`. The
    similarity of two clusters is the weight between them divided by the product of their degrees. Merging never raises
    it, so the dendrogram is unique. Nodes with one neighbour join it first, even above `max_size`.
    """
    n = len(links.degrees)
    current = _leaf_groups(links)  # the cluster of each node
    links = _contract(links, current)
    within = np.ones(len(links.degrees), dtype=np.bool_)  # clusters within the bounds
    final, n_final = np.full(n, -1, dtype=np.int64), 0
    while len(links.rows) and within.any():
        target, similarity = _merge_targets(links)
        groups = _number(target)
        links = _contract(links, groups)
        is_merged = target != np.arange(len(target))
        is_merged[target[is_merged]] = True
        parts_fit = within & (~is_merged | (similarity > min_similarity))
        next_within = np.bincount(groups, weights=~parts_fit) == 0
        next_within &= (links.sizes <= max_size) | (np.bincount(groups) == 1)
        is_left = (within & ~next_within[groups])[current]
        final[is_left] = n_final + current[is_left]
        n_final += len(target)
        current, within = groups[current], next_within
    return _number(np.where(final < 0, n_final + current, final))


def _leaf_groups(links: _Links) -> Ints:
    """Return groups [n] of each node and its neighbours that have no other neighbour."""
    n = len(links.degrees)
    n_neighbours = np.bincount(links.rows, minlength=n)
    leaves = np.flatnonzero(n_neighbours == 1)
    neighbours = links.columns[np.searchsorted(links.rows, leaves)]
    target = np.arange(n)
    is_pair = n_neighbours[neighbours] == 1
    target[leaves] = np.where(is_pair, np.minimum(leaves, neighbours), neighbours)
    return _number(target)


def _merge_targets(links: _Links) -> tuple[Ints, Floats]:
    """Return for each cluster the one it merges with (itself for none), and its highest similarity to another, [n].

    Similarities are compared in single precision, so that rounding makes no difference between equal ones. Then edges
    are ordered by the marks of their ends, so that long chains of equal edges merge in few rounds.
    """
    n = len(links.degrees)
    similarity = (links.weights / (links.degrees[links.rows] * links.degrees[links.columns])).astype(np.float32)
    starts = _run_starts(links.rows)
    counts = np.diff(np.append(starts, len(links.rows)))
    highest = np.maximum.reduceat(similarity, starts)
    is_highest = similarity == np.repeat(highest, counts)
    order = np.where(is_highest, _mixed(links.marks[links.rows] ^ links.marks[links.columns]), 0)
    edges = np.flatnonzero(is_highest & (order == np.repeat(np.maximum.reduceat(order, starts), counts)))
    clusters = links.rows[starts]
    nearest = np.arange(n)
    nearest[links.rows[edges][::-1]] = links.columns[edges][::-1]  # equal marks: the first
    target = np.where(nearest[nearest] == np.arange(n), np.minimum(nearest, np.arange(n)), np.arange(n))
    is_pair = nearest[nearest] == np.arange(n)
    ends = clusters[(counts == 1) & ~is_pair[clusters]]
    target[ends] = target[nearest[ends]]
    best = np.zeros(n)
    best[clusters] = highest
    return target, best


def _mixed(marks: Marks) -> Marks:
    """Return well mixed bits of each mark (the finaliser of MurmurHash3)."""
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53)):
        marks = (marks ^ (marks >> np.uint64(shift))) * np.uint64(factor)
    return marks ^ (marks >> np.uint64(33))


def _move(links: _Links, labels: Ints, total: float, *, n_rounds: int, margin: float = _MIN_GAIN) -> Ints:
    """Return the labels [n] after some rounds, in each of which half of the nodes move to where modularity gains most.

    A node moves if it gains more than `margin` times its degree. Equal gains are ordered by label.
    """
    degrees, n = links.degrees, len(links.degrees)
    if not len(links.rows):
        return labels
    for number in range(n_rounds):
        totals = np.bincount(labels, weights=degrees, minlength=n)
        codes, weights = _sum_by_code(links.rows * n + labels[links.columns], links.weights)
        nodes, candidates = codes // n, codes % n
        is_own = candidates == labels[nodes]
        gains = weights - degrees[nodes] * (totals[candidates] - np.where(is_own, degrees[nodes], 0)) / total
        staying = -degrees * (totals[labels] - degrees) / total
        staying[nodes[is_own]] = gains[is_own]
        gains[is_own] = -np.inf
        starts = _run_starts(nodes)
        highest = np.maximum.reduceat(gains, starts)
        best = np.flatnonzero(gains == np.repeat(highest, np.diff(np.append(starts, len(nodes)))))
        first = np.full(n, -1, dtype=np.int64)
        first[nodes[best][::-1]] = best[::-1]
        movers = nodes[starts][highest > staying[nodes[starts]] + margin * degrees[nodes[starts]]]
        halves = _mixed(links.marks + np.uint64(number // 2)) >> np.uint64(63)
        movers = movers[halves[movers] == number % 2]
        labels = labels.copy()
        labels[movers] = candidates[first[movers]]
    return labels


def _connected_groups(links: _Links, labels: Ints) -> Ints:
    """Return the connected parts of groups, [n], numbered from 0."""
    is_inside = (labels[links.rows] == labels[links.columns]) & (links.rows < links.columns)
    sources, targets, weights = (side[is_inside] for side in (links.rows, links.columns, links.weights))
    return _number(connected_components(EdgeList(len(labels), sources, targets, weights)))


def _join(links: _Links, total: float) -> Ints:
    """Return groups of middle communities [n]: joined as in Louvain, moved once more, and joined again."""
    labels = _louvain(links, total)
    labels = _connected_groups(links, _move(links, labels, total, n_rounds=_LAST_ROUNDS))
    return _connected_groups(links, _louvain(_contract(links, labels), total)[labels])


def _louvain(links: _Links, total: float) -> Ints:
    """Return groups [n] with high modularity: local moves from single nodes, then of the groups, and so on."""
    labels = np.arange(len(links.degrees))
    for _ in range(_MAX_PASSES):
        n = len(links.degrees)
        groups = _number(_move(links, np.arange(n), total, n_rounds=_JOIN_ROUNDS))
        if int(groups.max(initial=-1)) + 1 == n:
            break
        labels, links = groups[labels], _contract(links, groups)
    return labels


def _divide(links: _Links, middle: Ints) -> Ints:
    """Return the parts of communities with more than MAX_SIZE nodes, and the others, [n]; not numbered from 0."""
    is_large = np.bincount(middle)[middle] > MAX_SIZE
    is_inside = (middle[links.rows] == middle[links.columns]) & is_large[links.rows]
    rows, columns, weights = links.rows[is_inside], links.columns[is_inside], links.weights[is_inside]
    inner = replace(
        links,
        rows=rows,
        columns=columns,
        weights=weights,
        degrees=np.bincount(rows, weights=weights, minlength=len(middle)).astype(np.float64),
    )
    parts = _paris_clusters(inner, max_size=MAX_SIZE)
    return np.where(is_large, _join_single_nodes(inner, parts), len(middle) + middle)


def _join_single_nodes(links: _Links, parts: Ints) -> Ints:
    """Return the parts after each part of one node has joined the part of several that it has most weight with.

    Of equal ones it joins the smaller, then the first.
    """
    n, sizes = len(parts), np.bincount(parts)
    is_candidate = (sizes[parts[links.rows]] == 1) & (sizes[parts[links.columns]] > 1)
    rows, columns = links.rows[is_candidate], links.columns[is_candidate]
    codes, weights = _sum_by_code(rows * n + parts[columns], links.weights[is_candidate])
    nodes, candidates = codes // n, codes % n
    order = np.lexsort((candidates, sizes[candidates], -weights.astype(np.float32), nodes))
    first = order[_run_starts(nodes[order])]
    joined = parts.copy()
    joined[nodes[first]] = candidates[first]
    return joined


def _as_tree(levels: Sequence[Ints]) -> list[Community]:
    """Return the communities of nested partitions, coarsest first; a community without parts is left out below."""
    communities: list[Community] = []
    position = np.full(len(levels[0]), -1, dtype=np.int64)  # of the finest community so far of each node
    for labels in levels:
        parents, new = position.copy(), members_by_label(labels)
        for nodes in new:
            parent = int(parents[nodes[0]])
            if parent >= 0 and len(communities[parent].nodes) == len(nodes):
                continue
            level = 0
            if parent >= 0:
                level = communities[parent].level + 1
                communities[parent] = replace(communities[parent], is_finest=False)
            position[nodes] = len(communities)
            communities.append(Community(level, parent, nodes, True))
    return communities
