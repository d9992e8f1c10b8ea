"""The best paths of a few relations from some entities.

Source: T. Fan et al., "MiniRAG" (2025), section 3.3. A path is worth s(start) · (1 + α + ε): the similarity of its
start to a name in the question, times one plus its answer candidates (α) and the weights ω_e of its key relations (ε).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Self

import numpy as np
import numpy.typing as npt

from quipu.algo.sparse_matrix import concatenated_ranges
from quipu.ports.topology import AdjacencyMatrix, Floats, Ints

NO_NODE = -1
ISOLATED_SHARE = 0.2  # of the starts without any edge, the best are kept
MAX_UNFINISHED = 100_000  # paths that are extended by one more edge, the best; two edges from 1,000 starts are fewer
BLOCK_SIZE = 1_000_000  # paths that are in memory at the same time
_NO_EDGE = -1
_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class PathGraph:
    """The graph that paths follow, and what makes a path worth more; arrays are [n], by entity number.

    `order` is an entity's rank by name, and `is_answer` says that it is an answer candidate. `key_relations` are the
    codes (`pair_codes`) of the pairs of entities with a key relation, ascending, and `key_weights` their ω_e.
    """

    relations: AdjacencyMatrix
    order: Ints
    is_answer: npt.NDArray[np.bool_]
    key_relations: Ints
    key_weights: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationPaths:
    """Paths, best first: `nodes` [m, length + 1], where NO_NODE fills up shorter paths, and `scores` [m].

    `n_hubs` entities have more edges than were followed. `n_dropped` paths were not extended, because there are too
    many.
    """

    nodes: Ints
    scores: Floats
    n_hubs: int
    n_dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hops:
    """The edges followed from some entities: their other ends, codes, weights and gains (α + ε); [m] each.

    `n_edges` and `n_followed` count the edges of each entity.
    """

    ends: Ints
    codes: Ints
    weights: Floats
    gains: Ints
    n_edges: Ints
    n_followed: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walks:
    """Paths as [m, length + 1] entities and [m, length] codes of edges; [m] similarities, gains (α + ε), weights."""

    nodes: Ints
    codes: Ints
    similarities: Floats
    gains: Ints
    weights: Floats

    def select(self, rows: Ints | npt.NDArray[np.bool_]) -> Self:
        """Return some of the paths."""
        return type(self)(
            nodes=self.nodes[rows],
            codes=self.codes[rows],
            similarities=self.similarities[rows],
            gains=self.gains[rows],
            weights=self.weights[rows],
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return the paths of all parts."""
        return cls(
            nodes=np.concatenate([part.nodes for part in parts]),
            codes=np.concatenate([part.codes for part in parts]),
            similarities=np.concatenate([part.similarities for part in parts]),
            gains=np.concatenate([part.gains for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
        )

    def scores(self) -> Floats:
        """Return s(start) · (1 + α + ε) of each path."""
        return _path_scores(self.similarities, self.gains)

    def best(self, n: int, order: Ints) -> Self:
        """Return the n best paths; equal ones by weight, then by name."""
        names = [np.where(column == NO_NODE, NO_NODE, order[column]) for column in self.nodes.T]
        return self.select(_smallest(n, [-self.scores(), -self.weights.round(_DECIMALS), *names]))


def best_paths(
    starts: Ints, similarities: Floats, graph: PathGraph, *, n: int, max_edges: int, length: int = 2
) -> RelationPaths:
    """Return the n best distinct paths from `starts`, which have these `similarities`; no edge is used twice.

    A path has `length` edges, fewer where its end has no other edge, and none where its start has no edge (the best
    fifth of such starts are kept). Of an entity with more than `max_edges` edges, those with the highest gain are
    followed, then the heaviest, then the first by name. Equal paths are ordered by weight, then by name. Of paths that
    are to be extended the best `MAX_UNFINISHED` are.
    """
    n_edges = np.bincount(graph.relations.neighbours(starts).positions, minlength=len(starts))
    walks = _start_walks(starts, similarities, graph, length)
    finished = [walks.select(_best_isolated(starts, similarities, n_edges, graph.order))]
    unfinished, n_hubs, n_dropped = walks.select(n_edges > 0), 0, 0
    for step in range(length):
        ends, position = np.unique(unfinished.nodes[:, step], return_inverse=True)
        hops = _follow(ends, graph, max_edges)
        n_hubs += int((hops.n_followed < hops.n_edges).sum())
        finished.append(unfinished.select((step > 0) & (_n_used(unfinished, step) == hops.n_edges[position])))
        is_last = step == length - 1
        limit, n_extended, parts = n if is_last else MAX_UNFINISHED, 0, list[_Walks]()
        for block in _blocks(hops.n_followed[position]):
            longer, n_longer = _extend(unfinished, block, position[block], hops, step=step, limit=limit)
            n_extended += n_longer
            parts.append(longer.best(limit, graph.order) if len(longer.nodes) > limit else longer)
        unfinished = _Walks.concatenate(parts).best(limit, graph.order) if len(parts) > 1 else parts[0]
        n_dropped += 0 if is_last else n_extended - len(unfinished.nodes)
    best = _Walks.concatenate([*finished, unfinished]).best(n, graph.order)
    return RelationPaths(nodes=best.nodes, scores=best.scores(), n_hubs=n_hubs, n_dropped=n_dropped)


def pair_codes(first: Ints, second: Ints, n: int) -> Ints:
    """Return one number for each unordered pair of entities, of which there are `n`."""
    return np.minimum(first, second) * n + np.maximum(first, second)


def count_near(pairs: Sequence[tuple[int, int]], candidates: Ints, relations: AdjacencyMatrix, n_hops: int) -> Ints:
    """Return ω_e of each pair of related entities: the candidates within `n_hops` edges of one of the two.

    `candidates` [n] is how often each entity counts: 1 as a start or as an answer candidate, 2 as both.
    """
    counts = []
    for pair in pairs:
        is_near = np.zeros(len(candidates), dtype=bool)
        frontier = np.array(pair, dtype=np.int64)
        is_near[frontier] = True
        for _ in range(n_hops):
            neighbours = np.unique(relations.neighbours(frontier).columns)
            frontier = neighbours[~is_near[neighbours]]
            is_near[frontier] = True
        counts.append(int(candidates[is_near].sum()))
    return np.array(counts, dtype=np.int64)


def _start_walks(starts: Ints, similarities: Floats, graph: PathGraph, length: int) -> _Walks:
    """Return the paths without any edge, one for each start."""
    nodes = np.full((len(starts), length + 1), NO_NODE, dtype=np.int64)
    nodes[:, 0] = starts
    return _Walks(
        nodes=nodes,
        codes=np.full((len(starts), length), _NO_EDGE, dtype=np.int64),
        similarities=similarities,
        gains=graph.is_answer[starts].astype(np.int64),  # α of the start
        weights=np.zeros(len(starts)),
    )


def _n_used(walks: _Walks, step: int) -> Ints:
    """Return how many edges of each path have its end, the entity after `step` edges, as an end."""
    is_end = walks.nodes[:, : step + 1] == walks.nodes[:, step : step + 1]
    counts: Ints = (is_end[:, 1:] | is_end[:, :-1]).sum(axis=1)
    return counts


def _extend(walks: _Walks, rows: Ints, position: Ints, hops: _Hops, *, step: int, limit: int) -> tuple[_Walks, int]:
    """Return some paths with one more edge that is new to them, and their number; `position` is theirs in the hops.

    Of more than `limit` only those are returned whose score is among the `limit` highest.
    """
    offsets = np.cumsum(hops.n_followed) - hops.n_followed
    via = np.repeat(rows, hops.n_followed[position])
    onward = concatenated_ranges(offsets[position], hops.n_followed[position])
    codes = hops.codes[onward]
    is_new = np.ones(len(via), dtype=bool)
    for used in walks.codes.T[:step]:
        is_new &= used[via] != codes
    via, onward = via[is_new], onward[is_new]
    n_longer = len(via)
    if n_longer > limit:
        scores = _path_scores(walks.similarities[via], walks.gains[via] + hops.gains[onward])
        is_high = scores >= np.partition(scores, n_longer - limit)[n_longer - limit]
        via, onward = via[is_high], onward[is_high]
    longer = walks.select(via)  # copies
    longer.nodes[:, step + 1] = hops.ends[onward]
    longer.codes[:, step] = hops.codes[onward]
    longer.gains[:] += hops.gains[onward]
    longer.weights[:] += hops.weights[onward]
    return longer, n_longer


def _path_scores(similarities: Floats, gains: Ints) -> Floats:
    scores: Floats = (similarities * (1 + gains)).round(_DECIMALS)
    return scores


def _follow(entities: Ints, graph: PathGraph, max_edges: int) -> _Hops:
    """Return the best edges of each entity, entity by entity."""
    edges = graph.relations.neighbours(entities)
    codes = pair_codes(entities[edges.positions], edges.columns, len(graph.order))
    gains = graph.is_answer[edges.columns] + _weights_of(codes, graph)  # α of the edge's other end, ε of the edge
    n_edges = np.bincount(edges.positions, minlength=len(entities))
    order = np.lexsort((graph.order[edges.columns], -edges.weights, -gains, edges.positions))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(n_edges) - n_edges, n_edges)
    followed = order[rank < max_edges]
    return _Hops(
        ends=edges.columns[followed],
        codes=codes[followed],
        weights=edges.weights[followed],
        gains=gains[followed],
        n_edges=n_edges,
        n_followed=np.minimum(n_edges, max_edges),
    )


def _weights_of(codes: Ints, graph: PathGraph) -> Ints:
    """Return ω_e of the key relation of each pair of entities, 0 where it is none."""
    if not len(graph.key_relations):
        return np.zeros(len(codes), dtype=np.int64)
    places = np.searchsorted(graph.key_relations, codes)
    is_key = graph.key_relations.take(places, mode="clip") == codes
    weights: Ints = np.where(is_key, graph.key_weights.take(places, mode="clip"), 0)
    return weights


def _blocks(counts: Ints) -> Iterator[Ints]:
    """Yield the positions of `counts` in blocks whose counts sum to about `BLOCK_SIZE`."""
    numbers = np.cumsum(counts) // BLOCK_SIZE
    yield from np.split(np.arange(len(counts)), np.flatnonzero(np.diff(numbers)) + 1)


def _best_isolated(starts: Ints, similarities: Floats, n_edges: Ints, order: Ints) -> Ints:
    """Return the positions of the best starts without edges."""
    isolated = np.flatnonzero(n_edges == 0)
    best = np.lexsort((order[starts[isolated]], -similarities[isolated]))
    return isolated[best[: ceil(ISOLATED_SHARE * len(isolated))]]


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
