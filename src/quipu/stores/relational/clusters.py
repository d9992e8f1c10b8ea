"""Clusters in tables: which there are, who is in them, and what has yet to be written of them."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, case, func, or_, select

from quipu.model.cluster import Cluster, ClusterCount, Hierarchy
from quipu.stores.relational import derived_schema as d
from quipu.stores.relational import schema as s
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import ByValues

_k, _m, _p, _e = d.cluster.c, d.membership.c, d.report.c, s.entity.c
_holder = d.cluster.alias("holder")
_CLUSTER = select(
    _k.rid, _k.id, _k.level, _k.n_entities, _k.inputs_hash, func.coalesce(_holder.c.id, "").label("parent")
).outerjoin(_holder, _holder.c.rid == _k.parent)
_of = _k.hierarchy == bindparam("of")
_ALL = _CLUSTER.where(_of)
_SOME = ByValues(_ALL, _k.id)
_MEMBER = select(_m.cluster, _m.entity, _e.key).join(s.entity, _e.rid == _m.entity)
_ALL_MEMBERS = _MEMBER.join(d.cluster, _k.rid == _m.cluster).where(_of)
_MEMBERS = ByValues(_MEMBER, _m.cluster)
_FINEST = ByValues(
    select(_e.rid, _e.key, _k.id)
    .join_from(s.entity, d.membership, _m.entity == _e.rid)
    .join(d.cluster, _k.rid == _m.cluster)
    .where(_k.hierarchy.concat("") == bindparam("of")),  # so that the planner does not start with all clusters
    _e.key,
)
_HELD = ByValues(select(_k.rid, _k.parent), _k.parent)
_is_outdated = and_(_p.rid.is_not(None), _p.inputs_hash != _k.inputs_hash)
_COUNTS = (
    select(
        _k.level,
        func.count().label("n_clusters"),
        func.sum(case((_k.inputs_hash == "", 1), else_=0)).label("n_unsettled"),
        func.count(_p.rid).label("n_reports"),
        func.sum(case((_is_outdated, 1), else_=0)).label("n_outdated"),
    )
    .outerjoin(d.report, _p.rid == _k.rid)
    .where(_of)
    .group_by(_k.level)
    .order_by(_k.level)
)
_UNREPORTED = (
    select(_k.id)
    .outerjoin(d.report, _p.rid == _k.rid)
    .where(_of, or_(_p.rid.is_(None), _is_outdated, _p.model == bindparam("not_by")))
    .order_by(_k.level.desc(), _k.id)
)
_DOCUMENTS = ByValues(
    select(_m.cluster, s.document.c.id)
    .distinct()
    .join_from(d.membership, s.entity_mention, s.entity_mention.c.entity == _m.entity)
    .join(s.chunk, s.chunk.c.rid == s.entity_mention.c.chunk)
    .join(s.document, s.document.c.rid == s.chunk.c.document),
    _m.cluster,
)
_RIDS = ByValues(select(_k.rid, _k.id), _k.id)


def read(snapshot: Snapshot, hierarchy: Hierarchy, ids: Sequence[str] | None = None) -> list[Cluster]:
    """Return these clusters in their order, or all of a hierarchy by level and id; under a filter, what is allowed."""
    connection, of = snapshot.connection, {"of": hierarchy.value}
    rows = connection.execute(_ALL, of).all() if ids is None else _SOME.rows(connection, ids, **of)
    rids = [row.rid for row in rows]
    said = connection.execute(_ALL_MEMBERS, of).all() if ids is None else _MEMBERS.rows(connection, rids)
    allowed = None if snapshot.allowed is None else frozenset(snapshot.allowed.entities.tolist())
    members: dict[int, list[str]] = {}
    for rid, entity, key in said:
        if allowed is None or entity in allowed:
            members.setdefault(rid, []).append(key)
    sizes = {row.rid: row.n_entities for row in rows} if allowed is None else _n_allowed(connection, rids, allowed)
    found = {row.id: _cluster(row, hierarchy, members.get(row.rid, ()), sizes[row.rid]) for row in rows}
    ordered = sorted(found, key=lambda each: (found[each].level, each)) if ids is None else dict.fromkeys(ids)
    return [found[each] for each in ordered if each in found and found[each].n_entities]


def of_entities(snapshot: Snapshot, hierarchy: Hierarchy, keys: Sequence[str]) -> dict[str, str]:
    """Return the finest cluster of each of these entities."""
    rows = _FINEST.rows(snapshot.connection, sorted(set(keys)), of=hierarchy.value)
    allowed = None if snapshot.allowed is None else frozenset(snapshot.allowed.entities.tolist())
    found = {key: cluster for rid, key, cluster in rows if allowed is None or rid in allowed}
    return {key: found[key] for key in dict.fromkeys(keys) if key in found}


def counts(snapshot: Snapshot, hierarchy: Hierarchy) -> list[ClusterCount]:
    """Return how many clusters there are on each level, and how many reports, whatever the filter."""
    return [
        ClusterCount(
            level=row.level,
            n_clusters=row.n_clusters,
            n_unsettled=row.n_unsettled,
            n_reports=row.n_reports,
            n_outdated=row.n_outdated,
        )
        for row in snapshot.connection.execute(_COUNTS, {"of": hierarchy.value})
    ]


def unreported(snapshot: Snapshot, hierarchy: Hierarchy, not_by: str = "") -> list[str]:
    """Return the clusters without a report of what is in them now, finest first; those by `not_by` count as none."""
    where = {"of": hierarchy.value, "not_by": not_by or None}
    return list(snapshot.connection.execute(_UNREPORTED, where).scalars())


def documents(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the documents that say something of what is in each of these clusters or below, ordered by id."""
    id_by_rid = dict(map(tuple, _RIDS.rows(snapshot.connection, sorted(set(ids)))))
    parents = with_all_below(snapshot.connection, id_by_rid)
    found: dict[int, set[str]] = {rid: set() for rid in parents}
    for rid, document in _DOCUMENTS.rows(snapshot.connection, list(parents)):
        found[rid].add(document)
    for rid, parent in reversed(parents.items()):
        if parent in found:
            found[parent] |= found[rid]
    named = {id_by_rid[rid]: tuple(sorted(found[rid])) for rid in id_by_rid}
    return {each: named[each] for each in dict.fromkeys(ids) if each in named}


