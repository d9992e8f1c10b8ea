"""Pages of the graph: lists of chunks, entities and relations, neighbours, subgraphs and paths.

All of them are bounded, and their order depends on the documents alone, not on their history. They read arrays: the
topology, and the order of all entities and relations, which is computed once for a revision.
"""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quipu.algo.shortest_paths import ShortestPaths, ShortestPathSearch, best_paths
from quipu.engine.components import Components
from quipu.engine.lookups import check_documents, named_entity, unique_ids
from quipu.errors import InvalidInput
from quipu.model.graph import Relation
from quipu.model.ids import relation_id
from quipu.model.query import Filter
from quipu.model.results import (
    MAX_EDGES,
    MAX_HOPS,
    MAX_NODES,
    MAX_PAGE,
    MAX_PATHS,
    ChunkPage,
    EntityPage,
    EntityPath,
    NeighbourPage,
    RelationPage,
    Subgraph,
)
from quipu.ports.derivation_view import EntityTypes, Ints, NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import EdgeWeight, Topology
from quipu.text.names import entity_key

Bools = npt.NDArray[np.bool_]

_THOUSAND = 1_000
_MAX_DIGITS = 9  # of a place in a document
_N_PROBES = 64  # keys read at once to find the place of a key
_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True)
class RankedGraph:
    """The entities and relations of a topology as arrays.

    The place of an entity is its position in the order of all keys; it decides between equal strengths.
    """

    topology: Topology
    types: EntityTypes

    @cached_property
    def place_by_number(self) -> Ints:
        """The place of the entity with each number, [n]; -1 where there is none."""
        numbers = self.types.numbers
        places = np.full(max(self.topology.n_entities, int(numbers.max(initial=-1)) + 1), -1, dtype=np.int64)
        places[numbers] = np.arange(len(numbers))
        return places

    @cached_property
    def degrees(self) -> Ints:
        """The number of relations of the entity at each place, [n]."""
        sums = self.topology.relations(EdgeWeight.ONE).row_sums()
        degrees = np.zeros(len(self.place_by_number), dtype=np.int64)
        degrees[: len(sums)] = np.rint(sums)
        return degrees[self.types.numbers]

    @cached_property
    def entities(self) -> Ints:
        """The places of all entities, those with the most relations first, [n]."""
        return np.argsort(-self.degrees, kind="stable")

    @cached_property
    def relations(self) -> tuple[Ints, Ints, Ints]:
        """The places of the ends of all relations and their weights in thousandths, largest first, each [n]."""
        sources, targets, weights = self.edges(np.arange(len(self.types.numbers)))
        is_first = sources < targets
        sources, targets, weights = sources[is_first], targets[is_first], weights[is_first]
        order = np.lexsort((targets, sources, -weights))
        return sources[order], targets[order], weights[order]

    def edges(self, places: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the relations of the entities at these places: their own ends, the other ends, and the weights."""
        entries = self.topology.relations(EdgeWeight.WEIGHT).neighbours(self.types.numbers[places])
        weights = np.rint(entries.weights * _THOUSAND).astype(np.int64)
        return places[entries.positions], self.place_by_number[entries.columns], weights

    def has_type(self, places: Ints, types: Sequence[str]) -> Bools:
        """Return for each place whether its entity has one of these types; no types mean any."""
        if not types:
            return np.ones(len(places), dtype=bool)
        codes = [code for code, name in enumerate(self.types.types) if name in types]
        return np.isin(self.types.codes[places], codes)


class GraphPages:
    """The methods of the engine that show parts of the graph."""

    _components: Components
    _ranked: RankedGraph | None = None  # of the last page

    async def chunks(self, document_id: str, *, k: int = 50, after: str = "", as_of: str = "") -> ChunkPage:
        """Return a page of the chunks of a document, in order; with `as_of`, of the version that held then.

        `after` is the cursor of the page before. Raises NotFound with near matches.
        """
        _check_size("k", k, MAX_PAGE)
        if not (after.isascii() and after.isdecimal()) and after:
            raise _no_cursor(after)
        start = int(after[:_MAX_DIGITS]) + 1 if after else 0
        async with self._components.view_at(Filter(as_of=as_of)) as (_, view):
            await check_documents(view, [document_id])
            [document] = await view.documents([document_id])
            chunks = await view.chunks(document_id=document_id, start=start, n_first=k)
        cursor = str(start + k - 1) if start + k < document.n_chunks else ""
        return ChunkPage(chunks=tuple(chunks), n_total=document.n_chunks, cursor=cursor)

    async def entities(
        self, *, prefix: str = "", types: Sequence[str] = (), k: int = 50, after: str = "", as_of: str = ""
    ) -> EntityPage:
        """Return a page of entities, those with the most relations first; with `as_of`, of what held then.

        With `prefix`, only entities whose normalised name begins with it, in any script: letter case, punctuation and a
        leading article do not count. With `types`, only these types. `after` is the cursor of the page before.
        """
        _check_size("k", k, MAX_PAGE)
        async with self._graph(as_of) as (view, graph):
            order = graph.entities
            mask = graph.has_type(order, unique_ids(types))
            if prefix.strip():
                mask &= await _has_prefix(view, graph, order, prefix)
            n_total = int(mask.sum())
            if after:
                degree, key = _cursor(after)
                degrees, first = graph.degrees[order], await _place_after(view, graph, key)
                mask &= (degrees < degree) | ((degrees == degree) & (order >= first))
            places = order[mask][: k + 1]
            entities = await view.entities(list((await _keys(view, graph, places[:k])).values()))
        cursor = f"{graph.degrees[places[k - 1]]}:{entities[-1].key}" if len(places) > k else ""
        return EntityPage(entities=tuple(entities), n_total=n_total, cursor=cursor)

    async def relations(
        self, *, types: Sequence[str] = (), k: int = 50, after: str = "", as_of: str = ""
    ) -> RelationPage:
        """Return a page of relations, the largest weight first; with `as_of`, of what held then.

        With `types`, only relations whose entities both have one of them. `after` is the cursor of the page before.
        """
        _check_size("k", k, MAX_PAGE)
        names = unique_ids(types)
        async with self._graph(as_of) as (view, graph):
            sources, targets, weights = await asyncio.to_thread(lambda: graph.relations)
            mask = graph.has_type(sources, names) & graph.has_type(targets, names)
            n_total = int(mask.sum())
            if after:
                weight, last = _cursor(after)
                source, _, target = last.partition(" -- ")
                is_later = sources >= await _place_after(view, graph, source)
                is_same_source = sources == await _place(view, graph, source)
                is_later |= is_same_source & (targets >= await _place_after(view, graph, target))
                mask &= (weights < weight) | ((weights == weight) & is_later)
            rows = np.flatnonzero(mask)[: k + 1]
            relations = await _relations(view, graph, sources[rows[:k]], targets[rows[:k]])
        cursor = f"{weights[rows[k - 1]]}:{relations[-1].id}" if len(rows) > k else ""
        return RelationPage(relations=tuple(relations), n_total=n_total, cursor=cursor)

    async def neighbours(
        self, name: str, *, types: Sequence[str] = (), k: int = 50, after: str = "", as_of: str = ""
    ) -> NeighbourPage:
        """Return an entity and a page of its neighbours, those with the heaviest relation first; `as_of` as above.

        `name` is a name, alias or key. With `types`, only neighbours of these types. `after` is the cursor of the page
        before. Raises NotFound with near matches.
        """
        _check_size("k", k, MAX_PAGE)
        async with self._graph(as_of) as (view, graph):
            entity = await named_entity(view, name)
            places = await _places(view, graph, [entity.key])
            own, others, weights = graph.edges(places)
            order = np.lexsort((others, -weights))
            order = order[graph.has_type(others[order], unique_ids(types))]
            n_total = len(order)
            if after:
                weight, key = _cursor(after)
                is_later = others[order] >= await _place_after(view, graph, key)
                order = order[(weights[order] < weight) | ((weights[order] == weight) & is_later)]
            order = order[: k + 1]
            relations = await _relations(view, graph, own[order[:k]], others[order[:k]])
            neighbours = await view.entities(list((await _keys(view, graph, others[order[:k]])).values()))
        cursor = f"{weights[order[k - 1]]}:{neighbours[-1].key}" if len(order) > k else ""
        pairs = tuple(zip(relations, neighbours, strict=True))
        return NeighbourPage(entity=entity, neighbours=pairs, n_total=n_total, cursor=cursor)

    async def subgraph(
        self,
        names: str | Sequence[str],
        *,
        hops: int = 2,
        max_entities: int = 200,
        max_relations: int = 1_000,
        as_of: str = "",
    ) -> Subgraph:
        """Return the entities at most `hops` relations from these, and the relations between them; `as_of` as above.

        Nearer entities come first. Among equally near ones, the one with the heaviest relation to an entity nearer to
        the start comes first, then the first by key. Raises NotFound for an unknown name.
        """
        _check_size("hops", hops, MAX_HOPS)
        _check_size("max_entities", max_entities, MAX_NODES)
        _check_size("max_relations", max_relations, MAX_EDGES)
        async with self._graph(as_of) as (view, graph):
            entities = [await named_entity(view, name) for name in unique_ids(names)]
            start = await _places(view, graph, list(dict.fromkeys(entity.key for entity in entities)))
            places, distances, n_more = _nearest(graph, start[:max_entities], hops, max_entities)
            sources, targets, weights = graph.edges(places)
            is_inside = (sources < targets) & np.isin(targets, places)
            sources, targets, weights = sources[is_inside], targets[is_inside], weights[is_inside]
            order = np.lexsort((targets, sources, -weights))[:max_relations]
            return Subgraph(
                entities=tuple(await view.entities(list((await _keys(view, graph, places)).values()))),
                distances=tuple(distances),
                relations=tuple(await _relations(view, graph, sources[order], targets[order])),
                n_more_entities=n_more + len(start[max_entities:]),
                n_more_relations=len(sources) - len(order),
            )

    async def paths(self, first: str, second: str, *, k: int = 3, as_of: str = "") -> tuple[EntityPath, ...]:
        """Return up to `k` shortest paths between two entities, all with the smallest number of relations.

        Paths through entities with fewer relations come first, because a path through an entity that is connected to
        everything says little; equal ones are ordered by keys. The result is empty if no path is found before 200,000
        relations are read. Raises NotFound for an unknown name.
        """
        _check_size("k", k, MAX_PATHS)
        async with self._graph(as_of) as (view, graph):
            ends = [await named_entity(view, name) for name in (first, second)]
            source, target = (await _places(view, graph, [end.key for end in ends])).tolist()
            shortest = await asyncio.to_thread(_search, graph, source, target)
            paths = [] if shortest is None else best_paths(shortest, graph.degrees, k)
            return tuple([await _path(view, graph, np.array(path, dtype=np.int64)) for path in paths])

    @asynccontextmanager
    async def _graph(self, as_of: str = "") -> AsyncIterator[tuple[ReadView, RankedGraph]]:
        """Open a view with its graph; with `as_of`, of what held then. Views of one revision share the ranking."""
        if as_of:
            async with self._components.view_at(Filter(as_of=as_of)) as (then, view):
                yield view, RankedGraph(await then.topology.open(view), await view.entity_types())
            return
        async with self._components.store.view() as view:
            topology = await self._components.topology.open(view)
            graph = self._ranked
            if graph is None or graph.topology is not topology:
                graph = RankedGraph(topology, await view.entity_types())
                await asyncio.to_thread(lambda: graph.entities)
                self._ranked = graph
            yield view, graph


def _check_size(name: str, value: int, largest: int) -> None:
    if not 1 <= value <= largest:
        raise InvalidInput(f"{name} is {value!r}.", remedy=f"Give a number from 1 to {largest:,}.")


def _cursor(text: str) -> tuple[int, str]:
    """Return the strength and the key of the last entry of a page."""
    strength, _, key = text.partition(":")
    if not strength.isdecimal() or not key:
        raise _no_cursor(text)
    return int(strength), key


def _no_cursor(text: str) -> InvalidInput:
    return InvalidInput(f"{text!r} is not a cursor.", remedy="Give the `cursor` of the page before, or none.")


async def _place(view: ReadView, graph: RankedGraph, key: str) -> int:
    """Return the number of entities whose keys are before `key`: the first place that is not."""
    low, high = 0, len(graph.types.numbers)
    while low < high:
        probes = np.unique(np.linspace(low, high - 1, _N_PROBES).astype(np.int64))
        keys = list((await _keys(view, graph, probes)).values())
        n_before = bisect_left(keys, key)
        high = int(probes[n_before]) if n_before < len(probes) else high
        low = int(probes[n_before - 1]) + 1 if n_before else low
    return low


async def _place_after(view: ReadView, graph: RankedGraph, key: str) -> int:
    """Return the first place after the key, which may not exist any more."""
    return await _place(view, graph, key + "\0")


async def _has_prefix(view: ReadView, graph: RankedGraph, places: Ints, prefix: str) -> Bools:
    """Return for each place whether the key begins with the prefix; keys of acronyms are in capitals."""
    key = entity_key(prefix)
    if not key:
        raise InvalidInput(f"{prefix!r} has no letter or digit.", remedy="Give the beginning of a name.")
    mask = np.zeros(len(places), dtype=bool)
    for spelling in sorted({key, key.casefold(), key.upper()}):
        first, end = [await _place(view, graph, bound) for bound in (spelling, spelling + _LAST_CHARACTER)]
        mask |= (places >= first) & (places < end)
    return mask


async def _keys(view: ReadView, graph: RankedGraph, places: Ints) -> Mapping[int, str]:
    """Return the key of the entity at each of these places, by number, in the order of `places`."""
    return await view.ids(NodeKind.ENTITY, graph.types.numbers[places].tolist())


async def _places(view: ReadView, graph: RankedGraph, keys: Sequence[str]) -> Ints:
    """Return the places of these entities, in the given order."""
    numbers = await view.numbers(NodeKind.ENTITY, keys)
    return graph.place_by_number[np.array([numbers[key] for key in keys], dtype=np.int64)]


async def _relations(view: ReadView, graph: RankedGraph, sources: Ints, targets: Ints) -> list[Relation]:
    """Return the relation of each source to its target."""
    key_by_number = await _keys(view, graph, np.concatenate([sources, targets]))
    numbers = graph.types.numbers
    pairs = zip(numbers[sources].tolist(), numbers[targets].tolist(), strict=True)
    return await view.relations([relation_id(key_by_number[a], key_by_number[b]) for a, b in pairs])


def _nearest(graph: RankedGraph, start: Ints, hops: int, max_entities: int) -> tuple[Ints, list[int], int]:
    """Return the places of the nearest entities, their distances, and how many more were seen."""
    places, frontier, n_more = start, start, 0
    distances = [0] * len(start)
    for hop in range(1, hops + 1):
        _, others, weights = graph.edges(frontier)
        is_new = ~np.isin(others, places)
        others, weights = others[is_new], weights[is_new]
        by_weight = np.lexsort((others, -weights))
        candidates, first = np.unique(others[by_weight], return_index=True)
        frontier = candidates[np.argsort(first)][: max_entities - len(places)]
        n_more += len(candidates) - len(frontier)
        places = np.concatenate([places, frontier])
        distances += [hop] * len(frontier)
        if not len(frontier) or n_more:
            break
    return places, distances, n_more


def _search(graph: RankedGraph, source: int, target: int) -> ShortestPaths | None:
    """Return the paths with the fewest relations; equal degrees give all relations one length."""
    topology, numbers, place_by_number = graph.topology, graph.types.numbers, graph.place_by_number
    relations = topology.relations(EdgeWeight.ONE)
    search = ShortestPathSearch(relations.neighbours, np.ones(len(place_by_number)))
    shortest = search.between(int(numbers[source]), int(numbers[target]))
    if shortest is None:
        return None
    successors = {
        int(place_by_number[node]): tuple(sorted(place_by_number[list(following)].tolist()))
        for node, following in shortest.successors.items()
    }
    return ShortestPaths(source=source, target=target, length=shortest.length, successors=successors)


async def _path(view: ReadView, graph: RankedGraph, places: Ints) -> EntityPath:
    entities = await view.entities(list((await _keys(view, graph, places)).values()))
    relations = await _relations(view, graph, places[:-1], places[1:])
    return EntityPath(entities=tuple(entities), relations=tuple(relations))
