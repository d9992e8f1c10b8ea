"""Tracing: the way by which a walk comes to a passage, so that a person can follow it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quipu.algo.pagerank import WeightedGraph
from quipu.model.evidence import Scored
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import Floats, Ints
from quipu.retrieve.steps.walk import MAX_DECIMALS, N_DIGITS

MAX_STEPS = 6
# By how much rounding may change a rank: by a part of it, and a small one by half of the last decimal.
_ROUNDED_BY, _ROUNDED_BY_LEAST = 0.5 * 10.0 ** (1 - N_DIGITS), 0.5 * 10.0**-MAX_DECIMALS


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """A walk that was made: where it starts again, of any mass, and how often it is where, both [n_nodes]."""

    walk: WeightedGraph
    reset: Floats
    ranks: Floats
    damping: float


async def ways_to(chunks: Sequence[Scored], trail: Trail, view: ReadView) -> dict[str, str]:
    """Return, for each chunk, in words, the way by which most of a walk comes to it from an entity it starts at.

    It is followed backwards, at each node to the one from which most comes, of equal ones to the first by id. Where no
    start is met within `MAX_STEPS` only the last step is told.
    """
    first = trail.walk.n_entities
    numbers = await view.numbers(NodeKind.CHUNK, [chunk.id for chunk in chunks])
    names = {number + first: chunk for chunk, number in numbers.items()}
    ways = {chunk: [number + first] for chunk, number in numbers.items()}
    going = list(ways.values())
    for _ in range(MAX_STEPS):
        sources = _sources(going, trail)
        names |= await _names({node for found in sources for node in found} - names.keys(), first, view)
        for way, found in zip(going, sources, strict=True):
            known = [node for node in found if node in names]
            way.extend([min(known, key=names.__getitem__)] if known else [])
        going = [way for way, found in zip(going, sources, strict=True) if len(found) and not _is_start(way[-1], trail)]
    return {chunk: _told(way, names, trail) for chunk, way in ways.items()}


def _sources(ways: Sequence[Sequence[int]], trail: Trail) -> list[list[int]]:
    """Return, for each way, the nodes from which most may come to its end, as ranks are rounded; none that is on it."""
    ends: Ints = np.array([way[-1] for way in ways], dtype=np.int64)
    found = trail.walk.neighbours(ends)
    shares, ranks = found.weights / trail.walk.degrees[found.columns], trail.ranks[found.columns]
    flows, errors = ranks * shares, np.maximum(ranks * _ROUNDED_BY, _ROUNDED_BY_LEAST) * shares
    sources: list[list[int]] = []
    for place, way in enumerate(ways):
        is_open = (found.positions == place) & ~np.isin(found.columns, way) & (flows > 0)
        least = (flows - errors)[is_open].max(initial=0.0)
        sources.append(np.unique(found.columns[is_open & (flows + errors >= least)]).tolist())
    return sources


async def _names(nodes: Iterable[int], first_chunk: int, view: ReadView) -> Mapping[int, str]:
    entities = sorted(node for node in nodes if node < first_chunk)
    chunks = sorted(node - first_chunk for node in nodes if node >= first_chunk)
    keys = await view.ids(NodeKind.ENTITY, entities) if entities else {}
    ids = await view.ids(NodeKind.CHUNK, chunks) if chunks else {}
    return {**keys, **{number + first_chunk: chunk for number, chunk in ids.items()}}


def _is_start(node: int, trail: Trail) -> bool:
    return node < trail.walk.n_entities and trail.reset[node] > 0


def _told(way: Sequence[int], names: Mapping[int, str], trail: Trail) -> str:
    chunk, *rest = way
    own = (1 - trail.damping) * trail.reset[chunk] / trail.reset.sum()
    if not rest or 2 * own > trail.ranks[chunk]:
        return "as it is near to the question itself"
    words = [names[node] if node < trail.walk.n_entities else f"passage {names[node]}" for node in reversed(rest)]
    return f"by {' → '.join(words)}" if _is_start(rest[-1], trail) else f"by … → {words[-1]}"