def with_all_below(connection: Connection, rids: Iterable[int]) -> dict[int, int | None]:
    """Return these clusters and all below them with the cluster above each; a cluster comes before those below it."""
    level: dict[int, int | None] = dict.fromkeys(rids)
    parents: dict[int, int | None] = {}
    while level:
        for rid, parent in level.items():
            parents.pop(rid, None)  # once more below one that was found later: it moves behind that
            parents[rid] = parent
        level = dict(map(tuple, _HELD.rows(connection, list(level))))
    return parents


def _n_allowed(connection: Connection, rids: Collection[int], allowed: frozenset[int]) -> dict[int, int]:
    """Return how many allowed entities are in each cluster and below it."""
    parents = with_all_below(connection, rids)
    sizes = dict.fromkeys(parents, 0)
    for rid, entity, _ in _MEMBERS.rows(connection, list(parents)):
        sizes[rid] += entity in allowed
    for rid, parent in reversed(parents.items()):
        if parent in sizes:
            sizes[parent] += sizes[rid]
    return sizes


def _cluster(row: Row[*tuple[Any, ...]], hierarchy: Hierarchy, members: Iterable[str], n_entities: int) -> Cluster:
    return Cluster(
        id=row.id,
        hierarchy=hierarchy,
        level=row.level,
        parent=row.parent,
        members=tuple(sorted(members)),
        n_entities=n_entities,
        inputs_hash=row.inputs_hash,
    )
