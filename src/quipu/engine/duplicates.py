"""Which entities of an index may be one: by their names, stated aliases, name vectors and shared neighbours.

How alike names are is kept in memory between calls and follows the change log, so that the next call after a small
change is quick. Vectors count where the derivation `synonyms` is kept.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice

import numpy as np

from quipu.derive.duplicate_index import DuplicateIndex, Pair
from quipu.derive.duplicates import (
    MIN_COSINE,
    PERSON,
    STATED_ALIAS,
    Likeness,
    are_compatible,
    likeness_of_cosine,
    with_neighbours,
)
from quipu.model.edit import DuplicateCandidate, DuplicatePair
from quipu.model.graph import Entity
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import EdgeWeight, Topology, TopologyIndex
from quipu.text.names import entity_key

_N_WEIGHED = 4  # times the pairs that are asked for are weighed: by their types and neighbours, some fall behind
_MAX_SYNONYMS = 20_000  # pairs of names, the most similar first


@dataclass(slots=True)
class _Names:
    """How alike names are at one revision, and which entities a text states to have the name of another."""

    revision: int
    history_nonce: int | None
    index: DuplicateIndex
    aliases: set[Pair] = field(default_factory=set)


@dataclass(slots=True)
class DuplicateFinder:
    """Finds pairs of entities that may be one thing under two names."""

    topology: TopologyIndex
    _names: _Names | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def find(
        self, view: ReadView, *, of: str = "", apart: AbstractSet[tuple[str, str]] = frozenset(), above: float, k: int
    ) -> list[DuplicatePair]:
        """Return at most k pairs with a score of `above` or more, the most certain first; equal scores by key.

        With `of` (a key), only pairs with it. Pairs in `apart` (keys, the smaller first) are left out. Of very many
        pairs, the most certain by name are weighed by shared neighbours.
        """
        async with self._lock:
            names = await self._current(view)
            graph = await self.topology.open(view)
            likenesses = _of_entity(names, graph, names.index.number(of)) if of else _most_alike(names, graph)
            key_of = names.index.key_by_number
            possible = (
                (pair, likeness)
                for pair, likeness in likenesses
                if not apart or tuple(sorted(map(key_of.__getitem__, pair))) not in apart
            )
            candidates = await asyncio.to_thread(list, islice(possible, _N_WEIGHED * k))
        pairs: list[DuplicatePair] = []
        entity_by_key = await _entities(view, (key_of[number] for pair, _ in candidates for number in pair))
        shared = _count_shared([pair for pair, _ in candidates], graph)
        for pair, likeness in candidates:
            first, second = (entity_by_key.get(key_of[number]) for number in pair)
            if first is not None and second is not None and are_compatible(first.type, second.type):
                pairs.append(_pair(first, second, likeness, shared[pair]))
        certain = [pair for pair in pairs if pair.candidate.score >= above]
        return sorted(certain, key=lambda p: (-p.candidate.score, p.candidate.first, p.candidate.second))[:k]

    async def _current(self, view: ReadView) -> _Names:
        """Return the names at the view's revision: those of before, with what has changed since, or all."""
        names = self._names
        if names is not None and names.revision == view.revision:
            return names
        changes = await view.changes_since(names.revision) if names is not None else None
        nonce = getattr(await view.changes_since(view.revision), "history_nonce", None)
        if names is None or changes is None or changes.history_nonce != names.history_nonce:
            keys = await view.ids(NodeKind.ENTITY, (await view.entity_types()).numbers.tolist())
            index = await asyncio.to_thread(DuplicateIndex, keys)
            names = _Names(view.revision, nonce, index, await _stated_aliases(view, index, keys))
        else:
            changed = changes.entities.tolist()
            keys = await view.ids(NodeKind.ENTITY, changed)
            await asyncio.to_thread(names.index.update, changed, keys)
            numbers = frozenset(changed)
            names.aliases = {pair for pair in names.aliases if numbers.isdisjoint(pair)}
            names.aliases |= await _stated_aliases(view, names.index, keys)
            names.revision, names.history_nonce = view.revision, nonce
        self._names = names
        return names


