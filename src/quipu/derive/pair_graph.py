"""The graph communities are found in: related entities, and ties for those that are related to too few."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from quipu.algo.edge_list import EdgeList, Floats, Ints, connected_components, edge_list
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import AdjacencyMatrix, EdgeWeight, Topology

TIED_BELOW = 5  # entities: components of fewer are tied to what their passages name as well
_UNIT = 1_000_000_000  # of a tie: sums of whole numbers do not show in which order they were added


@dataclass(frozen=True, slots=True)
class PairGraph:
    """Entities in the order of their keys, their relations, and these together with the ties."""

    keys: list[str]
    relations: EdgeList
    tied: EdgeList


async def read_pair_graph(view: ReadView, topology: Topology) -> PairGraph:
    """Return the graph of all entities. It depends on what documents say alone, never on row numbers."""
    key_by_number = await view.ids(NodeKind.ENTITY, range(topology.n_entities))
    return await asyncio.to_thread(_pair_graph, key_by_number, topology)


def _pair_graph(key_by_number: Mapping[int, str], topology: Topology) -> PairGraph:
    numbers = np.array(sorted(key_by_number, key=key_by_number.__getitem__), dtype=np.int64)
    places = np.full(topology.n_entities, -1, dtype=np.int64)
    places[numbers] = np.arange(len(numbers))
    links = topology.relations(EdgeWeight.WEIGHT).neighbours(numbers)
    ends = places[links.columns]
    is_first = links.positions < ends
    relations = edge_list(len(numbers), links.positions[is_first], ends[is_first], links.weights[is_first])
    keys = [key_by_number[number] for number in numbers.tolist()]
    return PairGraph(keys, relations, _with_ties(relations, topology, numbers, places))


def _with_ties(relations: EdgeList, topology: Topology, numbers: Ints, places: Ints) -> EdgeList:
    """Add, for each entity of a small component, ties to what each of its passages names: 1 a passage, shared.

    Without them a pair of names nothing else is said of would be a community, with a report, of its own.
    """
    component = connected_components(relations)
    small = np.flatnonzero(np.bincount(component, minlength=relations.n)[component] < TIED_BELOW)
    if not len(small):
        return relations
    named = topology.occurrences().neighbours(numbers[small])
    chunks, at = np.unique(named.columns, return_inverse=True)
    first, second, weights = _company(topology.occurrences_by_chunk(), chunks, small[named.positions], at, places)
    tied = edge_list(
        relations.n,
        np.concatenate([relations.sources, first]),
        np.concatenate([relations.targets, second]),
        np.concatenate([np.rint(relations.weights * _UNIT), weights]),
    )
    return replace(tied, weights=tied.weights / _UNIT)


def _company(
    namings: AdjacencyMatrix, chunks: Ints, entities: Ints, at: Ints, places: Ints
) -> tuple[Ints, Ints, Floats]:
    """Return the ties of `entities`, each named by the chunk `at` its place among `chunks`, to all that it names."""
    said = namings.neighbours(chunks)
    others = places[said.columns]
    of, others = said.positions[others >= 0], others[others >= 0]
    starts = np.searchsorted(of, np.arange(len(chunks) + 1))
    sizes = (starts[1:] - starts[:-1])[at]
    first = np.repeat(entities, sizes)
    offsets = np.arange(len(first)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    second = others[np.repeat(starts[:-1][at], sizes) + offsets]
    weights = np.rint(_UNIT / np.maximum(np.repeat(sizes, sizes) - 1, 1))
    return first, second, weights
