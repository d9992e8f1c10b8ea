"""The best paths of up to two edges from some entities.

Source: T. Fan et al., "MiniRAG" (2025), section 3.3. A path is worth s(start) · (1 + α + ε): the similarity of its
start to a name in the question, times one plus its answer candidates (α) and its key relations (ε).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from quipu.algo.sparse_matrix import concatenated_ranges
from quipu.ports.topology import AdjacencyMatrix, Floats, Ints

NO_NODE = -1
ISOLATED_SHARE = 0.2  # of the starts without any edge, the best are kept
_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class PathGraph:
    """The graph that paths follow, and what makes a path worth more; arrays are [n], by entity number.

    `order` is an entity's rank by name, and `is_answer` says that it is an answer candidate. `key_relations` are the
    codes (`pair_codes`) of the pairs of entities with a key relation, ascending.
    """

    relations: AdjacencyMatrix
    order: Ints
    is_answer: npt.NDArray[np.bool_]
    key_relations: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoHopPaths:
    """Paths, best first: `nodes` [m, 3], where NO_NODE fills up shorter paths, and `scores` [m].

    `n_hubs` entities have more edges than were followed.
    """

    nodes: Ints
    scores: Floats
    n_hubs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hops:
    """The edges followed from some entities: their positions, other ends, weights and gains (α + ε); [m] each.

    `n_edges` and `n_followed` count the edges of each entity.
    """

    positions: Ints
    ends: Ints
    weights: Floats
    gains: Ints
    n_edges: Ints
    n_followed: Ints


def best_paths(starts: Ints, similarities: Floats, graph: PathGraph, *, n: int, max_edges: int) -> TwoHopPaths:
    """Return the n best distinct paths from `starts`, which have these `similarities`; no edge is used twice.

    A path has two edges; it has one where its end has no other edge, and none where its start has no edge (the best
    fifth of such starts are kept). Of an entity with more than `max_edges` edges, those with the highest gain are
    followed, then the heaviest, then the first by name. Equal paths are ordered by weight, then by name.
    """
    first = _follow(starts, graph, max_edges)
    middles, middle = np.unique(first.ends, return_inverse=True)
    second = _follow(middles, graph, max_edges)
    offsets = np.cumsum(second.n_followed) - second.n_followed
    via = np.repeat(np.arange(len(first.ends)), second.n_followed[middle])
    onward = concatenated_ranges(offsets[middle], second.n_followed[middle])
    is_new = second.ends[onward] != starts[first.positions[via]]
    via, onward = via[is_new], onward[is_new]
    dead_ends = np.flatnonzero(second.n_edges[middle] == 1)
    isolated = _best_isolated(starts, similarities, first.n_edges, graph.order)
    n_long, n_linked = len(onward), len(onward) + len(dead_ends)
    nodes = np.full((n_linked + len(isolated), 3), NO_NODE, dtype=np.int64)
    start_positions = np.concatenate([first.positions[via], first.positions[dead_ends], isolated])
    nodes[:, 0] = starts[start_positions]
    nodes[:n_linked, 1] = np.concatenate([first.ends[via], first.ends[dead_ends]])
    nodes[:n_long, 2] = second.ends[onward]
    gains, weights = np.zeros(len(nodes), dtype=np.int64), np.zeros(len(nodes))
    gains[:n_linked] = np.concatenate([first.gains[via] + second.gains[onward], first.gains[dead_ends]])
    weights[:n_linked] = np.concatenate([first.weights[via] + second.weights[onward], first.weights[dead_ends]])
    gains += graph.is_answer[nodes[:, 0]]  # α of the start
    scores = (similarities[start_positions] * (1 + gains)).round(_DECIMALS)
    names = [np.where(column == NO_NODE, NO_NODE, graph.order[column]) for column in nodes.T]
    best = _smallest(n, [-scores, -weights.round(_DECIMALS), *names])
    n_hubs = int((first.n_followed < first.n_edges).sum() + (second.n_followed < second.n_edges).sum())
    return TwoHopPaths(nodes=nodes[best], scores=scores[best].astype(np.float64), n_hubs=n_hubs)


def pair_codes(first: Ints, second: Ints, n: int) -> Ints:
    """Return one number for each unordered pair of entities, of which there are `n`."""
    return np.minimum(first, second) * n + np.maximum(first, second)


def _follow(entities: Ints, graph: PathGraph, max_edges: int) -> _Hops:
    """Return the best edges of each entity, entity by entity."""
    edges = graph.relations.neighbours(entities)
    gains = graph.is_answer[edges.columns].astype(np.int64)  # α of the edge's other end
    codes = pair_codes(entities[edges.positions], edges.columns, len(graph.order))
    gains += _is_in(codes, graph.key_relations)  # ε of the edge
    n_edges = np.bincount(edges.positions, minlength=len(entities))
    order = np.lexsort((graph.order[edges.columns], -edges.weights, -gains, edges.positions))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(n_edges) - n_edges, n_edges)
    followed = order[rank < max_edges]
    return _Hops(
        positions=edges.positions[followed],
        ends=edges.columns[followed],
        weights=edges.weights[followed],
        gains=gains[followed],
        n_edges=n_edges,
        n_followed=np.minimum(n_edges, max_edges),
    )


def _best_isolated(starts: Ints, similarities: Floats, n_edges: Ints, order: Ints) -> Ints:
    """Return the positions of the best starts without edges."""
    isolated = np.flatnonzero(n_edges == 0)
    best = np.lexsort((order[starts[isolated]], -similarities[isolated]))
    return isolated[best[: ceil(ISOLATED_SHARE * len(isolated))]]


def _is_in(values: Ints, rising: Ints) -> npt.NDArray[np.bool_]:
    if not len(rising):
        return np.zeros(len(values), dtype=bool)
    is_equal: npt.NDArray[np.bool_] = rising.take(np.searchsorted(rising, values), mode="clip") == values
    return is_equal


def _smallest(n: int, keys: Sequence[npt.NDArray[np.int64] | Floats]) -> Ints:
    """Return the positions of the n smallest by the first key, ties by the next; sorts only what it returns."""
    smaller: list[Ints] = []
    ties, n_missing = np.arange(len(keys[0])), n
    for key in keys:
        if len(ties) <= n_missing:
            break
        values = key[ties]
        cut = np.partition(values, n_missing - 1)[n_missing - 1]
        smaller.append(ties[values < cut])
        n_missing -= len(smaller[-1])
        ties = ties[values == cut]
    best = np.concatenate([*smaller, ties[:n_missing]])
    return best[np.lexsort([key[best] for key in reversed(keys)])]
