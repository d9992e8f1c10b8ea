"""The map of the graph: where its entities and communities lie, and what is drawn of them at three levels of detail.

The layout is a function of the documents and imports alone, so the map is the same at each visit. It is computed when
it is first needed, and kept in memory until the graph changes. Every level is bounded, whatever the size of the graph.
"""

import asyncio
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quipu.algo.edge_list import EdgeList
from quipu.algo.graph_communities import Community
from quipu.algo.graph_layout import DiscTree, GraphLayout, Positions, lay_out
from quipu.derive.community_partition import CommunityGraph, partition_graph, read_community_graph
from quipu.derive.imported_communities import load_communities
from quipu.engine.graph_pages import GraphPages, RankedGraph
from quipu.engine.lookups import named_entity
from quipu.errors import InvalidInput, NotFound
from quipu.ports.store import ReadView
from quipu.wrap.persistence import run_to_end

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[np.float32] | npt.NDArray[np.uint32] | npt.NDArray[np.int32]
Box = tuple[float, float, float, float]  # the smallest x and y, the largest x and y

_ROWS_PER_READ = 5_000  # entities


class MapLevel(StrEnum):
    """How near the map is seen: communities, the strongest entities of a part, or entities with their neighbours."""

    FAR = "far"
    MIDDLE = "middle"
    NEAR = "near"


