"""Clusters: read with their members, their reports, the relations between them, and what has no report yet.

`cluster_writes.py` writes them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, case, func, or_, select

from quipu.model.cluster import Cluster, ClusterCount, ClusterRelation, ClusterReport, Finding, Hierarchy, report_text
from quipu.model.graph import thousandths_to_weight
from quipu.ports.derivation_view import DerivationCounts
from quipu.stores.relational import schema as s
from quipu.stores.relational.filters import allowed_clusters, visible_entities, visible_reports
from quipu.stores.relational.snapshot import Snapshot, cached_value, check_rows, in_order
from quipu.stores.relational.sql import ByValues, texts_from_json

_k, _m, _p, _r, _e = s.cluster.c, s.membership.c, s.report.c, s.cluster_relation.c, s.entity.c
_parent = s.cluster.alias("parent_cluster")
_source, _target = s.cluster.alias("source_cluster"), s.cluster.alias("target_cluster")
_CLUSTER = select(
    _k.rid, _k.id, _k.level, _k.n_entities, _k.inputs_hash, func.coalesce(_parent.c.id, "").label("parent")
).outerjoin(_parent, _parent.c.rid == _k.parent)
_in_hierarchy = _k.hierarchy == bindparam("hierarchy")
_has_hierarchy = _k.hierarchy.concat("") == bindparam("hierarchy")  # keeps the planner from starting with all clusters
_ALL = _CLUSTER.where(_in_hierarchy)
_SOME = ByValues(_CLUSTER.where(_has_hierarchy), _k.id)
_MEMBER = select(_m.cluster, _m.entity, _e.key).join(s.entity, _e.rid == _m.entity)
_ALL_MEMBERS = _MEMBER.join(s.cluster, _k.rid == _m.cluster).where(_in_hierarchy)
_MEMBERS = ByValues(_MEMBER.join(s.cluster, _k.rid == _m.cluster).where(_has_hierarchy), _k.id)
_FINEST = ByValues(
    select(_e.rid, _e.key, _k.id)
    .join_from(s.entity, s.membership, _m.entity == _e.rid)
    .join(s.cluster, _k.rid == _m.cluster)
    .where(_has_hierarchy),
    _e.key,
)
_CHILDREN = ByValues(select(_k.rid, _k.parent), _k.parent)
_RIDS = ByValues(select(_k.rid, _k.id), _k.id)
_is_outdated = and_(_p.rid.is_not(None), _p.inputs_hash != _k.inputs_hash)
_COUNTS = (
    select(
        _k.level,
        func.count().label("n_clusters"),
        func.sum(_k.n_entities).label("n_entities"),
        func.sum(case((_k.inputs_hash == "", 1), else_=0)).label("n_pending"),
        func.count(_p.rid).label("n_reports"),
        func.sum(case((_is_outdated, 1), else_=0)).label("n_outdated"),
    )
    .outerjoin(s.report, _p.rid == _k.rid)
    .where(_in_hierarchy)
    .group_by(_k.level)
    .order_by(_k.level)
)
_UNREPORTED = (
    select(_k.id)
    .outerjoin(s.report, _p.rid == _k.rid)
    .where(_in_hierarchy, or_(_p.rid.is_(None), _is_outdated, _p.model == bindparam("not_by")))
    .order_by(_k.level.desc(), _k.id)
)
_DOCUMENTS = ByValues(
    select(_m.cluster, s.document.c.id)
    .distinct()
    .join_from(s.membership, s.entity_mention, s.entity_mention.c.entity == _m.entity)
    .join(s.chunk, s.chunk.c.rid == s.entity_mention.c.chunk)
    .join(s.document, s.document.c.rid == s.chunk.c.document),
    _m.cluster,
)
_REPORT = select(s.report, _k.id.label("cluster")).join(s.cluster, _k.rid == _p.rid)
_REPORTS, _REPORTS_BY_RID = ByValues(_REPORT, _k.id), ByValues(_REPORT, _p.rid)
_REPORTS_WITHOUT_TEXT = ByValues(
    select(_p.rid, _k.id, _p.rating, _p.inputs_hash, _p.model).join(s.cluster, _k.rid == _p.rid), _k.id
)
_RELATION = (
    select(s.cluster_relation, _source.c.id.label("source_id"), _target.c.id.label("target_id"))
    .join(_source, _source.c.rid == _r.source)
    .join(_target, _target.c.rid == _r.target)
)
_RELATIONS_FROM = ByValues(_RELATION, _r.source)
_RELATIONS_BY = _RELATION.where(_r.model == bindparam("by"))


def clusters(
    snapshot: Snapshot,
    hierarchy: Hierarchy,
    ids: Sequence[str] | None = None,
    *,
    entities: Sequence[str] | None = None,
    with_members: bool = True,
) -> list[Cluster]:
    """Return these clusters in the given order, or all by level and id; under a filter, the visible ones.

    With `entities`, return their finest clusters by id, with those of their members that are among these.
    """
    if entities is not None:
        return _finest_clusters(snapshot, hierarchy, entities)
    if ids is None and not with_members:
        cached = cached_value(snapshot.cache.clusters, hierarchy, lambda: _clusters(snapshot, hierarchy, None, {}))
        return cached.copy()
    return _clusters(snapshot, hierarchy, ids, _members(snapshot, hierarchy, ids) if with_members else {})


def _finest_clusters(snapshot: Snapshot, hierarchy: Hierarchy, keys: Sequence[str]) -> list[Cluster]:
    rows = _FINEST.rows(snapshot.connection, sorted(set(keys)), hierarchy=hierarchy.value)
    visible = visible_entities(snapshot, {rid for rid, *_ in rows})
    keys_by_id: dict[str, list[str]] = {}
    for rid, key, cluster in rows:
        if rid in visible:
            keys_by_id.setdefault(cluster, []).append(key)
    bare = _clusters(snapshot, hierarchy, sorted(keys_by_id), {})
    return [replace(cluster, members=tuple(sorted(keys_by_id[cluster.id]))) for cluster in bare]


def cluster_counts(snapshot: Snapshot, hierarchy: Hierarchy) -> DerivationCounts:
    """Count the clusters and those whose inputs are not computed yet, together and by level, whatever the filter."""

    def count() -> DerivationCounts:
        rows = snapshot.connection.execute(_COUNTS, {"hierarchy": hierarchy.value})
        levels = tuple(ClusterCount(**row._mapping) for row in rows)
        return DerivationCounts(
            n_items=sum(level.n_clusters for level in levels),
            n_stale=sum(level.n_pending for level in levels),
            levels=levels,
        )

    return cached_value(snapshot.cache.cluster_counts, hierarchy, count)


def unreported(snapshot: Snapshot, hierarchy: Hierarchy, not_by: str = "") -> list[str]:
    """Return clusters without a current report, highest level first; a report by the model `not_by` does not count."""
    where = {"hierarchy": hierarchy.value, "not_by": not_by or None}
    return list(snapshot.connection.execute(_UNREPORTED, where).scalars())


def cluster_documents(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the documents that mention an entity in each of these clusters or below, ordered by id."""
    id_by_rid = dict(map(tuple, _RIDS.rows(snapshot.connection, sorted(set(ids)))))
    parent_by_rid = _with_descendants(snapshot.connection, id_by_rid)
    documents: dict[int, set[str]] = {rid: set() for rid in parent_by_rid}
    for rid, document in _DOCUMENTS.rows(snapshot.connection, list(parent_by_rid)):
        documents[rid].add(document)
    for rid, parent in reversed(parent_by_rid.items()):
        if parent in documents:
            documents[parent] |= documents[rid]
    return in_order({cluster: tuple(sorted(documents[rid])) for rid, cluster in id_by_rid.items()}, ids)


