"""Outline: the shape of a hierarchy, and for each aggregate what matters most of what is in it; numbers alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quipu.algo.cluster_layers import ClusterLayers, cluster_layers
from quipu.algo.lca import Forest
from quipu.algo.vector_clusters import Grouping, nearest_centres
from quipu.derive.hierarchy.reading import EntityGraph, Ints
from quipu.model.ids import digest

Ranked = Callable[[Ints], dict[int, list[int]]]

MAX_TOPS = 10  # entities an aggregate is told by where no model tells it
MAX_RELATIONS = 64  # that are looked at, of those within an aggregate or between two
MAX_CHUNKS = 20  # that a report leads to


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """What runs between two aggregates: their nodes, those of the smaller id first, and the strongest relations."""

    source: int
    target: int
    level: int
    n: int
    weight: int  # of all, in thousandths
    strongest: Ints  # relations of the graph, at most MAX_RELATIONS


class Outline:
    """A hierarchy over a graph. Nodes are its entities, by their places, then the aggregates, lower layers first."""

    def __init__(self, graph: EntityGraph, grouping: Grouping = nearest_centres) -> None:
        self.graph = graph
        self.layers: ClusterLayers = cluster_layers(graph.keys, graph.vectors, grouping)
        self.n = len(graph.keys)
        self.ids = self._ids()

    @property
    def aggregates(self) -> range:
        """The nodes of all aggregates, lower layers first: what is in one comes before it."""
        return range(self.n, len(self.layers.parents))

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """The nodes directly in each aggregate, in order: entities by key, then aggregates, lower layers first."""
        found: dict[int, list[int]] = {}
        for node, parent in enumerate(self.layers.parents.tolist()):
            if parent >= 0:
                found.setdefault(parent, []).append(node)
        return found

    @cached_property
    def tops(self) -> dict[int, list[int]]:
        """The entities of each aggregate that have the most relations, equal ones by key."""
        degrees = self.graph.degrees
        return self._by_aggregate(
            lambda node_of: _firsts(node_of, -degrees, np.arange(self.n), limit=MAX_TOPS),
        )

    @cached_property
    def chunks(self) -> dict[int, list[int]]:
        """The chunks that mention the entities of each aggregate most often, equal ones by id.

        Where a name merely stands does not count: a report goes when a mention of what is in it does, and with it all
        it leads to.
        """
        seen = self.graph.mentions

        def ranked(node_of: Ints) -> dict[int, list[int]]:
            n_chunks = max(len(seen.ids), 1)
            pair, member = np.unique(node_of[seen.entities] * n_chunks + seen.chunks, return_inverse=True)
            total = np.bincount(member, weights=seen.counts, minlength=len(pair)).astype(np.int64)
            firsts = _firsts(pair // n_chunks, -total, pair % n_chunks, limit=MAX_CHUNKS)
            return {node: [int(pair[i] % n_chunks) for i in rows] for node, rows in firsts.items()}

        return self._by_aggregate(ranked)

    @cached_property
    def relations(self) -> dict[int, list[int]]:
        """The strongest relations of each aggregate that are within none of the aggregates in it."""
        pairs = self.graph.relations
        if not len(pairs.first):
            return {}
        within = Forest(self.layers.parents).lca(pairs.first, pairs.second)
        return _firsts(within, -pairs.weights, pairs.first, pairs.second, limit=MAX_RELATIONS)

    def crossings(self) -> Iterator[Crossing]:
        """Yield what runs between the aggregates of each layer, in one pass over the relations for each layer.

        A layer is what stands side by side there: its own aggregates and those below that it does not hold. Of two that
        stood side by side before nothing is told again.
        """
        pairs, levels = self.graph.relations, self.layers.levels
        n_nodes = len(levels)
        rank = np.zeros(n_nodes, dtype=np.int64)
        rank[self.n :] = np.argsort(np.argsort(np.array(self.ids[self.n :]))) if n_nodes > self.n else 0
        for level in range(1, int(levels.max(initial=0)) + 1):
            node_of = self.layers.ancestors(level)
            one, other = node_of[pairs.first], node_of[pairs.second]
            is_new = np.maximum(levels[one], levels[other]) == level
            rows = np.flatnonzero((one != other) & (one >= self.n) & (other >= self.n) & is_new)
            is_turned = rank[one[rows]] > rank[other[rows]]
            source = np.where(is_turned, other[rows], one[rows])
            target = np.where(is_turned, one[rows], other[rows])
            yield from self._gathered(level, source * n_nodes + target, rows)

    def _gathered(self, level: int, crossed: Ints, rows: Ints) -> Iterator[Crossing]:
        """Yield the crossings of a layer, whose relations `rows` [m] run between the nodes told by `crossed` [m]."""
        pairs, n_nodes = self.graph.relations, len(self.layers.levels)
        order = np.lexsort((pairs.second[rows], pairs.first[rows], -pairs.weights[rows], crossed))
        between, starts, counts = np.unique(crossed[order], return_index=True, return_counts=True)
        if not len(between):
            return
        weights = np.add.reduceat(pairs.weights[rows][order], starts)
        for key, start, n, weight in zip(
            between.tolist(), starts.tolist(), counts.tolist(), weights.tolist(), strict=True
        ):
            yield Crossing(
                source=key // n_nodes,
                target=key % n_nodes,
                level=level,
                n=n,
                weight=weight,
                strongest=rows[order[start : start + min(n, MAX_RELATIONS)]],
            )

    def _ids(self) -> list[str]:
        """Return the key of each entity and the id of each aggregate: a digest of what is directly in it."""
        ids, parts = list(self.graph.keys), dict[int, list[str]]()
        for node, parent in enumerate(self.layers.parents.tolist()):
            if node >= self.n:
                ids.append(digest("aggregate", *sorted(parts[node]))[:16])
            if parent >= 0:
                parts.setdefault(parent, []).append(f"{'entity' if node < self.n else 'aggregate'} {ids[node]}")
        return ids

    def _by_aggregate(self, ranked: Ranked) -> dict[int, list[int]]:
        """Return what `ranked` tells of each aggregate, from the ancestors of all entities at its level."""
        found: dict[int, list[int]] = {}
        levels = self.layers.levels
        for level in range(1, int(levels.max(initial=0)) + 1):
            told = ranked(self.layers.ancestors(level))
            found |= {node: rows for node, rows in told.items() if levels[node] == level}
        return found


def _firsts(groups: Ints, *ranks: Ints, limit: int) -> dict[int, list[int]]:
    """Return the first few rows of each group [m], ordered by `ranks` [m], the first of these before the others."""
    order = np.lexsort((*reversed(ranks), groups))
    present, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    return {
        int(group): order[start : start + min(int(n), limit)].tolist()
        for group, start, n in zip(present.tolist(), starts.tolist(), counts.tolist(), strict=True)
    }
