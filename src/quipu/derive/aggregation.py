"""Aggregation: entities clustered by their vectors, layer by layer, and what matters most in each cluster.

Source: Y. Zhang et al., "LeanRAG" (2025), recursive semantic clustering. This module only computes with numbers: no
text of a model can change the shape of the hierarchy.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quipu.algo.cluster_layers import ClusterLayers, cluster_layers
from quipu.algo.lca import Forest
from quipu.algo.vector_clusters import Grouping, nearest_centres
from quipu.model.graph import weight_to_thousandths
from quipu.model.ids import digest
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import EdgeWeight, Topology, TopologyIndex

Ints = npt.NDArray[np.int64]

MAX_TOP_ENTITIES = 10  # by which an aggregate is described without a model
MAX_RELATIONS = 64  # read for one aggregate, or for one pair of aggregates
MAX_CHUNKS = 20  # that a report cites


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedRelations:
    """Relations, each array [m]: the places of both entities in the order of their keys, and weights in thousandths."""

    first: Ints
    second: Ints
    weights: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionCounts:
    """How often chunks mention entities, each array [m]; `chunks` are places in the sorted `ids`."""

    entities: Ints
    chunks: Ints
    counts: Ints
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityGraph:
    """The entities of a view that have a vector, ordered by key, with their relations and mentions.

    `vectors` has shape [n, d]. `degrees` [n] counts related entities. Relations and mentions are of these entities
    alone. Nothing here depends on the order in which documents were added.
    """

    revision: int
    keys: tuple[str, ...]
    vectors: npt.NDArray[np.float16]
    degrees: Ints
    relations: WeightedRelations
    mentions: MentionCounts


async def read_entity_graph(view: ReadView, topology_index: TopologyIndex) -> EntityGraph:
    """Return the graph of a view; entities without a vector are left out."""
    block = await view.vectors(VectorSpace.ENTITY)
    keys_by_row = await view.vector_owners(VectorSpace.ENTITY, block.rows.tolist())
    place_by_key = {key: place for place, row in enumerate(block.rows.tolist()) for key in keys_by_row.get(row, ())}
    number_by_key = await view.numbers(NodeKind.ENTITY, sorted(place_by_key))
    keys = tuple(sorted(number_by_key))
    numbers = np.array([number_by_key[key] for key in keys], dtype=np.int64)
    topology = await topology_index.open(view)
    relations = _relation_arrays(topology, numbers)
    ends = np.concatenate([relations.first, relations.second])
    return EntityGraph(
        revision=view.revision,
        keys=keys,
        vectors=block.vectors[[place_by_key[key] for key in keys]],
        degrees=np.bincount(ends, minlength=len(keys)).astype(np.int64),
        relations=relations,
        mentions=await _mention_arrays(view, topology, numbers),
    )


def _relation_arrays(topology: Topology, numbers: Ints) -> WeightedRelations:
    n_numbers = max(topology.n_entities, int(numbers.max(initial=-1)) + 1)
    place_by_number = np.full(n_numbers, -1, dtype=np.int64)
    place_by_number[numbers] = np.arange(len(numbers))
    neighbours = topology.relations(EdgeWeight.WEIGHT).neighbours(numbers)
    second = place_by_number[neighbours.columns]
    is_first = neighbours.positions < second  # each relation once; an entity without a vector has place -1
    thousandths = np.rint(neighbours.weights[is_first] * weight_to_thousandths(1.0)).astype(np.int64)
    return WeightedRelations(first=neighbours.positions[is_first], second=second[is_first], weights=thousandths)


async def _mention_arrays(view: ReadView, topology: Topology, numbers: Ints) -> MentionCounts:
    neighbours = topology.mentions().neighbours(numbers)
    chunk_numbers, chunk = np.unique(neighbours.columns, return_inverse=True)
    id_by_number = await view.ids(NodeKind.CHUNK, chunk_numbers.tolist())
    chunk_ids = [id_by_number.get(number, "") for number in chunk_numbers.tolist()]
    sorted_ids = tuple(sorted({chunk_id for chunk_id in chunk_ids if chunk_id}))
    place_by_id = {chunk_id: place for place, chunk_id in enumerate(sorted_ids)}
    places = np.array([place_by_id.get(chunk_id, -1) for chunk_id in chunk_ids], dtype=np.int64)
    chunks = places[chunk] if len(places) else chunk.astype(np.int64)
    is_present = chunks >= 0
    return MentionCounts(
        entities=neighbours.positions[is_present],
        chunks=chunks[is_present],
        counts=np.rint(neighbours.weights[is_present]).astype(np.int64),
        ids=sorted_ids,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InterClusterRelation:
    """The relations between the entities of two aggregates, given as nodes; `source` has the smaller id."""

    source: int
    target: int
    level: int
    n: int
    weight: int  # the sum over all relations, in thousandths
    strongest: Ints  # places of relations in the graph, at most MAX_RELATIONS


class Aggregation:
    """The aggregates over a graph. Nodes are the entities, by place, and then the aggregates, lower layers first."""

    def __init__(self, graph: EntityGraph, grouping: Grouping = nearest_centres) -> None:
        self.graph = graph
        self.layers: ClusterLayers = cluster_layers(graph.keys, graph.vectors, grouping)
        self.n_entities = len(graph.keys)
        self.ids = self._ids()

    @property
    def aggregates(self) -> range:
        """The nodes of all aggregates, lower layers first: children come before their parents."""
        return range(self.n_entities, len(self.layers.parents))

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """The child nodes of each aggregate: entities by key, then aggregates, lower layers first."""
        children: dict[int, list[int]] = {}
        for node, parent in enumerate(self.layers.parents.tolist()):
            if parent >= 0:
                children.setdefault(parent, []).append(node)
        return children

    @cached_property
    def top_entities(self) -> dict[int, list[int]]:
        """The entities of each aggregate with the most relations; ties are ordered by key."""
        degrees = self.graph.degrees
        return self._rank_by_aggregate(
            lambda node_of: _top_rows(node_of, -degrees, np.arange(self.n_entities), limit=MAX_TOP_ENTITIES),
        )

    @cached_property
    def chunks(self) -> dict[int, list[int]]:
        """The chunks that mention the entities of each aggregate most often; ties are ordered by id.

        Only mentions count, not every occurrence of a name: a report is deleted when a mention of one of its entities
        is, so it may cite only chunks with mentions.
        """
        mentions = self.graph.mentions

        def rank(node_of: Ints) -> dict[int, list[int]]:
            n_chunks = max(len(mentions.ids), 1)
            pairs, pair_of = np.unique(node_of[mentions.entities] * n_chunks + mentions.chunks, return_inverse=True)
            totals = np.bincount(pair_of, weights=mentions.counts, minlength=len(pairs)).astype(np.int64)
            top_rows = _top_rows(pairs // n_chunks, -totals, pairs % n_chunks, limit=MAX_CHUNKS)
            return {node: [int(pairs[row] % n_chunks) for row in rows] for node, rows in top_rows.items()}

        return self._rank_by_aggregate(rank)

    @cached_property
    def relations(self) -> dict[int, list[int]]:
        """The strongest relations within each aggregate that are within none of its children."""
        relations = self.graph.relations
        if not len(relations.first):
            return {}
        common_ancestor = Forest(self.layers.parents).lca(relations.first, relations.second)
        return _top_rows(common_ancestor, -relations.weights, relations.first, relations.second, limit=MAX_RELATIONS)

    def inter_cluster_relations(self) -> Iterator[InterClusterRelation]:
        """Yield the relations between aggregates, layer by layer, with one pass over all relations for each layer.

        A layer consists of its own aggregates and of lower ones that none of these contains. Two aggregates that
        already met in a lower layer are not repeated.
        """
        relations, levels = self.graph.relations, self.layers.levels
        n_nodes, n = len(levels), self.n_entities
        id_rank = np.zeros(n_nodes, dtype=np.int64)
        id_rank[n:] = np.argsort(np.argsort(np.array(self.ids[n:]))) if n_nodes > n else 0
        for level in range(1, int(levels.max(initial=0)) + 1):
            node_of = self.layers.ancestors(level)
            first, second = node_of[relations.first], node_of[relations.second]
            is_new = np.maximum(levels[first], levels[second]) == level
            rows = np.flatnonzero((first != second) & (first >= n) & (second >= n) & is_new)
            is_reversed = id_rank[first[rows]] > id_rank[second[rows]]
            source = np.where(is_reversed, second[rows], first[rows])
            target = np.where(is_reversed, first[rows], second[rows])
            yield from self._group_by_ends(level, source * n_nodes + target, rows)

    def _group_by_ends(self, level: int, ends: Ints, rows: Ints) -> Iterator[InterClusterRelation]:
        """Yield one InterClusterRelation for each pair of nodes in `ends` [m], source · n_nodes + target of `rows`."""
        relations, n_nodes = self.graph.relations, len(self.layers.levels)
        order = np.lexsort((relations.second[rows], relations.first[rows], -relations.weights[rows], ends))
        pairs, starts, counts = np.unique(ends[order], return_index=True, return_counts=True)
        if not len(pairs):
            return
        weights = np.add.reduceat(relations.weights[rows][order], starts)
        columns = (column.tolist() for column in (pairs, starts, counts, weights))
        for pair, start, n, weight in zip(*columns, strict=True):
            yield InterClusterRelation(
                source=pair // n_nodes,
                target=pair % n_nodes,
                level=level,
                n=n,
                weight=weight,
                strongest=rows[order[start : start + min(n, MAX_RELATIONS)]],
            )

    def _ids(self) -> list[str]:
        """Return the key of each entity and the id of each aggregate, which is a digest of its children."""
        ids, child_labels = list(self.graph.keys), dict[int, list[str]]()
        for node, parent in enumerate(self.layers.parents.tolist()):
            if node >= self.n_entities:
                ids.append(digest("aggregate", *sorted(child_labels[node]))[:16])
            if parent >= 0:
                kind = "entity" if node < self.n_entities else "aggregate"
                child_labels.setdefault(parent, []).append(f"{kind} {ids[node]}")
        return ids

    def _rank_by_aggregate(self, rank: Callable[[Ints], dict[int, list[int]]]) -> dict[int, list[int]]:
        """Return what `rank` returns for each aggregate; it is given the ancestor of each entity at one level, [n]."""
        rows_by_node: dict[int, list[int]] = {}
        levels = self.layers.levels
        for level in range(1, int(levels.max(initial=0)) + 1):
            ranked = rank(self.layers.ancestors(level))
            rows_by_node |= {node: rows for node, rows in ranked.items() if levels[node] == level}
        return rows_by_node


def _top_rows(groups: Ints, *sort_keys: Ints, limit: int) -> dict[int, list[int]]:
    """Return the first rows of each group [m] in the order of `sort_keys` [m], the most significant key first."""
    order = np.lexsort((*reversed(sort_keys), groups))
    present, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    return {
        int(group): order[start : start + min(int(n), limit)].tolist()
        for group, start, n in zip(present.tolist(), starts.tolist(), counts.tolist(), strict=True)
    }
