"""What reports are written from: what a view says of communities, most important first.

What matters most is counted within a community: a relation whose ends have most relations there, then the heaviest. So
nothing outside of it changes what is written of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quipu.algo.edge_list import Ints, edge_list
from quipu.derive.report_notes import Notes, Told, choose_notes, connection, subject
from quipu.model.cluster import Cluster, ClusterReport, report_text
from quipu.model.graph import Chunk, Entity, Relation
from quipu.model.ids import relation_id
from quipu.ports.derivation_view import NodeKind
from quipu.ports.providers import Tokenizer
from quipu.ports.store import ReadView
from quipu.ports.topology import EdgeWeight, Topology

MAX_WHOLE = 150  # entities: the parts of larger communities stand in at once
MAX_RELATIONS = 200  # looked at, of one community
MAX_SUBJECTS = 300
MAX_CHUNKS = 8
N_TELLING = 32  # relations that decide which chunks tell most


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What there is to report on a community.

    `notes` are for a model. `names` are its entities and `pairs` its relations, most important first, as they are
    called in the texts of `chunks`, which state most of them. `documents` are all that speak of it, as of `revision`.
    """

    cluster: Cluster
    notes: Notes
    names: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    chunks: tuple[Chunk, ...] = ()
    documents: tuple[str, ...] = ()
    revision: int | None = None


