"""Aggregate inputs: what each text of the hierarchy is written from, its input hash, and which texts are outdated."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from quipu.algo.cluster_layers import max_layers
from quipu.algo.vector_clusters import Grouping, nearest_centres
from quipu.derive.aggregation import Aggregation, InterClusterRelation, read_entity_graph
from quipu.derive.derivation import DerivationContext
from quipu.model.cluster import Cluster, ClusterRelation, ClusterReport, Hierarchy, Partition
from quipu.model.derivation import HIERARCHY
from quipu.model.graph import Entity, Relation, thousandths_to_weight
from quipu.model.ids import digest, relation_id
from quipu.ports.store import ReadView

VERSION = "1"  # of the input hashes

# What a text names as its model if no language model wrote it.
EXTRACTIVE = "extractive/1"
EXTRACTIVE_CUT = "extractive/1, cut"  # of a relation: some notes did not fit, so a model would summarise them
EXTRACTIVE_AFTER_REFUSAL = "extractive/1, instead of"  # and the name of the model, whose replies were not valid


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateInputs:
    """What the report on an aggregate is written from.

    `entities` and `children` (aggregate ids) are directly in it. `top_entities` are those in it or below with most
    relations, `relations` the strongest that no child contains, `chunks` those with most mentions of its entities.
    """

    cluster: Cluster
    entities: tuple[Entity, ...]
    children: tuple[str, ...]
    top_entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRelationInputs:
    """What the relation of two aggregates is written from: the relation without text, and relations of entities."""

    relation: ClusterRelation
    depth: int  # the largest possible number of layers
    relations: tuple[Relation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchyPlan:
    """The hierarchy of a view, and the inputs of outdated texts, children before their parents.

    `chunks` are the chunks of each aggregate. `stored_reports` has one entry per aggregate, `stored_relations` one per
    pair of ends. `obsolete_ends` are pairs that are no longer related.
    """

    identity: str
    partition: Partition
    reports: tuple[AggregateInputs, ...]
    relations: tuple[ClusterRelationInputs, ...]
    obsolete_ends: tuple[tuple[str, str], ...]
    chunks: Mapping[str, tuple[str, ...]]
    stored_reports: Mapping[str, ClusterReport]
    stored_relations: Mapping[tuple[str, str], ClusterRelation]


async def plan_hierarchy(
    view: ReadView, context: DerivationContext, *, rebuild: bool, grouping: Grouping = nearest_centres
) -> HierarchyPlan:
    """Return the plan of a view. Inputs of current texts are not read, unless everything is rebuilt."""
    graph = await read_entity_graph(view, context.topology)
    aggregation = await asyncio.to_thread(Aggregation, graph, grouping)
    identity = hierarchy_identity(len(graph.keys), context.embedder.identity, grouping)
    record = (await view.derivations()).get(HIERARCHY)
    is_rebuild = rebuild or record is None or record.identity != identity
    stored = {cluster.id: cluster for cluster in await view.clusters(Hierarchy.AGGREGATES)}
    reports = {report.cluster: report for report in await view.cluster_reports(list(stored))}
    relations = {
        (relation.source, relation.target): relation for relation in await view.cluster_relations(list(stored))
    }
    current_hashes = {
        cluster_id: cluster.inputs_hash
        for cluster_id, cluster in stored.items()
        if not is_rebuild and _is_current(cluster, reports.get(cluster_id), has_model=context.llm is not None)
    }
    planner = _Planner(aggregation, current_hashes, relations, has_model=context.llm is not None)
    await asyncio.to_thread(planner.compare)
    await planner.read(view)
    report_inputs = planner.report_inputs()
    return HierarchyPlan(
        identity=identity,
        partition=Partition(hierarchy=Hierarchy.AGGREGATES, clusters=planner.clusters(), revision=graph.revision),
        reports=report_inputs,
        relations=planner.relation_inputs(),
        obsolete_ends=planner.obsolete_ends,
        chunks={aggregation.ids[node]: planner.chunk_ids(node) for node in aggregation.aggregates},
        stored_reports=reports,
        stored_relations=relations,
    )


def hierarchy_identity(n_entities: int, embedder: str, grouping: Grouping = nearest_centres) -> str:
    """Return the identity of the methods and settings of a hierarchy over n entities; if it changes, all is
    rewritten."""
    return f"hierarchy/{VERSION} {grouping.__name__} {max_layers(n_entities)} layers {embedder}"


def has_same_method(identity: str, embedder: str, grouping: Grouping) -> bool:
    """Return whether a hierarchy of any size was made with this version, grouping and embedder."""
    return identity.startswith(f"hierarchy/{VERSION} {grouping.__name__} ") and identity.endswith(f" {embedder}")


def _is_current(cluster: Cluster, report: ClusterReport | None, *, has_model: bool) -> bool:
    """Return whether a report has the hash of its cluster, and is by a model if there is one."""
    if report is None or cluster.inputs_hash == "" or report.inputs_hash != cluster.inputs_hash:
        return False
    return not (has_model and report.model == EXTRACTIVE)


class _Planner:
    """Finds the outdated texts of an aggregation, and reads what they are written from."""

    def __init__(
        self,
        aggregation: Aggregation,
        current_hashes: Mapping[str, str],
        stored_relations: Mapping[tuple[str, str], ClusterRelation],
        *,
        has_model: bool,
    ) -> None:
        self.obsolete_ends: tuple[tuple[str, str], ...] = ()
        self._aggregation = aggregation
        self._stored_relations = stored_relations
        self._has_model = has_model
        self._changed = [node for node in aggregation.aggregates if aggregation.ids[node] not in current_hashes]
        self._hash_by_id = dict(current_hashes)
        self._changed_relations: list[InterClusterRelation] = []
        self._entities: dict[str, Entity] = {}
        self._relations: dict[str, Relation] = {}

    def compare(self) -> None:
        """Do all computation with arrays, and find the relations between aggregates that differ from the stored."""
        aggregation, ids = self._aggregation, self._aggregation.ids
        changed = set(self._changed)
        present: set[tuple[str, str]] = set()
        for relation in aggregation.inter_cluster_relations():
            ends = ids[relation.source], ids[relation.target]
            present.add(ends)
            if not changed.isdisjoint((relation.source, relation.target)) or self._differs(ends, relation):
                self._changed_relations.append(relation)
        self.obsolete_ends = tuple(sorted(self._stored_relations.keys() - present))
        _ = aggregation.top_entities, aggregation.chunks, aggregation.relations  # cached for the event loop

    def _differs(self, ends: tuple[str, str], relation: InterClusterRelation) -> bool:
        stored = self._stored_relations.get(ends)
        if stored is None or (self._has_model and stored.model == EXTRACTIVE_CUT):
            return True
        current = (relation.level, relation.n, thousandths_to_weight(relation.weight))
        return (stored.level, stored.n_relations, stored.weight) != current

    async def read(self, view: ReadView) -> None:
        """Read the entities and relations that outdated texts are written from."""
        aggregation = self._aggregation
        nodes = [
            node
            for aggregate in self._changed
            for node in (*aggregation.children[aggregate], *aggregation.top_entities[aggregate])
        ]
        keys = sorted({aggregation.ids[node] for node in nodes if node < aggregation.n_entities})
        self._entities = {entity.key: entity for entity in await view.entities(keys)}
        within = chain.from_iterable(aggregation.relations.get(node, ()) for node in self._changed)
        between = chain.from_iterable(relation.strongest.tolist() for relation in self._changed_relations)
        ids = sorted({self._relation_id(row) for row in chain(within, between)})
        self._relations = {relation.id: relation for relation in await view.relations(ids)}

    def report_inputs(self) -> tuple[AggregateInputs, ...]:
        """Return the inputs of each outdated report with their hash, from the lowest layer up."""
        all_inputs = []
        for node in self._changed:
            inputs = self._aggregate_inputs(node)
            inputs_hash = self._hash_by_id[inputs.cluster.id] = self._inputs_hash(inputs)
            all_inputs.append(replace(inputs, cluster=replace(inputs.cluster, inputs_hash=inputs_hash)))
        return tuple(all_inputs)

    def clusters(self) -> tuple[Cluster, ...]:
        """Return all aggregates with their hashes; to be called after `report_inputs`."""
        clusters = map(self._cluster, self._aggregation.aggregates)
        return tuple(replace(cluster, inputs_hash=self._hash_by_id[cluster.id]) for cluster in clusters)

    def relation_inputs(self) -> tuple[ClusterRelationInputs, ...]:
        """Return the inputs of each outdated relation; to be called after `report_inputs`.

        Their hashes include the hashes of both ends, because a model is given the reports on both ends.
        """
        return tuple(map(self._relation_inputs, self._changed_relations))

    def chunk_ids(self, node: int) -> tuple[str, ...]:
        """Return the ids of the chunks that the report on an aggregate cites."""
        ids = self._aggregation.graph.mentions.ids
        return tuple(ids[place] for place in self._aggregation.chunks.get(node, ()))

    def _cluster(self, node: int) -> Cluster:
        aggregation = self._aggregation
        parent = int(aggregation.layers.parents[node])
        children = aggregation.children[node]
        return Cluster(
            id=aggregation.ids[node],
            hierarchy=Hierarchy.AGGREGATES,
            level=int(aggregation.layers.levels[node]),
            parent=aggregation.ids[parent] if parent >= 0 else "",
            members=tuple(aggregation.ids[child] for child in children if child < aggregation.n_entities),
        )

    def _aggregate_inputs(self, node: int) -> AggregateInputs:
        aggregation = self._aggregation
        degrees, n_entities = aggregation.graph.degrees, aggregation.n_entities
        entities = [child for child in aggregation.children[node] if child < n_entities]
        aggregates = (aggregation.ids[child] for child in aggregation.children[node] if child >= n_entities)
        return AggregateInputs(
            cluster=self._cluster(node),
            entities=self._entities_at(sorted(entities, key=lambda place: (-int(degrees[place]), place))),
            children=tuple(sorted(aggregates)),
            top_entities=self._entities_at(aggregation.top_entities.get(node, ())),
            relations=self._relations_at(aggregation.relations.get(node, ())),
            chunks=self.chunk_ids(node),
        )

    def _inputs_hash(self, inputs: AggregateInputs) -> str:
        """Return the hash of the text that a report is written from, including the hashes of child aggregates."""
        entities = sorted(inputs.entities, key=lambda entity: entity.key)
        parts = (
            *(("entity", entity.key, entity.name, entity.description) for entity in entities),
            *(("aggregate", child, self._hash_by_id[child]) for child in inputs.children),
            *(("relation", relation.id, relation_note(relation)) for relation in inputs.relations),
        )
        return digest("aggregate", VERSION, *chain.from_iterable(parts))

    def _relation_inputs(self, relation: InterClusterRelation) -> ClusterRelationInputs:
        ids, depth = self._aggregation.ids, max_layers(self._aggregation.n_entities)
        relations = self._relations_at(relation.strongest.tolist())
        source, target = ids[relation.source], ids[relation.target]
        hashes = self._hash_by_id[source], self._hash_by_id[target]
        notes = map(relation_note, relations)
        cluster_relation = ClusterRelation(
            source=source,
            target=target,
            level=relation.level,
            description="",
            weight=thousandths_to_weight(relation.weight),
            n_relations=relation.n,
            inputs_hash=digest("between", VERSION, str(depth - relation.level), *hashes, *notes),
        )
        return ClusterRelationInputs(relation=cluster_relation, depth=depth, relations=relations)

    def _entities_at(self, places: Iterable[int]) -> tuple[Entity, ...]:
        keys = (self._aggregation.ids[place] for place in places)
        return tuple(self._entities[key] for key in keys if key in self._entities)

    def _relations_at(self, rows: Sequence[int]) -> tuple[Relation, ...]:
        ids = map(self._relation_id, rows)
        return tuple(self._relations[identifier] for identifier in ids if identifier in self._relations)

    def _relation_id(self, row: int) -> str:
        relations, keys = self._aggregation.graph.relations, self._aggregation.ids
        return relation_id(keys[int(relations.first[row])], keys[int(relations.second[row])])


def relation_note(relation: Relation) -> str:
    """Return a relation as one line: its description, or else its ends and keywords."""
    if relation.description:
        return " ".join(relation.description.split())
    keywords = f" ({', '.join(relation.keywords)})" if relation.keywords else ""
    return f"{relation.source_name} — {relation.target_name}{keywords}"