async def _stated_aliases(view: ReadView, index: DuplicateIndex, keys: Mapping[int, str]) -> set[Pair]:
    """Return the pairs with one of these entities of which one is stated to have the name of the other."""
    aliases = {alias for entity in await view.entities(sorted(keys.values())) for alias in entity.aliases}
    names = sorted({*keys.values(), *map(entity_key, aliases)} - {""})
    pairs: set[Pair] = set()
    for name, owners in (await view.keys_by_name(names)).items():
        numbers = [index.number(key) for key in owners if key != name]
        own = index.number(name)
        pairs.update((min(own, n), max(own, n)) for n in numbers if own is not None and n is not None)
    return pairs


def _beside_names(names: _Names, graph: Topology, of: int | None) -> dict[Pair, Likeness]:
    """Return how alike entities are by stated aliases and vectors, and by their names, too."""
    stated = [(p, STATED_ALIAS) for p in names.aliases if (of is None or of in p) and names.index.may_be_one(*p)]
    likeness_by_pair: dict[Pair, Likeness] = {}
    for pair, likeness in (*stated, *_by_vector(names.index, graph, of)):
        known = likeness_by_pair.get(pair) or names.index.likeness_by_pair.get(pair)
        likeness_by_pair[pair] = likeness if known is None else known.or_(likeness)
    return likeness_by_pair


def _most_alike(names: _Names, graph: Topology) -> Iterator[tuple[Pair, Likeness]]:
    """Yield pairs of entities, those that may be the most certain first."""
    beside = _beside_names(names, graph, None)
    by_name = ((pair, likeness) for pair, likeness in names.index.most_alike() if pair not in beside)
    yield from merge(sorted(beside.items(), key=_rank), by_name, key=_rank)


def _of_entity(names: _Names, graph: Topology, of: int | None) -> Iterator[tuple[Pair, Likeness]]:
    """Yield the pairs with one entity, those that may be the most certain first."""
    if of is None:
        return
    pairs = [(min(of, other), max(of, other)) for other in names.index.partners(of)]
    likeness_by_pair = {pair: names.index.likeness_by_pair[pair] for pair in pairs} | _beside_names(names, graph, of)
    yield from sorted(likeness_by_pair.items(), key=_rank)


def _rank(ranked: tuple[Pair, Likeness]) -> tuple[float, Pair]:
    pair, likeness = ranked
    return -likeness.bound, pair


def _by_vector(index: DuplicateIndex, graph: Topology, of: int | None) -> Iterable[tuple[Pair, Likeness]]:
    """Return the pairs whose names are similar by their vectors, where `synonyms` is kept."""
    synonyms = graph.synonyms()
    if not synonyms.n_entries:
        return []
    rows = np.arange(synonyms.shape[0]) if of is None else np.array([of])
    near = synonyms.neighbours(rows)
    first, second = rows[near.positions], near.columns
    is_near = (near.weights >= MIN_COSINE) & ((first < second) | (of is not None))
    order = np.argsort(-near.weights[is_near], kind="stable")[:_MAX_SYNONYMS]
    triples = zip(
        first[is_near][order].tolist(),
        second[is_near][order].tolist(),
        near.weights[is_near][order].tolist(),
        strict=True,
    )
    return [((min(a, b), max(a, b)), likeness_of_cosine(cosine)) for a, b, cosine in triples if index.may_be_one(a, b)]


async def _entities(view: ReadView, keys: Iterable[str]) -> dict[str, Entity]:
    return {entity.key: entity for entity in await view.entities(sorted(set(keys)))}


def _count_shared(pairs: Sequence[Pair], graph: Topology) -> dict[Pair, int]:
    """Return how many neighbours both entities of each pair have."""
    numbers = np.array(
        sorted({number for pair in pairs for number in pair if number < graph.n_entities}), dtype=np.int64
    )
    near = graph.relations(EdgeWeight.ONE).neighbours(numbers)
    neighbours: dict[int, set[int]] = {}
    for position, column in zip(near.positions.tolist(), near.columns.tolist(), strict=True):
        neighbours.setdefault(int(numbers[position]), set()).add(column)
    none: Collection[int] = frozenset()
    return {(a, b): len({*neighbours.get(a, none)} & {*neighbours.get(b, none)}) for a, b in pairs}


def _pair(one: Entity, other: Entity, likeness: Likeness, n_shared: int) -> DuplicatePair:
    first, second = (one, other) if one.key < other.key else (other, one)
    score = likeness.of_persons if PERSON in (first.type, second.type) else likeness.score
    candidate = DuplicateCandidate(first=first.key, second=second.key, score=score, reasons=likeness.reasons)
    return DuplicatePair(candidate=with_neighbours(candidate, n_shared), first=first, second=second)
