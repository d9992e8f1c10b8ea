"""Writing clusters: partitions, reports, relations between clusters, and what each commit changes in them.

When the facts about an entity change, the clusters that contain it become unsettled: the inputs of their reports must
be computed again. When facts about it are removed, their reports are dropped, because they may quote them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, select, tuple_

from quipu.errors import InvalidDelta
from quipu.model.cluster import Cluster, ClusterRelationUpdate, ClusterReport, Hierarchy, Partition, report_text
from quipu.model.derivation import REPORTS
from quipu.model.graph import weight_to_thousandths
from quipu.model.summary import SummaryTarget, SummaryTargetKind
from quipu.ports.store import VectorSpace
from quipu.stores.relational import change_log
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import (
    Backend,
    ByValues,
    execute_rows,
    insert_rows,
    next_rid,
    read_number,
    to_json,
    write_meta,
)
from quipu.stores.relational.vector_writes import VectorChanges, vector_hash

_TOUCHED = "entities"  # the revision of the last change of a fact about an entity
_MADE_FROM, _WRITTEN_AT = "divided as of ", "divided at "  # followed by a hierarchy: revisions

_k, _m, _p, _r, _e = s.cluster.c, s.membership.c, s.report.c, s.cluster_relation.c, s.entity.c
_CLUSTERS_OF = ByValues(select(_m.entity, _m.cluster), _m.entity)
_PARENTS = ByValues(select(_k.parent).distinct().where(_k.parent.is_not(None)), _k.rid)
_UNSETTLE = ByValues(s.cluster.update().values(inputs_hash=""), _k.rid)
_SIZES = ByValues(select(_k.rid, _k.parent, _k.n_entities), _k.rid)
_LEAVE = ByValues(s.membership.delete(), tuple_(_m.entity, _m.cluster))
_DROP = ByValues(s.cluster.delete(), _k.rid)
_ENTITIES = ByValues(select(_e.key, _e.rid), _e.key)
_CLUSTERS = select(s.cluster).where(_k.hierarchy == bindparam("of"))
_MEMBERS = select(_m.entity, _m.cluster).join(s.cluster, _k.rid == _m.cluster).where(_k.hierarchy == bindparam("of"))
_RESIZE = s.cluster.update().where(_k.rid == bindparam("row")).values(n_entities=bindparam("n_entities"))
_COLUMNS = ("level", "parent", "n_entities", "inputs_hash")
_CHANGE = (
    s.cluster.update().where(_k.rid == bindparam("row")).values({name: bindparam(f"new_{name}") for name in _COLUMNS})
)
_CURRENT = ByValues(select(_k.rid, _k.id, _k.inputs_hash, _k.hierarchy), _k.id)
_REPORT_HASHES = ByValues(select(_p.rid, _p.vector_hash), _p.rid)
_DROP_REPORTS = ByValues(s.report.delete(), _p.rid)
_DROP_RELATIONS = ByValues(s.cluster_relation.delete(), tuple_(_r.source, _r.target))
_DROP_RELATIONS_OF = [ByValues(s.cluster_relation.delete(), end) for end in (_r.source, _r.target)]


@dataclass(slots=True)
class Touched:
    """Clusters, by row id, that a change touched. Reports of `robbed` ones and relations with them must be dropped."""

    unsettled: set[int] = field(default_factory=set)
    robbed: set[int] = field(default_factory=set)
    vectors: VectorChanges = field(default_factory=VectorChanges)  # of the dropped reports


def follow_mentions(
    connection: Connection,
    backend: Backend,
    changed: Collection[int],
    forgotten: Collection[int],
    removed: Collection[int],
) -> Touched:
    """Update clusters after a commit: drop the reports that may quote removed facts, and remove gone entities.

    All entities are given by row id: those with changed facts, those with removed facts, and those that are gone.
    """
    if not changed:
        return Touched()
    revision = read_number(connection, "revision")
    write_meta(connection, _TOUCHED, revision)
    clusters_by_entity: dict[int, set[int]] = {}
    for entity, cluster in _CLUSTERS_OF.rows(connection, sorted(changed)):
        clusters_by_entity.setdefault(entity, set()).add(cluster)
    if not clusters_by_entity:
        return Touched()
    change_log.log_mention_changes(connection, backend, revision, clusters_by_entity)
    robbed = set().union(*(clusters_by_entity.get(entity, ()) for entity in forgotten))
    unsettled = _with_ancestors(connection, set().union(*clusters_by_entity.values()))
    robbed = _with_ancestors(connection, robbed)
    _UNSETTLE.run(connection, sorted(unsettled))
    vectors = drop_reports(connection, robbed)
    _remove_members(connection, sorted((entity, c) for entity in removed for c in clusters_by_entity.get(entity, ())))
    return Touched(unsettled, robbed, vectors)


def unsettle_summarised(connection: Connection, backend: Backend, owners: Sequence[SummaryTarget]) -> None:
    """Unsettle the clusters of entities and relations with a new summary, which removes no fact."""
    keys: set[str] = set()
    for owner in owners:
        keys.update(owner.id.split(" -- ") if owner.kind is SummaryTargetKind.RELATION else [owner.id])
    rids = [rid for _, rid in _ENTITIES.rows(connection, sorted(keys))]
    follow_mentions(connection, backend, rids, (), ())


def write_partition(connection: Connection, partition: Partition) -> tuple[set[int], VectorChanges]:
    """Replace all clusters of a hierarchy; return the clusters whose reports were dropped, and the changed vectors.

    A report stays with its cluster unless an entity has left the cluster. Clusters that contain an entity whose facts
    have changed since the partition was computed become unsettled.
    """
    _check(partition.clusters)
    of = {"of": partition.hierarchy.value}
    before = {row.id: row for row in connection.execute(_CLUSTERS, of)}
    members_before = dict(map(tuple, connection.execute(_MEMBERS, of)))
    entity_by_key = dict(map(tuple, _ENTITIES.rows(connection, [k for c in partition.clusters for k in c.members])))
    sizes = _sizes(partition.clusters, entity_by_key)
    clusters = [cluster for cluster in partition.clusters if sizes[cluster.id]]
    rids = _assign_rids(connection, clusters, {row.id: row.rid for row in before.values()})
    unsettled = _unsettled(connection, partition, entity_by_key, members_before)
    after = {c.id: _cluster_row(c, rids, sizes[c.id], is_current=c.id not in unsettled) for c in clusters}
    members = {entity_by_key[key]: rids[c.id] for c in clusters for key in c.members if key in entity_by_key}
    parents_before = {row.rid: row.parent for row in before.values()}
    robbed = _robbed(members_before, members, parents_before, {row["rid"]: row["parent"] for row in after.values()})
    removed = {row.rid for cluster_id, row in before.items() if cluster_id not in after}
    vectors = drop_reports(connection, robbed | removed)
    _replace(connection, before, after, removed)
    _LEAVE.run(connection, sorted(members_before.items() - members.items()))
    new_members = sorted(members.items() - members_before.items())
    insert_rows(connection, s.membership, [{"entity": entity, "cluster": cluster} for entity, cluster in new_members])
    write_meta(connection, _MADE_FROM + partition.hierarchy.value, partition.revision)
    write_meta(connection, _WRITTEN_AT + partition.hierarchy.value, read_number(connection, "revision"))
    return robbed | removed, vectors


def write_reports(connection: Connection, reports: Sequence[ClusterReport]) -> tuple[VectorChanges, int]:
    """Write the reports whose inputs are still current; return the changed vectors and the number of outdated reports.

    Reports of communities are left out too if reports are no longer derived.
    """
    if any(not (report.title.strip() or report.summary.strip()) for report in reports):
        raise InvalidDelta("A report without words.")
    # Only the reports of communities are a derivation of their own.
    is_derived = change_log.is_derived(connection, REPORTS)
    rows = {
        row.id: row
        for row in _CURRENT.rows(connection, sorted({report.cluster for report in reports}))
        if is_derived or row.hierarchy != Hierarchy.COMMUNITIES
    }
    current = {
        rows[report.cluster].rid: report
        for report in reports
        if report.cluster in rows and report.inputs_hash and report.inputs_hash == rows[report.cluster].inputs_hash
    }
    hash_before = dict(map(tuple, _REPORT_HASHES.rows(connection, sorted(current))))
    _DROP_REPORTS.run(connection, sorted(current))
    new_rows = [_report_row(rid, report) for rid, report in sorted(current.items())]
    vectors = VectorChanges()
    for row in new_rows:
        vectors.moved(VectorSpace.REPORT, hash_before.get(row["rid"], ""), row["vector_hash"])
    insert_rows(connection, s.report, new_rows)
    return vectors, len(reports) - len(new_rows)


def drop_reports(connection: Connection, rids: Iterable[int]) -> VectorChanges:
    """Drop the reports of these clusters, given by row id; return the changed vectors."""
    vectors = VectorChanges()
    rows = _REPORT_HASHES.rows(connection, sorted(rids))
    for _, text_hash in rows:
        vectors.moved(VectorSpace.REPORT, text_hash, "")
    _DROP_REPORTS.run(connection, [rid for rid, _ in rows])
    return vectors


def write_relations(connection: Connection, crossings: ClusterRelationUpdate) -> int:
    """Write relations between settled clusters in place of those with the same ends; return how many were outdated."""
    if crossings.revision < read_number(connection, _MADE_FROM + Hierarchy.AGGREGATES.value):
        return len(crossings.relations)
    pairs = [*crossings.removed, *((relation.source, relation.target) for relation in crossings.relations)]
    ends = _CURRENT.rows(connection, sorted({end for pair in pairs for end in pair}))
    rid = {row.id: row.rid for row in ends}
    settled = {row.id for row in ends if row.inputs_hash}
    current = [relation for relation in crossings.relations if {relation.source, relation.target} <= settled]
    pairs = [*crossings.removed, *((relation.source, relation.target) for relation in current)]
    _DROP_RELATIONS.run(connection, sorted({(rid[a], rid[b]) for a, b in pairs if a in rid and b in rid}))
    first_rid = next_rid(connection, s.cluster_relation)
    rows = [
        {
            "rid": first_rid + i,
            "source": rid[relation.source],
            "target": rid[relation.target],
            "level": relation.level,
            "description": relation.description,
            "weight": weight_to_thousandths(relation.weight),
            "n": relation.n_relations,
            "inputs_hash": relation.inputs_hash,
            "model": relation.model,
        }
        for i, relation in enumerate(current)
    ]
    insert_rows(connection, s.cluster_relation, rows)
    return len(crossings.relations) - len(current)


def drop_relations(connection: Connection, clusters: Collection[int]) -> None:
    """Drop the relations with an end among these clusters, given by row id."""
    for statement in _DROP_RELATIONS_OF:
        statement.run(connection, sorted(clusters))


def relation_differences(connection: Connection) -> Iterator[str]:
    """Yield, for `verify`, the relations with a missing end or with ends in the wrong order."""
    clusters = dict(map(tuple, connection.execute(select(_k.rid, _k.id))))
    for row in connection.execute(select(_r.rid, _r.source, _r.target).order_by(_r.rid)):
        ends = clusters.get(row.source), clusters.get(row.target)
        if None in ends:
            yield f"cluster relation {row.rid}: one of its ends is missing"
        elif str(ends[0]) >= str(ends[1]):
            yield f"cluster relation {row.rid}: its ends are not in order"


def _unsettled(
    connection: Connection, partition: Partition, entity_by_key: Mapping[str, int], members_before: Collection[int]
) -> set[str]:
    """Return the clusters that contain an entity whose facts have, or may have, changed since the partition was made.

    Changes are logged only for entities in clusters: for an entity that was in none they are not known.
    """
    if read_number(connection, _TOUCHED) <= partition.revision:
        return set()
    changed = change_log.mention_changes_since(connection, partition.revision)
    if changed is None or partition.revision < read_number(connection, _WRITTEN_AT + partition.hierarchy.value):
        return {cluster.id for cluster in partition.clusters}
    unchanged = {key for key, rid in entity_by_key.items() if rid in members_before and rid not in changed}
    parents = {cluster.id: cluster.parent for cluster in partition.clusters}
    unsettled = set[str]()
    for cluster in partition.clusters:
        cluster_id = cluster.id if not unchanged.issuperset(cluster.members) else ""
        while cluster_id and cluster_id not in unsettled:
            unsettled.add(cluster_id)
            cluster_id = parents[cluster_id]
    return unsettled


def _with_ancestors(connection: Connection, rids: Collection[int]) -> set[int]:
    clusters, level = set(rids), set(rids)
    while level:
        level = {parent for (parent,) in _PARENTS.rows(connection, sorted(level))} - clusters
        clusters |= level
    return clusters


def _remove_members(connection: Connection, members: Sequence[tuple[int, int]]) -> None:
    """Remove (entity, cluster) memberships; clusters that become empty are dropped."""
    if not members:
        return
    _LEAVE.run(connection, members)
    rows = _SIZES.rows(connection, sorted(_with_ancestors(connection, {cluster for _, cluster in members})))
    parents, sizes = {row.rid: row.parent for row in rows}, {row.rid: row.n_entities for row in rows}
    for _, cluster in members:
        rid: int | None = cluster
        while rid is not None:
            sizes[rid] -= 1
            rid = parents[rid]
    execute_rows(connection, _RESIZE, [{"row": rid, "n_entities": n} for rid, n in sorted(sizes.items()) if n])
    _DROP.run(connection, sorted(rid for rid, n in sizes.items() if not n))


def _check(clusters: Sequence[Cluster]) -> None:
    ids = {cluster.id for cluster in clusters}
    if len(ids) < len(clusters):
        raise InvalidDelta("Two clusters of a partition have the same id.")
    if missing := sorted({cluster.parent for cluster in clusters} - ids - {""}):
        raise InvalidDelta(f"The cluster {missing[0]!r} is a parent, but it is not part of the partition.")
    members = [key for cluster in clusters for key in cluster.members]
    if len(set(members)) < len(members):
        raise InvalidDelta("An entity is in two clusters of a partition.")


def _sizes(clusters: Sequence[Cluster], entity_by_key: Mapping[str, int]) -> dict[str, int]:
    """Return how many entities there are in each cluster and below it."""
    parents = {cluster.id: cluster.parent for cluster in clusters}
    sizes = dict.fromkeys(parents, 0)
    for cluster in clusters:
        n_members = sum(key in entity_by_key for key in cluster.members)
        cluster_id, visited = cluster.id, set[str]()
        while cluster_id and n_members:
            if cluster_id in visited:
                raise InvalidDelta(f"The cluster {cluster_id!r} is its own ancestor.")
            visited.add(cluster_id)
            sizes[cluster_id] += n_members
            cluster_id = parents[cluster_id]
    return sizes


def _assign_rids(connection: Connection, clusters: Sequence[Cluster], rid_by_id: Mapping[str, int]) -> dict[str, int]:
    new = sorted(cluster.id for cluster in clusters if cluster.id not in rid_by_id)
    first_rid = next_rid(connection, s.cluster) if new else 0
    return {**rid_by_id, **{cluster_id: first_rid + i for i, cluster_id in enumerate(new)}}


def _cluster_row(cluster: Cluster, rids: Mapping[str, int], n_entities: int, *, is_current: bool) -> dict[str, Any]:
    return {
        "rid": rids[cluster.id],
        "id": cluster.id,
        "hierarchy": cluster.hierarchy.value,
        "level": cluster.level,
        "parent": rids[cluster.parent] if cluster.parent else None,
        "n_entities": n_entities,
        "inputs_hash": cluster.inputs_hash if is_current else "",
    }


def _robbed(
    before: Mapping[int, int],
    after: Mapping[int, int],
    parents_before: Mapping[int, int | None],
    parents_after: Mapping[int, int | None],
) -> set[int]:
    """Return the earlier clusters that an entity was in or below and no longer is."""
    lineage_before = lru_cache(maxsize=None)(lambda rid: _lineage(rid, parents_before))
    lineage_after = lru_cache(maxsize=None)(lambda rid: _lineage(rid, parents_after))
    moves = {(cluster, after.get(entity)) for entity, cluster in before.items()}
    return set().union(*(lineage_before(old) - lineage_after(new) for old, new in moves))


def _lineage(rid: int | None, parents: Mapping[int, int | None]) -> frozenset[int]:
    clusters = set[int]()
    while rid is not None:
        clusters.add(rid)
        rid = parents[rid]
    return frozenset(clusters)


def _replace(
    connection: Connection, before: Mapping[str, Any], after: Mapping[str, Mapping[str, Any]], removed: Collection[int]
) -> None:
    _DROP.run(connection, sorted(removed))
    rows = sorted(after.items())
    insert_rows(connection, s.cluster, [dict(row) for cluster_id, row in rows if cluster_id not in before])
    existing = [(row, before[cluster_id]) for cluster_id, row in rows if cluster_id in before]
    changed = [row for row, old in existing if any(row[column] != getattr(old, column) for column in _COLUMNS)]
    values = [{"row": row["rid"], **{f"new_{column}": row[column] for column in _COLUMNS}} for row in changed]
    execute_rows(connection, _CHANGE, values)


def _report_row(rid: int, report: ClusterReport) -> dict[str, Any]:
    return {
        "rid": rid,
        "title": report.title,
        "summary": report.summary,
        "findings": to_json([[finding.summary, finding.explanation] for finding in report.findings]),
        "rating": float(report.rating),  # as it is read: the checksum is over the text of each value
        "chunks": to_json(report.chunks),
        "inputs_hash": report.inputs_hash,
        "model": report.model,
        "vector_hash": vector_hash(VectorSpace.REPORT, report_text(report)),
    }
