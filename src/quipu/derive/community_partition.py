"""Community partition: the graph that communities are found in, the communities, their ids and their input hashes.

The input hash of a community identifies what its report is made from. For a finest community that is all facts about
its entities and the relations between them; for any other it is the hashes of its sub-communities and the relations
between these. So each relation counts once, and a change affects only the communities that contain it.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from zlib import crc32

import numpy as np
import numpy.typing as npt

from quipu.algo.edge_list import EdgeList, Floats, Ints, connected_components, edge_list, induced_subgraphs
from quipu.algo.graph_communities import MAX_MIDDLE, MAX_SIZE, VERSION, Community, find_communities
from quipu.model.cluster import Cluster, Hierarchy
from quipu.model.graph import Relation
from quipu.model.ids import digest, relation_id
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import AdjacencyMatrix, EdgeWeight, Topology

MIN_COMPONENT = 5  # entities: smaller components of the relation graph get co-occurrence edges
_FIXED_POINT = 1_000_000_000  # co-occurrence weights are summed as whole numbers, so that the order has no effect
_ROWS_PER_READ = 5_000  # entities or relations


def partition_identity() -> str:
    """Return what communities are made with; communities of another identity are found again."""
    return f"communities/2 {VERSION} sizes {MAX_SIZE} {MAX_MIDDLE}"


@dataclass(frozen=True, slots=True)
class CommunityGraph:
    """Entities in the order of their keys, their relations, and `edges`: the relations with co-occurrence edges."""

    keys: list[str]
    relations: EdgeList
    edges: EdgeList

    def digest(self, imported: Sequence[Community]) -> bytes:
        """Return a digest of the graph and its imported communities."""
        content = blake2b("\0".join(self.keys).encode("utf-8", "surrogatepass"))
        arrays: list[npt.NDArray[np.generic]] = []
        for edges in (self.relations, self.edges):
            arrays += [edges.sources, edges.targets, edges.weights]
        for community in imported:
            arrays += [np.array([community.parent, community.is_finest]), community.nodes]
        for array in arrays:
            content.update(f"\0{len(array)} ".encode() + array.tobytes())
        return content.digest()


async def read_community_graph(view: ReadView, topology: Topology) -> CommunityGraph:
    """Return the graph of all entities. It depends on the documents alone, never on the numbers of rows."""
    key_by_number = await view.ids(NodeKind.ENTITY, range(topology.n_entities))
    return await asyncio.to_thread(_community_graph, key_by_number, topology)


def _community_graph(key_by_number: Mapping[int, str], topology: Topology) -> CommunityGraph:
    numbers = np.array(sorted(key_by_number, key=key_by_number.__getitem__), dtype=np.int64)
    place_by_number = np.full(topology.n_entities, -1, dtype=np.int64)
    place_by_number[numbers] = np.arange(len(numbers))
    neighbours = topology.relations(EdgeWeight.WEIGHT).neighbours(numbers)
    targets = place_by_number[neighbours.columns]
    is_first = neighbours.positions < targets
    relations = edge_list(len(numbers), neighbours.positions[is_first], targets[is_first], neighbours.weights[is_first])
    edges = _with_cooccurrence_edges(relations, topology, numbers, place_by_number)
    return CommunityGraph([key_by_number[number] for number in numbers.tolist()], relations, edges)


def _with_cooccurrence_edges(relations: EdgeList, topology: Topology, numbers: Ints, place_by_number: Ints) -> EdgeList:
    """Add edges from each entity of a small component to the entities that its chunks name.

    Each chunk distributes a weight of 1 over the other entities it names. Without these edges, two entities that are
    related to nothing else would be a community with a report of its own.
    """
    component = connected_components(relations)
    isolated = np.flatnonzero(np.bincount(component, minlength=relations.n)[component] < MIN_COMPONENT)
    if not len(isolated):
        return relations
    occurrences = topology.occurrences().neighbours(numbers[isolated])
    chunks, chunk_place = np.unique(occurrences.columns, return_inverse=True)
    first, second, weights = _cooccurrences(
        topology.occurrences_by_chunk(), chunks, isolated[occurrences.positions], chunk_place, place_by_number
    )
    edges = edge_list(
        relations.n,
        np.concatenate([relations.sources, first]),
        np.concatenate([relations.targets, second]),
        np.concatenate([np.rint(relations.weights * _FIXED_POINT), weights]),
    )
    return replace(edges, weights=edges.weights / _FIXED_POINT)


def _cooccurrences(
    namings: AdjacencyMatrix, chunks: Ints, entities: Ints, chunk_place: Ints, place_by_number: Ints
) -> tuple[Ints, Ints, Floats]:
    """Return edges as (entity, other entity, weight), each [m].

    `entities[i]` occurs in `chunks[chunk_place[i]]`. The edges lead to all entities that this chunk names.
    """
    named = namings.neighbours(chunks)
    places = place_by_number[named.columns]
    of, others = named.positions[places >= 0], places[places >= 0]
    starts = np.searchsorted(of, np.arange(len(chunks) + 1))
    sizes = (starts[1:] - starts[:-1])[chunk_place]
    first = np.repeat(entities, sizes)
    offsets = np.arange(len(first)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    second = others[np.repeat(starts[:-1][chunk_place], sizes) + offsets]
    weights = np.rint(_FIXED_POINT / np.maximum(np.repeat(sizes, sizes) - 1, 1))
    return first, second, weights


def partition_graph(
    graph: CommunityGraph, stored: Sequence[Cluster], imported: Sequence[Community] = ()
) -> "CommunityPlan":
    """Return the communities of a graph: the imported ones unchanged, then communities of all other entities.

    They depend on the graph and the imports alone. The `stored` communities only save reading facts: their hashes hold
    where nothing changed.
    """
    is_free = np.ones(len(graph.keys), dtype=np.bool_)
    for community in imported:
        is_free[community.nodes] = False
    free = np.flatnonzero(is_free)
    (edges,) = induced_subgraphs(graph.edges, [free])
    marks = [crc32(graph.keys[node].encode("utf-8", "surrogatepass")) for node in free.tolist()]
    others = [
        replace(community, nodes=free[community.nodes])
        for community in find_communities(edges, np.array(marks, dtype=np.uint64))
    ]
    return plan_communities(graph, [*imported, *offset_parents(others, len(imported))], stored)


def offset_parents(communities: Sequence[Community], n: int) -> list[Community]:
    """Return communities with `n` added to each parent index, so that they can follow `n` other communities in a
    list."""
    return [
        replace(community, parent=community.parent + n) if community.parent >= 0 else community
        for community in communities
    ]


@dataclass(frozen=True, slots=True)
class FactHashes:
    """Hashes of the facts about entities and relations; `isolated` are for entities without relations.

    The hash of an isolated entity includes the number of its mentions.
    """

    entities: Mapping[str, str]
    isolated: Mapping[str, str]
    relations: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityPlan:
    """Communities, coarsest first, with what their hashes are made from. All mappings go by the place of a community.

    `members` are the entity keys of finest communities. `unchanged` holds the stored hashes of communities in which
    nothing changed; `relations` the ids of relations that are in a changed community and in none of its children.
    """

    communities: Sequence[Community]
    ids: Sequence[str]
    members: Sequence[tuple[str, ...]]
    children: Mapping[int, Sequence[int]]
    unchanged: Mapping[int, str]
    relations: Mapping[int, Sequence[str]]

    async def read_hashes(self, view: ReadView) -> FactHashes:
        """Return the hashes of the facts in changed communities."""
        changed = [place for place in range(len(self.communities)) if place not in self.unchanged]
        keys = [key for place in changed for key in self.members[place]]
        entities: dict[str, str] = {}
        isolated: dict[str, str] = {}
        for start in range(0, len(keys), _ROWS_PER_READ):
            for entity in await view.entities(keys[start : start + _ROWS_PER_READ]):
                entities[entity.key] = digest("entity", entity.key, entity.name, entity.type, entity.description)
                isolated[entity.key] = digest("lonely", entities[entity.key], str(entity.n_mentions))
        ids = [identifier for community in self.relations.values() for identifier in community]
        relations: dict[str, str] = {}
        for start in range(0, len(ids), _ROWS_PER_READ):
            for relation in await view.relations(ids[start : start + _ROWS_PER_READ]):
                relations[relation.id] = _relation_hash(relation)
        return FactHashes(entities, isolated, relations)

    def clusters(self, fact_hashes: FactHashes) -> list[Cluster]:
        """Return the communities as clusters with their input hashes."""
        hash_by_place = dict(self.unchanged)
        for place in reversed(range(len(self.communities))):  # children come after their parents
            if place not in hash_by_place:
                hash_by_place[place] = self._inputs_hash(place, fact_hashes, hash_by_place)
        return [
            Cluster(
                id=self.ids[place],
                hierarchy=Hierarchy.COMMUNITIES,
                level=community.level,
                parent=self.ids[community.parent] if community.parent >= 0 else "",
                members=self.members[place],
                n_entities=len(community.nodes),
                inputs_hash=hash_by_place[place],
            )
            for place, community in enumerate(self.communities)
        ]

    def _inputs_hash(self, place: int, fact_hashes: FactHashes, hash_by_place: Mapping[int, str]) -> str:
        ids = self.relations.get(place, ())
        relations = [fact_hashes.relations[identifier] for identifier in ids if identifier in fact_hashes.relations]
        entity_hashes = fact_hashes.entities if relations else fact_hashes.isolated
        contents = [hash_by_place[child] for child in self.children.get(place, ())]
        contents += [entity_hashes[key] for key in self.members[place] if key in entity_hashes]
        return digest("community", *sorted(contents), *relations)


def plan_communities(
    graph: CommunityGraph, communities: Sequence[Community], stored: Sequence[Cluster]
) -> CommunityPlan:
    """Return the plan for communities of this graph."""
    children: dict[int, list[int]] = {}
    for place, community in enumerate(communities):
        if community.parent >= 0:
            children.setdefault(community.parent, []).append(place)
    plan = CommunityPlan(
        communities=communities,
        ids=_community_ids(graph.keys, communities, children),
        members=[
            tuple(graph.keys[node] for node in community.nodes.tolist()) if community.is_finest else ()
            for community in communities
        ],
        children=children,
        unchanged={},
        relations={},
    )
    hash_by_id = {cluster.id: cluster.inputs_hash for cluster in stored if cluster.inputs_hash}
    unchanged = {place: hash_by_id[plan.ids[place]] for place in range(len(plan.ids)) if plan.ids[place] in hash_by_id}
    changed = [place for place in range(len(communities)) if place not in unchanged]
    return replace(plan, unchanged=unchanged, relations=_own_relations(graph, communities, changed))


def _community_ids(
    keys: Sequence[str], communities: Sequence[Community], children: Mapping[int, Sequence[int]]
) -> list[str]:
    """Return ids that are digests of what communities contain, so that equal ids mean equal communities.

    The id of a finest community comes from its entities. The id of a larger one comes from the ids of its parts, and
    from its entities that are in none of these, as imported communities may have them.
    """
    ids = [""] * len(communities)
    for place in reversed(range(len(communities))):  # children come after their parents
        parts = children.get(place, ())
        nodes = communities[place].nodes
        if parts:
            nodes = np.setdiff1d(nodes, np.concatenate([communities[part].nodes for part in parts]), assume_unique=True)
        contents = [*sorted(ids[part] for part in parts), "", *(keys[node] for node in nodes.tolist())]
        ids[place] = digest("communities", *contents)[:16]
    return ids


def _own_relations(
    graph: CommunityGraph, communities: Sequence[Community], places: Collection[int]
) -> dict[int, list[str]]:
    """Return the relations of these communities that are in none of their children, ordered by both ends."""
    relations = graph.relations
    finest = np.full(len(relations.weights), -1, dtype=np.int64)  # the finest community that holds both ends
    for place_by_node in _place_by_node(communities, len(graph.keys)):
        source_place = place_by_node[relations.sources]
        is_inside = (source_place >= 0) & (source_place == place_by_node[relations.targets])
        finest[is_inside] = source_place[is_inside]
    is_selected = np.isin(finest, list(places))
    columns = (column[is_selected].tolist() for column in (finest, relations.sources, relations.targets))
    own: dict[int, list[str]] = {}
    for place, first, second in zip(*columns, strict=True):
        own.setdefault(place, []).append(relation_id(graph.keys[first], graph.keys[second]))
    return own


def _place_by_node(communities: Sequence[Community], n_nodes: int) -> list[Ints]:
    """Return for each level the place of each node's community, [n_nodes]; -1 for none."""
    n_levels = max((community.level for community in communities), default=-1) + 1
    levels = [np.full(n_nodes, -1, dtype=np.int64) for _ in range(n_levels)]
    for place, community in enumerate(communities):
        levels[community.level][community.nodes] = place
    return levels


def _relation_hash(relation: Relation) -> str:
    counts = str(relation.weight), str(relation.n_mentions)
    return digest("relation", relation.id, relation.description, *counts, *relation.keywords)