class Tree:
    """All communities, and what is in each."""

    def __init__(self, clusters: Sequence[Cluster]) -> None:
        self.by_id = {each.id: each for each in clusters}
        self._below: dict[str, list[str]] = {}
        for each in clusters:
            self._below.setdefault(each.parent, []).append(each.id)

    def below(self, cluster: str) -> Sequence[str]:
        """Return the communities a community is divided into."""
        return self._below.get(cluster, ())

    def members(self, cluster: str) -> list[str]:
        """Return the entities in a community and below it, ordered."""
        found: list[str] = []
        waiting = [cluster]
        while waiting:
            each = waiting.pop()
            found += self.by_id[each].members
            waiting += self.below(each)
        return sorted(found)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The entities of a community and its relations, as pairs of them, most important first; `part` holds each."""

    cluster: Cluster
    keys: Sequence[str]
    pairs: Sequence[tuple[str, str]]
    part: Mapping[str, str]

    def ids(self) -> list[str]:
        return [relation_id(*pair) for pair in self.pairs]

    def subjects(self) -> list[str]:
        """Return the entities in the order in which the relations name them, then the others."""
        ends = [key for pair in self.pairs for key in pair]
        return list(dict.fromkeys([*ends, *self.keys]))[:MAX_SUBJECTS]


@dataclass(frozen=True, slots=True)
class _Said:
    """What a view says of several communities together."""

    entities: Mapping[str, Entity]
    relations: Mapping[str, Relation]
    chunks_of: Mapping[str, Sequence[str]]  # relations, or entities that have none
    chunks: Mapping[str, Chunk]
    reports: Mapping[str, ClusterReport]
    documents: Mapping[str, tuple[str, ...]]
    revision: int


async def read_material(
    ids: Sequence[str], tree: Tree, view: ReadView, topology: Topology, tokenizer: Tokenizer
) -> list[Material]:
    """Return the material of these communities, in their order."""
    members = {each: tree.members(each) for each in ids}
    numbers = await view.numbers(NodeKind.ENTITY, sorted({key for keys in members.values() for key in keys}))
    ranked = [_rank(tree, each, [key for key in members[each] if key in numbers], numbers, topology) for each in ids]
    said = await _read(ranked, tree, view)
    return [_material(each, tree.below(each.cluster.id), said, tokenizer) for each in ranked]


def _rank(tree: Tree, cluster: str, keys: list[str], numbers: Mapping[str, int], topology: Topology) -> _Ranked:
    rows = np.array([numbers[key] for key in keys], dtype=np.int64)
    links = topology.relations(EdgeWeight.WEIGHT).neighbours(rows)
    order = np.argsort(rows)
    at = np.searchsorted(rows[order], links.columns).clip(max=max(len(rows) - 1, 0))
    is_inside = rows[order][at] == links.columns if len(rows) else np.zeros(0, dtype=bool)
    first, second = links.positions[is_inside], order[at[is_inside]]
    is_once = first < second
    pairs = edge_list(len(keys), first[is_once], second[is_once], links.weights[is_inside][is_once])
    degrees = np.bincount(np.concatenate([pairs.sources, pairs.targets]), minlength=len(keys))
    sums, weights = degrees[pairs.sources] + degrees[pairs.targets], pairs.weights.round(6)
    best = np.lexsort((pairs.targets, pairs.sources, -weights, -sums))
    strength = pairs.degrees().round(6)
    entities = np.lexsort((np.arange(len(keys)), -strength, -degrees))
    part = {key: below for below in tree.below(cluster) for key in tree.members(below)}
    chosen = _chosen(best, pairs.sources, pairs.targets, [part.get(key, "") for key in keys])
    named = [(keys[a], keys[b]) for a, b in zip(pairs.sources[chosen], pairs.targets[chosen], strict=True)]
    return _Ranked(tree.by_id[cluster], [keys[each] for each in entities.tolist()], named, part)


def _chosen(best: Ints, sources: Ints, targets: Ints, parts: Sequence[str]) -> Ints:
    """Return the first relations, and the first of those between two parts, which no report on a part tells of."""
    codes = np.unique(parts, return_inverse=True)[1] if len(parts) else np.empty(0, dtype=np.int64)
    is_between = codes[sources[best]] != codes[targets[best]] if len(best) else np.zeros(0, dtype=bool)
    places = np.union1d(np.arange(min(len(best), MAX_RELATIONS)), np.flatnonzero(is_between)[:MAX_RELATIONS])
    return best[places]


async def _read(ranked: Sequence[_Ranked], tree: Tree, view: ReadView) -> _Said:
    stated = {each for one in ranked for each in one.ids()}
    lonely = {key for one in ranked if not one.pairs for key in one.keys[:N_TELLING]}
    telling = {each for one in ranked for each in one.ids()[:N_TELLING]}
    chunks_of: dict[str, Sequence[str]] = {**await view.chunks_of_relations(sorted(telling))}
    chunks_of |= await view.chunks_mentioning(sorted(lonely), MAX_CHUNKS * MAX_CHUNKS)
    chosen = {chunk for one in ranked for chunk in _telling_chunks(one, chunks_of)}
    subjects = {key for one in ranked for key in one.subjects()}
    parts = [below for one in ranked for below in tree.below(one.cluster.id)]
    return _Said(
        entities={each.key: each for each in await view.entities(sorted(subjects))},
        relations={each.id: each for each in await view.relations(sorted(stated))},
        chunks_of=chunks_of,
        chunks={each.id: each for each in await view.chunks(sorted(chosen))},
        reports={each.cluster: each for each in await view.cluster_reports(parts)},
        documents=await view.cluster_documents([one.cluster.id for one in ranked]),
        revision=view.revision,
    )


def _telling_chunks(one: _Ranked, chunks_of: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the chunks that state most of the first relations; of equal ones, that which states the first of all."""
    said: dict[str, list[int]] = {}
    for place, each in enumerate(one.ids()[:N_TELLING] or one.keys[:N_TELLING]):
        for chunk in chunks_of.get(each, ()):
            said.setdefault(chunk, []).append(place)
    return sorted(said, key=lambda chunk: (-len(said[chunk]), said[chunk], chunk))[:MAX_CHUNKS]


def _material(one: _Ranked, parts: Sequence[str], said: _Said, tokenizer: Tokenizer) -> Material:
    entities = {key: said.entities[key] for key in one.subjects() if key in said.entities}
    rated = sorted((said.reports[each] for each in parts if each in said.reports), key=lambda r: (-r.rating, r.cluster))
    told = Told(
        subjects={key: subject(each) for key, each in entities.items()},
        connections={
            pair: connection(said.relations[each])
            for pair, each in zip(one.pairs, one.ids(), strict=True)
            if each in said.relations
        },
        part=one.part,
        reports={each.cluster: report_text(each) for each in rated},
    )
    telling = _telling_chunks(one, said.chunks_of)
    return Material(
        cluster=one.cluster,
        notes=choose_notes(told, tokenizer.count, is_large=one.cluster.n_entities > MAX_WHOLE),
        names=tuple(entities[key].name for key in one.keys if key in entities),
        pairs=tuple(
            (entities[a].name, entities[b].name) for a, b in one.pairs[:N_TELLING] if a in entities and b in entities
        ),
        chunks=tuple(said.chunks[each] for each in telling if each in said.chunks),
        documents=said.documents.get(one.cluster.id, ()),
        revision=said.revision,
    )
