"""Clusters in tables: which there are, who is in them, and what has yet to be written of them."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, and_, bindparam, case, func, or_, select

from quipu.model.cluster import Cluster, ClusterCount, Hierarchy
from quipu.stores.relational import schema as s
from quipu.stores.relational.allowed_clusters import clusters_within
from quipu.stores.relational.memo import once
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import ByValues

_k, _m, _p, _e = s.cluster.c, s.membership.c, s.report.c, s.entity.c
_holder = s.cluster.alias("holder")
_CLUSTER = select(
    _k.rid, _k.id, _k.level, _k.n_entities, _k.inputs_hash, func.coalesce(_holder.c.id, "").label("parent")
).outerjoin(_holder, _holder.c.rid == _k.parent)
_of = _k.hierarchy == bindparam("of")
_is_of = _k.hierarchy.concat("") == bindparam("of")  # so that the planner does not start with all clusters
_ALL = _CLUSTER.where(_of)
_SOME = ByValues(_CLUSTER.where(_is_of), _k.id)
_MEMBER = select(_m.cluster, _m.entity, _e.key).join(s.entity, _e.rid == _m.entity)
_ALL_MEMBERS = _MEMBER.join(s.cluster, _k.rid == _m.cluster).where(_of)
_MEMBERS = ByValues(_MEMBER.join(s.cluster, _k.rid == _m.cluster).where(_is_of), _k.id)
_FINEST = ByValues(
    select(_e.rid, _e.key, _k.id)
    .join_from(s.entity, s.membership, _m.entity == _e.rid)
    .join(s.cluster, _k.rid == _m.cluster)
    .where(_is_of),
    _e.key,
)
_HELD = ByValues(select(_k.rid, _k.parent), _k.parent)
_is_outdated = and_(_p.rid.is_not(None), _p.inputs_hash != _k.inputs_hash)
_COUNTS = (
    select(
        _k.level,
        func.count().label("n_clusters"),
        func.sum(_k.n_entities).label("n_entities"),
        func.sum(case((_k.inputs_hash == "", 1), else_=0)).label("n_unsettled"),
        func.count(_p.rid).label("n_reports"),
        func.sum(case((_is_outdated, 1), else_=0)).label("n_outdated"),
    )
    .outerjoin(s.report, _p.rid == _k.rid)
    .where(_of)
    .group_by(_k.level)
    .order_by(_k.level)
)
_UNREPORTED = (
    select(_k.id)
    .outerjoin(s.report, _p.rid == _k.rid)
    .where(_of, or_(_p.rid.is_(None), _is_outdated, _p.model == bindparam("not_by")))
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
_RIDS = ByValues(select(_k.rid, _k.id), _k.id)


def read(
    snapshot: Snapshot, hierarchy: Hierarchy, ids: Sequence[str] | None = None, *, with_members: bool = True
) -> list[Cluster]:
    """Return these clusters in their order, or all of a hierarchy by level and id; under a filter, what is allowed."""
    if ids is None and not with_members:
        return once(snapshot.memo.clusters, hierarchy, lambda: _read(snapshot, hierarchy, None, {})).copy()
    return _read(snapshot, hierarchy, ids, _members(snapshot, hierarchy, ids) if with_members else {})


def of_entities(snapshot: Snapshot, hierarchy: Hierarchy, keys: Sequence[str]) -> dict[str, str]:
    """Return the finest cluster of each of these entities."""
    rows = _FINEST.rows(snapshot.connection, sorted(set(keys)), of=hierarchy.value)
    seen = snapshot.allowed.among({rid for rid, *_ in rows}) if snapshot.allowed is not None else None
    found = {key: cluster for rid, key, cluster in rows if seen is None or rid in seen}
    return {key: found[key] for key in dict.fromkeys(keys) if key in found}


def counts(snapshot: Snapshot, hierarchy: Hierarchy) -> list[ClusterCount]:
    """Return how many clusters there are on each level, and how many reports, whatever the filter."""
    return once(snapshot.memo.cluster_counts, hierarchy, lambda: _counted(snapshot, hierarchy)).copy()


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


def _counted(snapshot: Snapshot, hierarchy: Hierarchy) -> list[ClusterCount]:
    return [
        ClusterCount(
            level=row.level,
            n_clusters=row.n_clusters,
            n_entities=row.n_entities,
            n_unsettled=row.n_unsettled,
            n_reports=row.n_reports,
            n_outdated=row.n_outdated,
        )
        for row in snapshot.connection.execute(_COUNTS, {"of": hierarchy.value})
    ]


def _read(
    snapshot: Snapshot, hierarchy: Hierarchy, ids: Sequence[str] | None, members: Mapping[int, Sequence[str]]
) -> list[Cluster]:
    connection, of = snapshot.connection, {"of": hierarchy.value}
    rows = connection.execute(_ALL, of).all() if ids is None else _SOME.rows(connection, ids, **of)
    sizes = [row.n_entities for row in rows]
    if snapshot.is_filtered:
        sizes = clusters_within(snapshot).sizes_of([row.rid for row in rows])
    found = {
        name: Cluster(
            id=name,
            hierarchy=hierarchy,
            level=level,
            parent=parent,
            members=tuple(sorted(members.get(rid, ()))),
            n_entities=size,
            inputs_hash=inputs_hash,
        )
        for (rid, name, level, _, inputs_hash, parent), size in zip(rows, sizes, strict=True)
        if size
    }
    ordered = sorted(found, key=lambda each: (found[each].level, each)) if ids is None else dict.fromkeys(ids)
    return [found[each] for each in ordered if each in found]


def _members(snapshot: Snapshot, hierarchy: Hierarchy, ids: Sequence[str] | None) -> dict[int, list[str]]:
    """Return the entities that are directly in each of these clusters, by row; under a filter, those allowed."""
    connection, of = snapshot.connection, {"of": hierarchy.value}
    said = connection.execute(_ALL_MEMBERS, of).all() if ids is None else _MEMBERS.rows(connection, ids, **of)
    seen = snapshot.allowed.among({entity for _, entity, _ in said}) if snapshot.allowed is not None else None
    members: dict[int, list[str]] = {}
    for rid, entity, key in said:
        if seen is None or entity in seen:
            members.setdefault(rid, []).append(key)
    return members