def cluster_reports(snapshot: Snapshot, ids: Sequence[str], *, with_text: bool = True) -> list[ClusterReport]:
    """Return the visible reports of these clusters in the given order, or only their ratings and origins."""
    cluster_ids = sorted(set(ids))
    if with_text:
        report_by_rid = {
            row.rid: _report(row) for row in check_rows(s.report, _REPORTS.rows(snapshot.connection, cluster_ids))
        }
    else:
        report_by_rid = {
            rid: ClusterReport(cluster=cluster, title="", summary="", rating=rating, inputs_hash=inputs, model=model)
            for rid, cluster, rating, inputs, model in _REPORTS_WITHOUT_TEXT.tuples(snapshot.connection, cluster_ids)
        }
    visible = visible_reports(snapshot, report_by_rid)
    report_by_cluster = {report.cluster: report for rid, report in report_by_rid.items() if rid in visible}
    return list(in_order(report_by_cluster, ids).values())


def report_texts(connection: Connection, rids: Sequence[int]) -> dict[int, str]:
    """Return the text to embed of each of these reports, by row id."""
    return {row.rid: report_text(_report(row)) for row in _REPORTS_BY_RID.rows(connection, rids)}


def cluster_relations(snapshot: Snapshot, ids: Sequence[str] | None = None, *, by: str = "") -> list[ClusterRelation]:
    """Return the relations among these clusters (None: all) by a model ("": any), if both ends' reports are visible."""
    if ids is None:
        rows = snapshot.connection.execute(_RELATIONS_BY if by else _RELATION, {"by": by} if by else {}).all()
        ends = {end for row in rows for end in (row.source, row.target)}
    else:
        ends = {rid for rid, _ in _RIDS.rows(snapshot.connection, sorted(set(ids)))}
        rows = _RELATIONS_FROM.rows(snapshot.connection, sorted(ends))
    visible = visible_reports(snapshot, ends)
    relations = [_relation(row) for row in rows if {row.source, row.target} <= visible and by in ("", row.model)]
    return sorted(relations, key=lambda relation: (relation.source, relation.target))


