"""Reading: what a hierarchy is made from, as arrays: entities with vectors, relations, the chunks that mention them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quipu.model.fold import weight_to_thousandths
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import EdgeWeight, Topology, TopologyIndex

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationPairs:
    """Relations, each [m]: places of both entities in the order of their keys, weights in thousandths."""

    first: Ints
    second: Ints
    weights: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """Which entity is mentioned in which chunk how often, each [m]; chunks are places among `ids`, which rise."""

    entities: Ints
    chunks: Ints
    counts: Ints
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityGraph:
    """The entities of a view that have a vector, by rising key, and all that a hierarchy over them is made from.

    `vectors` [n, d]; `degrees` [n] is how many of the others each is related to. Relations and mentions are of these
    entities alone. Nothing here depends on when anything was added.
    """

    revision: int
    keys: tuple[str, ...]
    vectors: npt.NDArray[np.float16]
    degrees: Ints
    relations: RelationPairs
    mentions: Mentions


async def read_graph(view: ReadView, topologies: TopologyIndex) -> EntityGraph:
    """Return the graph of a view; entities that wait for a vector are left out."""
    block = await view.vectors_after(VectorSpace.ENTITY, -1)
    owners = await view.vector_owners(VectorSpace.ENTITY, block.rows.tolist())
    place_by_key = {key: place for place, row in enumerate(block.rows.tolist()) for key in owners.get(row, ())}
    number_by_key = await view.numbers(NodeKind.ENTITY, sorted(place_by_key))
    keys = tuple(sorted(number_by_key))
    numbers = np.array([number_by_key[key] for key in keys], dtype=np.int64)
    topology = await topologies.open(view)
    relations = _relations(topology, numbers)
    ends = np.concatenate([relations.first, relations.second])
    return EntityGraph(
        revision=view.revision,
        keys=keys,
        vectors=block.data[[place_by_key[key] for key in keys]],
        degrees=np.bincount(ends, minlength=len(keys)).astype(np.int64),
        relations=relations,
        mentions=await _mentions(view, topology, numbers),
    )


def _relations(topology: Topology, numbers: Ints) -> RelationPairs:
    place = np.full(max(topology.n_entities, int(numbers.max(initial=-1)) + 1), -1, dtype=np.int64)
    place[numbers] = np.arange(len(numbers))
    links = topology.relations(EdgeWeight.WEIGHT).neighbours(numbers)
    ends = place[links.columns]
    is_kept = links.positions < ends  # each once; an end that is not there has place -1
    thousandths = np.rint(links.weights[is_kept] * weight_to_thousandths(1.0)).astype(np.int64)
    return RelationPairs(first=links.positions[is_kept], second=ends[is_kept], weights=thousandths)


async def _mentions(view: ReadView, topology: Topology, numbers: Ints) -> Mentions:
    links = topology.mentions().neighbours(numbers)
    present, chunk = np.unique(links.columns, return_inverse=True)
    id_by_number = await view.ids(NodeKind.CHUNK, present.tolist())
    listed = [id_by_number.get(number, "") for number in present.tolist()]
    ids = tuple(sorted({each for each in listed if each}))
    rank = {identifier: place for place, identifier in enumerate(ids)}
    place = np.array([rank.get(each, -1) for each in listed], dtype=np.int64)
    chunks = place[chunk] if len(place) else chunk.astype(np.int64)
    is_kept = chunks >= 0
    return Mentions(
        entities=links.positions[is_kept],
        chunks=chunks[is_kept],
        counts=np.rint(links.weights[is_kept]).astype(np.int64),
        ids=ids,
    )
