"""Bridging: the relations on the shortest ways from each of some entities to the next, then those beside the ways."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from quipu.algo.shortest_paths import ShortestPaths, ShortestPathSearch
from quipu.model.evidence import Hit
from quipu.model.ids import relation_id
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import EdgeWeight, Floats, Ints, Topology
from quipu.retrieve.steps.found import by_place

MAX_RELATIONS = 400  # a budget of 8,000 tokens holds fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Relations, those on the ways first; `n_apart` entities of the chain have no way to the next."""

    relations: tuple[Hit, ...]
    n_apart: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """A relation between two entities on the ways."""

    id: str
    degree_sum: float
    weight: float


async def bridge(keys: Sequence[str], view: ReadView, topology: Topology) -> Ways:
    """Return what connects each entity with the next in the list."""
    numbers = await view.numbers(NodeKind.ENTITY, keys)
    chain = [numbers[key] for key in keys if key in numbers]
    routes, degrees = await asyncio.to_thread(_routes, chain, topology)
    nodes = sorted({number for route in routes if route for number in route.nodes()})
    names = await view.ids(NodeKind.ENTITY, nodes)
    ways = [route.first_path(names.__getitem__) for route in routes if route and route.nodes() <= names.keys()]
    reasons: dict[str, str] = {}
    for way in ways:
        reason = f"on the way from {names[way[0]]} to {names[way[-1]]}"
        for left, right in pairwise(way):
            reasons.setdefault(relation_id(names[left], names[right]), reason)
    beside = _beside({number for way in ways for number in way}, names, degrees, topology)
    reasons |= {each.id: _reason(each) for each in beside if each.id not in reasons}
    hits = by_place(Hit(id=i, score=0.0, reason=reason) for i, reason in islice(reasons.items(), MAX_RELATIONS))
    return Ways(relations=hits, n_apart=routes.count(None))


def _routes(chain: Sequence[int], topology: Topology) -> tuple[list[ShortestPaths | None], Floats]:
    links = topology.relations(EdgeWeight.ONE)
    degrees = links.row_sums()
    search = ShortestPathSearch(links.neighbours, degrees)
    return [search.between(left, right) for left, right in pairwise(chain)], degrees


def _beside(nodes: set[int], names: Mapping[int, str], degrees: Floats, topology: Topology) -> list[_Beside]:
    """Return the relations among the nodes, those between the best connected first, then the heaviest."""
    numbers: Ints = np.array(sorted(nodes), dtype=np.int64)
    links = topology.relations(EdgeWeight.WEIGHT).neighbours(numbers)
    at = numbers[links.positions]
    is_within = np.isin(links.columns, numbers) & (at < links.columns)
    pairs = zip(
        at[is_within].tolist(), links.columns[is_within].tolist(), links.weights[is_within].tolist(), strict=True
    )
    found = [
        _Beside(
            id=relation_id(names[left], names[right]),
            degree_sum=float(degrees[left] + degrees[right]),
            weight=round(weight, 6),
        )
        for left, right, weight in pairs
    ]
    return sorted(found, key=lambda each: (-each.degree_sum, -each.weight, each.id))


def _reason(beside: _Beside) -> str:
    return f"between two entities of the ways; its ends have {beside.degree_sum:g} relations"