def _clusters(
    snapshot: Snapshot, hierarchy: Hierarchy, ids: Sequence[str] | None, members: Mapping[int, Sequence[str]]
) -> list[Cluster]:
    where = {"hierarchy": hierarchy.value}
    if ids is None:
        rows: Sequence[Row[*tuple[Any, ...]]] = snapshot.connection.execute(_ALL, where).all()
    else:
        rows = _SOME.rows(snapshot.connection, ids, **where)
    sizes = [row.n_entities for row in rows]
    if snapshot.is_filtered:
        sizes = allowed_clusters(snapshot).sizes_of([row.rid for row in rows])
    cluster_by_id = {
        cluster_id: Cluster(
            id=cluster_id,
            hierarchy=hierarchy,
            level=level,
            parent=parent,
            members=tuple(sorted(members.get(rid, ()))),
            n_entities=size,
            inputs_hash=inputs_hash,
        )
        for (rid, cluster_id, level, _, inputs_hash, parent), size in zip(rows, sizes, strict=True)
        if size
    }
    if ids is None:
        return sorted(cluster_by_id.values(), key=lambda cluster: (cluster.level, cluster.id))
    return list(in_order(cluster_by_id, ids).values())


def _members(snapshot: Snapshot, hierarchy: Hierarchy, ids: Sequence[str] | None) -> dict[int, list[str]]:
    """Return the visible entities directly in each of these clusters, by the cluster's row id."""
    where = {"hierarchy": hierarchy.value}
    if ids is None:
        rows: Sequence[Row[*tuple[Any, ...]]] = snapshot.connection.execute(_ALL_MEMBERS, where).all()
    else:
        rows = _MEMBERS.rows(snapshot.connection, ids, **where)
    visible = visible_entities(snapshot, {entity for _, entity, _ in rows}) if snapshot.is_filtered else None
    keys_by_rid: dict[int, list[str]] = {}
    for rid, entity, key in rows:
        if visible is None or entity in visible:
            keys_by_rid.setdefault(rid, []).append(key)
    return keys_by_rid


def _with_descendants(connection: Connection, rids: Iterable[int]) -> dict[int, int | None]:
    """Return the parent of each of these clusters (None) and of all below them; a parent comes before its children."""
    level: dict[int, int | None] = dict.fromkeys(rids)
    parents: dict[int, int | None] = {}
    while level:
        for rid, parent in level.items():
            parents.pop(rid, None)  # also below a cluster that was reached later: it moves behind that
            parents[rid] = parent
        level = dict(map(tuple, _CHILDREN.rows(connection, list(level))))
    return parents


def _report(row: Row[Any]) -> ClusterReport:
    findings = (Finding(summary=summary, explanation=text) for summary, text in json.loads(row.findings))
    return ClusterReport(
        cluster=row.cluster,
        title=row.title,
        summary=row.summary,
        findings=tuple(findings),
        rating=row.rating,
        chunks=texts_from_json(row.chunks),
        inputs_hash=row.inputs_hash,
        model=row.model,
    )


def _relation(row: Row[*tuple[Any, ...]]) -> ClusterRelation:
    return ClusterRelation(
        source=row.source_id,
        target=row.target_id,
        level=row.level,
        description=row.description,
        weight=thousandths_to_weight(row.weight),
        n_relations=row.n,
        inputs_hash=row.inputs_hash,
        model=row.model,
    )
