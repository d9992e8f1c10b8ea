"""Along: passages that name the entities of paths, or state the relations on them.

What an entity or relation is worth is shared among its passages, so that no hub lifts every passage that names it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from quipu.algo.two_hop_paths import NO_NODE, TwoHopPaths
from quipu.model.ids import relation_id
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import Floats, Topology
from quipu.retrieve.steps.walk import rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Along:
    """What lies along paths, each as much as the paths through it are worth: entities by key, relations by id.

    `chunks` is the worth of each chunk by number, [n_chunks]; `ways` are the paths as keys, best first.
    """

    entities: Mapping[str, float]
    relations: Mapping[str, float]
    chunks: Floats
    ways: tuple[tuple[str, ...], ...]


async def look_along(paths: TwoHopPaths, topology: Topology, view: ReadView) -> Along:
    """Return the entities, relations and chunks of paths: a chunk has its share of each node and relation of each."""
    numbers = np.unique(paths.nodes[paths.nodes != NO_NODE])
    key_by_number = await view.ids(NodeKind.ENTITY, numbers.tolist())
    entities: dict[str, float] = {}
    relations: dict[str, float] = {}
    ways: list[tuple[str, ...]] = []
    for nodes, score in zip(paths.nodes.tolist(), paths.scores.tolist(), strict=True):
        keys = [key_by_number[number] for number in nodes if number in key_by_number]
        ways.append(tuple(keys))
        for key in keys:
            entities[key] = entities.get(key, 0.0) + score
        for one, other in pairwise(keys):
            relation = relation_id(one, other)
            relations[relation] = relations.get(relation, 0.0) + score
    standing = topology.occurrences().neighbours(numbers)
    n_chunks = np.maximum(np.bincount(standing.positions, minlength=len(numbers)), 1)
    shares = np.array([entities.get(key_by_number.get(number, ""), 0.0) for number in numbers.tolist()]) / n_chunks
    chunks = np.bincount(standing.columns, shares[standing.positions], minlength=topology.n_chunks).astype(np.float64)
    stating = await view.chunks_of_relations(list(relations))
    number_by_id = await view.numbers(NodeKind.CHUNK, sorted({chunk for each in stating.values() for chunk in each}))
    for relation, stated_in in stating.items():
        for chunk in stated_in:
            if chunk in number_by_id:
                chunks[number_by_id[chunk]] += relations[relation] / len(stated_in)
    return Along(entities=entities, relations=relations, chunks=rounded(chunks), ways=tuple(ways))


async def best_ways(chunk_ids: Sequence[str], along: Along, topology: Topology, view: ReadView) -> dict[str, str]:
    """Return, for each chunk, the best path of which it names something, in words."""
    numbers = await view.numbers(NodeKind.CHUNK, chunk_ids)
    named = topology.occurrences_by_chunk().neighbours(np.array(list(numbers.values()), dtype=np.int64))
    key_by_number = await view.ids(NodeKind.ENTITY, np.unique(named.columns).tolist())
    keys: list[set[str]] = [set() for _ in numbers]
    for place, entity in zip(named.positions.tolist(), named.columns.tolist(), strict=True):
        keys[place].add(key_by_number.get(entity, ""))
    ways = {
        chunk: next((way for way in along.ways if held.intersection(way)), ())
        for chunk, held in zip(numbers, keys, strict=True)
    }
    return {chunk: " → ".join(way) for chunk, way in ways.items()}