# The largest numbers of nodes and of edges that one map has.
MAX_ON_MAP: Mapping[MapLevel, tuple[int, int]] = {
    MapLevel.FAR: (2_000, 6_000),
    MapLevel.MIDDLE: (20_000, 40_000),
    MapLevel.NEAR: (2_000, 6_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MapQuery:
    """What a map shows. `box` is the part in view, None for all; `types` and `communities` (ids) limit it, () do not.

    `names` are the entities of the level NEAR, names, aliases or keys. `max_nodes` 0 is the most that a level allows.
    """

    level: MapLevel = MapLevel.FAR
    box: Box | None = None
    types: Sequence[str] = ()
    communities: Sequence[str] = ()
    names: Sequence[str] = ()
    max_nodes: int = 0
    as_of: str = ""

    def check(self) -> None:
        """Raise InvalidInput for a box that is none, a number out of bounds, and a NEAR map of nothing."""
        largest = MAX_ON_MAP[self.level][0]
        if not 0 <= self.max_nodes <= largest:
            raise InvalidInput(f"max_nodes is {self.max_nodes}.", remedy=f"Give a number from 1 to {largest:,}.")
        if self.box is not None and not (
            all(map(math.isfinite, self.box)) and self.box[0] < self.box[2] and self.box[1] < self.box[3]
        ):
            raise InvalidInput(f"{self.box} is not a box.", remedy="Give x0,y0,x1,y1 with x0 < x1 and y0 < y1.")
        if (self.level is MapLevel.NEAR) != bool(self.names):
            raise InvalidInput(
                "Only the level 'near' has names, and it needs one.", remedy="Give the name of an entity."
            )

    @property
    def n_nodes(self) -> int:
        """The largest number of nodes."""
        return self.max_nodes or MAX_ON_MAP[self.level][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphMap:
    """A map: `nodes` and `edges` are arrays by name, those of one mapping of one length.

    Far, nodes are communities, those that contain others first, then the largest; else entities, those with the most
    relations first, or NEAR the given ones, then their neighbours by weight. Edges come with the largest weight first.

    - `x`, `y` (float32): the centre; `radius` (float32): of a community. `bounds` hold the whole map.
    - `size` (uint32): the entities of a community that the query allows, or the relations of an entity.
    - `type` (uint32): the place in `types` of an entity's type, or of the most frequent one of a community.
    - `community` (int32): the place in `communities` of the coarsest community around it, -1 for none.
    - `parent` (int32): the node that is the community around a community, -1 for none.
    - `source`, `target` (uint32): the nodes at the ends of an edge; `weight` (float32): its weight, or the summed
      weights of all relations between two communities.

    `ids` and `labels` belong to the nodes: keys and names of entities, ids of communities and the titles of their
    reports, or the names of their strongest entities. `n_more_nodes` and `n_more_edges` were left out.
    """

    level: MapLevel
    revision: int
    bounds: Box
    n_entities: int
    n_relations: int
    types: tuple[str, ...]
    communities: tuple[str, ...]
    nodes: Mapping[str, Array]
    edges: Mapping[str, Array]
    ids: tuple[str, ...]
    labels: tuple[str, ...]
    n_more_nodes: int = 0
    n_more_edges: int = 0


@dataclass(frozen=True, kw_only=True)
class MappedGraph:
    """A graph with its layout. Entities are known by their places in the order of all keys.

    `ids` are those of the communities of `tree`, which are ordered by depth, then by id. `source` is a digest of what
    the layout was computed from.
    """

    ranked: RankedGraph
    source: bytes
    keys: Sequence[str]
    ids: Sequence[str]
    tree: DiscTree
    layout: GraphLayout

    @cached_property
    def ancestors(self) -> Ints:
        """The community at each depth that is or contains each community, [c + 1, depths]; the last row is -1."""
        rows = [[-1]] * (len(self.ids) + 1)
        for community, parent in enumerate(self.tree.parents.tolist()):
            rows[community] = [*(rows[parent] if parent >= 0 else ()), community]
        width = max(map(len, rows))
        return np.array([row + [-1] * (width - len(row)) for row in rows], dtype=np.int64)

    @cached_property
    def depths(self) -> Ints:
        """How many communities each community is in, [c]."""
        return np.asarray((self.ancestors[:-1] >= 0).sum(axis=1) - 1, dtype=np.int64)

    @cached_property
    def place_by_id(self) -> Mapping[str, int]:
        """The place of each community."""
        return {identifier: place for place, identifier in enumerate(self.ids)}

    @cached_property
    def ranks(self) -> Ints:
        """The place of each entity in the order of strength, [n]."""
        return np.argsort(self.ranked.entities)

    @cached_property
    def bounds(self) -> Box:
        """The smallest box that holds all entities and communities."""
        centres, reach = self.layout.communities, self.layout.radii[:, None]
        points = np.concatenate([centres - reach, centres + reach, self.layout.nodes, np.zeros((1, 2))])
        low, high = points.min(axis=0).tolist(), points.max(axis=0).tolist()
        return (low[0], low[1], high[0], high[1])

    def allowed(self, query: MapQuery) -> Bools:
        """Return for each entity whether it has an allowed type and is in an allowed community, [n]."""
        allowed = self.ranked.has_type(np.arange(len(self.keys)), query.types)
        if query.communities:
            if unknown := [identifier for identifier in query.communities if identifier not in self.place_by_id]:
                raise NotFound(f"There is no community {unknown[0]!r}.", remedy="Take an id from the map.")
            chosen = [self.place_by_id[identifier] for identifier in query.communities]
            allowed &= np.isin(self.ancestors[self.tree.finest], chosen).any(axis=1)
        return allowed


class GraphMaps(GraphPages):
    """The methods of the engine that draw the graph."""

    _mapped: MappedGraph | None = None  # of the last map
    _mapped_past: MappedGraph | None = None  # of the last map of a date
    _mapping: asyncio.Lock | None = None

    async def graph_map(self, query: MapQuery | None = None) -> GraphMap:
        """Return a map of the graph, by default of its communities. Raises NotFound for an unknown name."""
        query = query or MapQuery()
        query.check()
        async with self._graph(query.as_of) as (view, ranked):
            graph = await self._map(view, ranked, is_past=bool(query.as_of))
            near = [(await named_entity(view, name)).key for name in query.names]
            nodes, drawn = await asyncio.to_thread(_draw, graph, query, near)
            labels = await _labels(view, graph, nodes, drawn.ids if query.level is MapLevel.FAR else ())
            return replace(drawn, revision=view.revision, labels=labels)

    async def _map(self, view: ReadView, ranked: RankedGraph, *, is_past: bool = False) -> MappedGraph:
        """Return the layout of this revision, computed once: to its end, even if nobody waits for it any more."""
        self._mapping = self._mapping or asyncio.Lock()
        async with self._mapping:
            if self._mapped is not None and self._mapped.ranked is ranked:
                return self._mapped
            return await run_to_end(self._lay_out(view, ranked, is_past=is_past))

    async def _lay_out(self, view: ReadView, ranked: RankedGraph, *, is_past: bool) -> MappedGraph:
        graph = await read_community_graph(view, ranked.topology)
        imported = await load_communities(graph.keys, view, self._components.store)
        earlier = self._mapped_past if is_past else self._mapped
        mapped = await asyncio.to_thread(map_graph, ranked, graph, imported, earlier)
        if is_past:
            self._mapped_past = mapped
        else:
            self._mapped = mapped
        return mapped


def map_graph(
    ranked: RankedGraph, graph: CommunityGraph, imported: Sequence[Community], earlier: MappedGraph | None = None
) -> MappedGraph:
    """Return a graph with its layout: that of an `earlier` one if nothing it depends on has changed."""
    source = graph.digest(imported)
    if earlier is not None and earlier.source == source:
        return replace(earlier, ranked=ranked)
    plan = partition_graph(graph, [], imported)
    keys, communities = graph.keys, plan.communities
    order = sorted(range(len(communities)), key=lambda number: (communities[number].level, plan.ids[number]))
    place_by_number = {number: place for place, number in enumerate(order)} | {-1: -1}
    finest = np.full(len(keys), -1, dtype=np.int64)
    for place, number in enumerate(order):
        finest[communities[number].nodes] = place  # imported communities may have entities beside their parts
    parents = np.array([place_by_number[communities[number].parent] for number in order], dtype=np.int64)
    tree = DiscTree(parents=parents, finest=finest)
    sources, targets, weights = ranked.relations
    edges = EdgeList(len(keys), sources, targets, weights.astype(np.float64))
    ids = [plan.ids[number] for number in order]
    return MappedGraph(ranked=ranked, source=source, keys=keys, ids=ids, tree=tree, layout=lay_out(edges, tree))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nodes:
    """The nodes of a map, by `places` [k] of entities or communities, and `sizes` [k]; `n_more` were left out.

    `node_by_entity` [n] is the node that stands for each entity, -1 for none. `strongest` [k] are the places of the
    entities that give the nodes a type, and a name where they have no report.
    """

    places: Ints
    sizes: Ints
    strongest: Ints
    node_by_entity: Ints
    n_more: int


def _draw(graph: MappedGraph, query: MapQuery, near: Sequence[str]) -> tuple[_Nodes, GraphMap]:
    """Return the nodes of a map, and the map without revision and labels."""
    allowed = graph.allowed(query)
    if query.level is MapLevel.FAR:
        nodes = _communities(graph, query, allowed)
        communities, centres, all_ids = nodes.places, graph.layout.communities, graph.ids
    else:
        nodes = _neighbours(graph, query, allowed, near) if near else _entities_in_box(graph, query, allowed)
        communities, centres, all_ids = graph.tree.finest[nodes.places], graph.layout.nodes, graph.keys
    coarsest = graph.ancestors[communities, 0]
    legend, community = np.unique(coarsest, return_inverse=True)
    n_none = int((legend < 0).sum())
    columns: dict[str, Array] = {
        "x": centres[nodes.places, 0],
        "y": centres[nodes.places, 1],
        "size": nodes.sizes.astype(np.uint32),
        "type": graph.ranked.types.codes[nodes.strongest].astype(np.uint32),
        "community": (community - n_none).astype(np.int32),
    }
    if query.level is MapLevel.FAR:
        node_by_community = np.full(len(graph.ids) + 1, -1, dtype=np.int64)
        node_by_community[nodes.places] = np.arange(len(nodes.places))
        columns["radius"] = graph.layout.radii[nodes.places]
        columns["parent"] = node_by_community[graph.tree.parents[nodes.places]].astype(np.int32)
    edges, n_more_edges = _edges(graph, nodes, query.level)
    drawn = GraphMap(
        level=query.level,
        revision=0,
        bounds=graph.bounds,
        n_entities=len(graph.keys),
        n_relations=len(graph.ranked.relations[0]),
        types=graph.ranked.types.types,
        communities=tuple(graph.ids[place] for place in legend[n_none:].tolist()),
        nodes=columns,
        edges=edges,
        ids=tuple(all_ids[place] for place in nodes.places.tolist()),
        labels=(),
        n_more_nodes=nodes.n_more,
        n_more_edges=n_more_edges,
    )
    return nodes, drawn


def _communities(graph: MappedGraph, query: MapQuery, allowed: Bools) -> _Nodes:
    """Return the communities in view that have an allowed entity: the coarsest first, then the largest."""
    n = len(graph.ids)
    entities = np.flatnonzero(allowed & (graph.tree.finest >= 0))
    around = graph.ancestors[graph.tree.finest[entities]]  # [entities, depths]
    is_inside = around >= 0
    sizes = np.bincount(around[is_inside], minlength=n)
    best = np.full(n, len(graph.keys), dtype=np.int64)  # the rank of the strongest allowed entity
    np.minimum.at(best, around[is_inside], np.broadcast_to(graph.ranks[entities][:, None], around.shape)[is_inside])
    places = np.flatnonzero((sizes > 0) & _in_box(graph.layout.communities, graph.layout.radii, query.box))
    order = np.lexsort((places, -sizes[places], graph.depths[places]))
    places, n_more = places[order][: query.n_nodes], max(len(places) - query.n_nodes, 0)
    node_by_community = np.full(n + 1, -1, dtype=np.int64)
    node_by_community[places] = np.arange(len(places))
    node_by_entity = np.full(len(graph.keys), -1, dtype=np.int64)
    for depth in range(around.shape[1]):
        nodes = node_by_community[around[:, depth]]
        node_by_entity[entities[nodes >= 0]] = nodes[nodes >= 0]
    strongest = graph.ranked.entities[best[places]]
    return _Nodes(places=places, sizes=sizes[places], strongest=strongest, node_by_entity=node_by_entity, n_more=n_more)


def _entities_in_box(graph: MappedGraph, query: MapQuery, allowed: Bools) -> _Nodes:
    """Return the allowed entities in view with the most relations."""
    is_shown = allowed & _in_box(graph.layout.nodes, None, query.box)
    places = graph.ranked.entities[is_shown[graph.ranked.entities]]
    return _entities(graph, places, query.n_nodes)


def _neighbours(graph: MappedGraph, query: MapQuery, allowed: Bools, keys: Sequence[str]) -> _Nodes:
    """Return these entities, then their allowed neighbours in view, those with the largest summed weight first."""
    start = np.array(list(dict.fromkeys(bisect_left(graph.keys, key) for key in keys)), dtype=np.int64)
    _, others, weights = graph.ranked.edges(start)
    summed = np.bincount(others, weights=weights, minlength=len(graph.keys))
    summed[start] = 0
    places = np.flatnonzero((summed > 0) & allowed & _in_box(graph.layout.nodes, None, query.box))
    places = places[np.lexsort((places, -summed[places]))]
    return _entities(graph, np.concatenate([start, places]), query.n_nodes)


def _entities(graph: MappedGraph, places: Ints, max_nodes: int) -> _Nodes:
    """Return the first of these entities as nodes."""
    drawn = places[:max_nodes]
    node_by_entity = np.full(len(graph.keys), -1, dtype=np.int64)
    node_by_entity[drawn] = np.arange(len(drawn))
    sizes, n_more = graph.ranked.degrees[drawn], len(places) - len(drawn)
    return _Nodes(places=drawn, sizes=sizes, strongest=drawn, node_by_entity=node_by_entity, n_more=n_more)


def _in_box(centres: Positions, radii: Positions | None, box: Box | None) -> Bools:
    """Return for each point, or for the square around each disc, whether any of it is in the box, [n]."""
    if box is None:
        return np.ones(len(centres), dtype=np.bool_)
    low, high = np.array(box[:2]), np.array(box[2:])
    reach = radii[:, None] if radii is not None else 0.0
    return np.asarray(((centres + reach >= low) & (centres - reach <= high)).all(axis=1), dtype=np.bool_)


def _edges(graph: MappedGraph, nodes: _Nodes, level: MapLevel) -> tuple[Mapping[str, Array], int]:
    """Return the edges between nodes with the largest summed weights, and how many more there are.

    A community has no edge to one that it is in.
    """
    sources, targets, weights = graph.ranked.relations
    first, second = nodes.node_by_entity[sources], nodes.node_by_entity[targets]
    is_edge = (first >= 0) & (second >= 0) & (first != second)
    first, second, weights = first[is_edge], second[is_edge], weights[is_edge]
    n = max(len(nodes.places), 1)
    codes, inverse = np.unique(np.minimum(first, second) * n + np.maximum(first, second), return_inverse=True)
    sums = np.bincount(inverse, weights=weights, minlength=len(codes))
    if level is MapLevel.FAR:
        ends = nodes.places[codes // n], nodes.places[codes % n]
        is_nested = np.zeros(len(codes), dtype=np.bool_)
        for inner, outer in (ends, ends[::-1]):
            is_nested |= (graph.ancestors[inner] == outer[:, None]).any(axis=1)
        codes, sums = codes[~is_nested], sums[~is_nested]
    order = np.lexsort((codes, -sums))[: MAX_ON_MAP[level][1]]
    edges: Mapping[str, Array] = {
        "source": (codes[order] // n).astype(np.uint32),
        "target": (codes[order] % n).astype(np.uint32),
        "weight": (sums[order] / 1_000).astype(np.float32),
    }
    return edges, len(codes) - len(order)


async def _labels(view: ReadView, graph: MappedGraph, nodes: _Nodes, communities: Sequence[str]) -> tuple[str, ...]:
    """Return the titles of reports on communities, and the names of the strongest entities for all other nodes."""
    titles = {report.cluster: report.title for report in await view.cluster_reports(list(communities))}
    labels = [titles.get(identifier, "") for identifier in communities] or [""] * len(nodes.places)
    unnamed = [node for node, label in enumerate(labels) if not label]
    keys = [graph.keys[place] for place in nodes.strongest[unnamed].tolist()]
    for start in range(0, len(keys), _ROWS_PER_READ):
        entities = await view.entities(keys[start : start + _ROWS_PER_READ])
        for node, entity in zip(unnamed[start : start + _ROWS_PER_READ], entities, strict=True):
            labels[node] = entity.name
    return tuple(labels)
