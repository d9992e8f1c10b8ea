"""Planning: what is in each aggregate of a view now, and which of them have to be told anew."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from quipu.algo.cluster_layers import max_layers
from quipu.algo.vector_clusters import Grouping, nearest_centres
from quipu.derive.derivation import DerivationContext
from quipu.derive.hierarchy.outline import Crossing, Outline
from quipu.derive.hierarchy.reading import read_graph
from quipu.model.cluster import Cluster, ClusterRelation, ClusterReport, Hierarchy, Partition
from quipu.model.fold import thousandths_to_weight
from quipu.model.graph import Entity, Relation
from quipu.model.ids import digest, relation_id
from quipu.ports.store import ReadView

NAME = "hierarchy"
VERSION = "1"  # of what inputs are identified by

# What names no model as the author of a text: rules; rules that had to leave something out of a relation, which a model
# would sum up; rules that stand in for a model (its name follows) whose replies are of no use.
EXTRACTIVE, CUT, REFUSED = "extractive/1", "extractive/1, cut", "extractive/1, instead of"


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What an aggregate is told from: what is directly in it, and what stands out of all that is in it.

    `entities` and `tops` begin with those that have the most relations, `relations` with the strongest. `groups` are
    the aggregates directly in it, `chunks` where its entities are mentioned most often.
    """

    cluster: Cluster
    entities: tuple[Entity, ...]
    groups: tuple[str, ...]
    tops: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """What a relation between two aggregates is told from: the relation without its text, and relations of entities."""

    relation: ClusterRelation
    depth: int  # of layers there may be
    relations: tuple[Relation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The hierarchy as it should be. `materials` (what is in one comes first) and `betweens` are of what has changed.

    `chunks` are those of every aggregate, `kept` what is told of them now, `kept_relations` what of the relations
    between them, by ends; `gone` are ends between which there is nothing any more.
    """

    identity: str
    partition: Partition
    materials: tuple[Material, ...]
    betweens: tuple[Between, ...]
    gone: tuple[tuple[str, str], ...]
    chunks: Mapping[str, tuple[str, ...]]
    kept: Mapping[str, ClusterReport]
    kept_relations: Mapping[tuple[str, str], ClusterRelation]


async def make_plan(
    view: ReadView, context: DerivationContext, *, rebuild: bool, grouping: Grouping = nearest_centres
) -> Plan:
    """Return the plan of a view. What has been settled before is not read again, unless all is made anew."""
    graph = await read_graph(view, context.topology)
    outline = await asyncio.to_thread(Outline, graph, grouping)
    identity = identity_of(len(graph.keys), context.embedder.identity, grouping)
    made = (await view.derivations()).get(NAME)
    anew = rebuild or made is None or made.identity != identity
    before = {each.id: each for each in await view.clusters(Hierarchy.AGGREGATES)}
    kept = {each.cluster: each for each in await view.cluster_reports(list(before))}
    told = {(each.source, each.target): each for each in await view.cluster_relations(list(before))}
    standing = (
        {} if anew else {n: each.inputs_hash for n, each in before.items() if _stands(each, kept.get(n), context)}
    )
    work = _Work(outline, standing, told, has_model=context.llm is not None)
    await asyncio.to_thread(work.compare)
    await work.read(view)
    materials = work.materials()
    return Plan(
        identity=identity,
        partition=Partition(hierarchy=Hierarchy.AGGREGATES, clusters=work.clusters(), revision=graph.revision),
        materials=materials,
        betweens=work.betweens(),
        gone=work.gone,
        chunks={outline.ids[node]: work.chunks_of(node) for node in outline.aggregates},
        kept=kept,
        kept_relations=told,
    )


def identity_of(n: int, embedder: str, grouping: Grouping = nearest_centres) -> str:
    """Return what a hierarchy over n entities is made by: where this changes, all of it is told anew."""
    return f"hierarchy/{VERSION} {grouping.__name__} {max_layers(n)} layers {embedder}"


def is_made_by(identity: str, embedder: str, grouping: Grouping) -> bool:
    """Say whether a hierarchy of some size was made by this version, grouping and embedder."""
    return identity.startswith(f"hierarchy/{VERSION} {grouping.__name__} ") and identity.endswith(f" {embedder}")


def _stands(cluster: Cluster, report: ClusterReport | None, context: DerivationContext) -> bool:
    """Say whether what is told of an aggregate is of what is in it, by a model where there is one."""
    is_current = report is not None and cluster.inputs_hash != "" and report.inputs_hash == cluster.inputs_hash
    return report is not None and is_current and not (context.llm is not None and report.model == EXTRACTIVE)


class _Work:
    """What has to be told anew of an outline, and what that is told from."""

    def __init__(
        self,
        outline: Outline,
        standing: Mapping[str, str],
        told: Mapping[tuple[str, str], ClusterRelation],
        *,
        has_model: bool,
    ) -> None:
        self.gone: tuple[tuple[str, str], ...] = ()
        self._outline = outline
        self._told = told
        self._has_model = has_model
        self._changed = [node for node in outline.aggregates if outline.ids[node] not in standing]
        self._hashes = dict(standing)
        self._crossed: list[Crossing] = []
        self._entities: dict[str, Entity] = {}
        self._relations: dict[str, Relation] = {}

    def compare(self) -> None:
        """Work out all numbers, and which relations between aggregates are not what is kept."""
        outline, ids = self._outline, self._outline.ids
        changed = set(self._changed)
        found: set[tuple[str, str]] = set()
        for crossing in outline.crossings():
            ends = ids[crossing.source], ids[crossing.target]
            found.add(ends)
            if not changed.isdisjoint((crossing.source, crossing.target)) or self._differs(ends, crossing):
                self._crossed.append(crossing)
        self.gone = tuple(sorted(self._told.keys() - found))
        _ = outline.tops, outline.chunks, outline.relations

    async def read(self, view: ReadView) -> None:
        """Read the words of all that is told anew."""
        outline = self._outline
        of_changed = [node for each in self._changed for node in (*outline.children[each], *outline.tops[each])]
        keys = sorted({outline.ids[node] for node in of_changed if node < outline.n})
        self._entities = {each.key: each for each in await view.entities(keys)}
        within = chain.from_iterable(outline.relations.get(each, ()) for each in self._changed)
        between = chain.from_iterable(each.strongest.tolist() for each in self._crossed)
        ids = sorted({self._relation_id(row) for row in chain(within, between)})
        self._relations = {each.id: each for each in await view.relations(ids)}

    def materials(self) -> tuple[Material, ...]:
        """Return what each changed aggregate is told from, and work out the hash of it, from the lowest layer up."""
        found = []
        for node in self._changed:
            material = self._material(node)
            inputs_hash = self._hashes[material.cluster.id] = self._hash(material)
            found.append(replace(material, cluster=replace(material.cluster, inputs_hash=inputs_hash)))
        return tuple(found)

    def clusters(self) -> tuple[Cluster, ...]:
        """Return all aggregates with their hashes."""
        found = (self._cluster(node) for node in self._outline.aggregates)
        return tuple(replace(each, inputs_hash=self._hashes[each.id]) for each in found)

    def betweens(self) -> tuple[Between, ...]:
        """Return what each relation between aggregates is told from that is not what is kept.

        The hashes of `materials` are part of theirs: a model is told what is told of both ends.
        """
        return tuple(map(self._between, self._crossed))

    def chunks_of(self, node: int) -> tuple[str, ...]:
        """Return the ids of the chunks an aggregate leads to."""
        ids = self._outline.graph.mentions.ids
        return tuple(ids[place] for place in self._outline.chunks.get(node, ()))

    def _differs(self, ends: tuple[str, str], crossing: Crossing) -> bool:
        told = self._told.get(ends)
        if told is None or (self._has_model and told.model == CUT):
            return True
        return (told.level, told.n_relations, told.weight) != (
            crossing.level,
            crossing.n,
            thousandths_to_weight(crossing.weight),
        )

    def _cluster(self, node: int) -> Cluster:
        outline = self._outline
        parent = int(outline.layers.parents[node])
        return Cluster(
            id=outline.ids[node],
            hierarchy=Hierarchy.AGGREGATES,
            level=int(outline.layers.levels[node]),
            parent=outline.ids[parent] if parent >= 0 else "",
            members=tuple(outline.ids[child] for child in outline.children[node] if child < outline.n),
        )

    def _material(self, node: int) -> Material:
        outline = self._outline
        degrees = outline.graph.degrees
        direct = [child for child in outline.children[node] if child < outline.n]
        groups = (outline.ids[child] for child in outline.children[node] if child >= outline.n)
        return Material(
            cluster=self._cluster(node),
            entities=self._read_of(sorted(direct, key=lambda place: (-int(degrees[place]), place))),
            groups=tuple(sorted(groups)),
            tops=self._read_of(outline.tops.get(node, ())),
            relations=self._related(outline.relations.get(node, ())),
            chunks=self.chunks_of(node),
        )

    def _hash(self, material: Material) -> str:
        """Return what identifies the words an aggregate is told from, those of the aggregates in it included."""
        said = [("entity", e.key, e.name, e.description) for e in sorted(material.entities, key=lambda e: e.key)]
        below = [("aggregate", each, self._hashes[each]) for each in material.groups]
        related = [("relation", r.id, note_of(r)) for r in material.relations]
        return digest("aggregate", VERSION, *chain.from_iterable((*said, *below, *related)))

    def _between(self, crossing: Crossing) -> Between:
        ids, depth = self._outline.ids, max_layers(self._outline.n)
        relations = self._related(crossing.strongest.tolist())
        source, target = ids[crossing.source], ids[crossing.target]
        told_from = str(depth - crossing.level), self._hashes[source], self._hashes[target], *map(note_of, relations)
        relation = ClusterRelation(
            source=source,
            target=target,
            level=crossing.level,
            description="",
            weight=thousandths_to_weight(crossing.weight),
            n_relations=crossing.n,
            inputs_hash=digest("between", VERSION, *told_from),
        )
        return Between(relation=relation, depth=depth, relations=relations)

    def _read_of(self, places: Iterable[int]) -> tuple[Entity, ...]:
        keys = (self._outline.ids[place] for place in places)
        return tuple(self._entities[key] for key in keys if key in self._entities)

    def _related(self, rows: Sequence[int]) -> tuple[Relation, ...]:
        ids = map(self._relation_id, rows)
        return tuple(self._relations[each] for each in ids if each in self._relations)

    def _relation_id(self, row: int) -> str:
        pairs, keys = self._outline.graph.relations, self._outline.ids
        return relation_id(keys[int(pairs.first[row])], keys[int(pairs.second[row])])


def note_of(relation: Relation) -> str:
    """Return what is said of a relation on one line: its description, or else its ends and keywords."""
    if relation.description:
        return " ".join(relation.description.split())
    keywords = f" ({', '.join(relation.keywords)})" if relation.keywords else ""
    return f"{relation.source_name} — {relation.target_name}{keywords}"
