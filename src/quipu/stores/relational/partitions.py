"""Partitions in tables: all clusters of a hierarchy at once, and what each commit takes from them.

What changes of an entity unsettles the clusters that hold it: what their reports are made from has to be worked out
again. What is taken back from it takes their reports along, for these may tell of it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, select, tuple_

from quipu.errors import InvalidDelta
from quipu.model.cluster import Cluster, Hierarchy, Partition
from quipu.model.summary import SummaryTarget, SummaryTargetKind
from quipu.stores.relational import change_log, reports
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.sql import ByValues, execute_rows, insert_rows, next_rid, read_number, write_meta
from quipu.stores.relational.vector_writes import VectorChanges

_TOUCHED = "entities"  # the revision of the last change of what is said of an entity
_MADE_FROM, _WRITTEN_AT = "divided as of ", "divided at "  # with a hierarchy: revisions

_k, _m, _e = s.cluster.c, s.membership.c, s.entity.c
_HOLDING = ByValues(select(_m.entity, _m.cluster), _m.entity)
_ABOVE = ByValues(select(_k.parent).distinct().where(_k.parent.is_not(None)), _k.rid)
_UNSETTLE = ByValues(s.cluster.update().values(inputs_hash=""), _k.rid)
_SIZES = ByValues(select(_k.rid, _k.parent, _k.n_entities), _k.rid)
_LEAVE = ByValues(s.membership.delete(), tuple_(_m.entity, _m.cluster))
_DROP = ByValues(s.cluster.delete(), _k.rid)
_ENTITIES = ByValues(select(_e.key, _e.rid), _e.key)
_CLUSTERS = select(s.cluster).where(_k.hierarchy == bindparam("of"))
_MEMBERS = select(_m.entity, _m.cluster).join(s.cluster, _k.rid == _m.cluster).where(_k.hierarchy == bindparam("of"))
_RESIZE = s.cluster.update().where(_k.rid == bindparam("row")).values(n_entities=bindparam("n_entities"))
_CHANGED = ("level", "parent", "n_entities", "inputs_hash")
_CHANGE = (
    s.cluster.update().where(_k.rid == bindparam("row")).values({name: bindparam(f"new_{name}") for name in _CHANGED})
)


@dataclass(slots=True)
class Touched:
    """Clusters, by row, that a change touched: what is written of those in `robbed`, or between them, is to go."""

    unsettled: set[int] = field(default_factory=set)
    robbed: set[int] = field(default_factory=set)


def follow(
    connection: Connection,
    backend: Backend,
    changed: Collection[int],
    taken_back: Collection[int],
    gone: Collection[int],
    vectors: VectorChanges,
) -> Touched:
    """Note which entities, by row, are described by more or other words, or by fewer, and which are gone."""
    if not changed:
        return Touched()
    revision = read_number(connection, "revision")
    write_meta(connection, _TOUCHED, revision)
    holding: dict[int, set[int]] = {}
    for entity, cluster in _HOLDING.rows(connection, sorted(changed)):
        holding.setdefault(entity, set()).add(cluster)
    if not holding:
        return Touched()
    change_log.log_mention_changes(connection, backend, revision, holding)
    touched = Touched(
        unsettled=_with_all_above(connection, set().union(*holding.values())),
        robbed=_with_all_above(connection, set().union(*(holding.get(each, ()) for each in taken_back))),
    )
    _UNSETTLE.run(connection, sorted(touched.unsettled))
    reports.drop(connection, touched.robbed, vectors)
    _leave(connection, sorted((entity, cluster) for entity in gone for cluster in holding.get(entity, ())))
    return touched


def unsettle(connection: Connection, backend: Backend, owners: Sequence[SummaryTarget]) -> None:
    """Note that entities and relations are described in other words, which take nothing back."""
    keys = {
        key
        for each in owners
        for key in (each.id.split(" -- ") if each.kind is SummaryTargetKind.RELATION else [each.id])
    }
    rids = [rid for _, rid in _ENTITIES.rows(connection, sorted(keys))]
    follow(connection, backend, rids, (), (), VectorChanges())


def revision_of(connection: Connection, hierarchy: Hierarchy) -> int:
    """Return the revision whose graph was divided last."""
    return read_number(connection, _MADE_FROM + hierarchy.value)


def write(connection: Connection, partition: Partition, vectors: VectorChanges) -> set[int]:
    """Put all clusters of a hierarchy in place of those there are; return the rows whose reports went.

    A report stays with its cluster unless an entity it may tell of has left. Of clusters that hold an entity of which
    something else is said since the partition was made, what reports are made from is left to be worked out.
    """
    _check(partition.clusters)
    of = {"of": partition.hierarchy.value}
    before = {row.id: row for row in connection.execute(_CLUSTERS, of)}
    held_before = dict(map(tuple, connection.execute(_MEMBERS, of)))
    entity_by_key = dict(map(tuple, _ENTITIES.rows(connection, [k for c in partition.clusters for k in c.members])))
    sizes = _sizes(partition.clusters, entity_by_key)
    clusters = [each for each in partition.clusters if sizes[each.id]]
    rids = _rows_of(connection, clusters, {row.id: row.rid for row in before.values()})
    unsettled = _unsettled(connection, partition, entity_by_key, held_before)
    after = {each.id: _row(each, rids, sizes[each.id], is_current=each.id not in unsettled) for each in clusters}
    held = {entity_by_key[key]: rids[c.id] for c in clusters for key in c.members if key in entity_by_key}
    parents_before = {row.rid: row.parent for row in before.values()}
    left = _left(held_before, held, parents_before, {row["rid"]: row["parent"] for row in after.values()})
    gone = {row.rid for name, row in before.items() if name not in after}
    reports.drop(connection, left | gone, vectors)
    _replace(connection, before, after, gone)
    _LEAVE.run(connection, sorted(held_before.items() - held.items()))
    insert_rows(
        connection, s.membership, [{"entity": e, "cluster": c} for e, c in sorted(held.items() - held_before.items())]
    )
    write_meta(connection, _MADE_FROM + partition.hierarchy.value, partition.revision)
    write_meta(connection, _WRITTEN_AT + partition.hierarchy.value, read_number(connection, "revision"))
    return left | gone


def _unsettled(
    connection: Connection, partition: Partition, entity_by_key: Mapping[str, int], held_before: Collection[int]
) -> set[str]:
    """Return the clusters that hold something of which something else is said, or may be, since they were made.

    Changes are noted of entities in clusters: of one that was in none before they are not known.
    """
    if read_number(connection, _TOUCHED) <= partition.revision:
        return set()
    said = change_log.mention_changes_since(connection, partition.revision)
    if said is None or partition.revision < read_number(connection, _WRITTEN_AT + partition.hierarchy.value):
        return {each.id for each in partition.clusters}
    same = {key for key, rid in entity_by_key.items() if rid in held_before and rid not in said}
    parents = {each.id: each.parent for each in partition.clusters}
    found = set[str]()
    for each in partition.clusters:
        at = each.id if not same.issuperset(each.members) else ""
        while at and at not in found:
            found.add(at)
            at = parents[at]
    return found


def _with_all_above(connection: Connection, rids: Collection[int]) -> set[int]:
    found, level = set(rids), set(rids)
    while level:
        level = {parent for (parent,) in _ABOVE.rows(connection, sorted(level))} - found
        found |= level
    return found


def _leave(connection: Connection, pairs: Sequence[tuple[int, int]]) -> None:
    """Take entities from the clusters that hold them; clusters that hold nothing any more go."""
    if not pairs:
        return
    _LEAVE.run(connection, pairs)
    rows = _SIZES.rows(connection, sorted(_with_all_above(connection, {cluster for _, cluster in pairs})))
    parents, sizes = {row.rid: row.parent for row in rows}, {row.rid: row.n_entities for row in rows}
    for _, cluster in pairs:
        at: int | None = cluster
        while at is not None:
            sizes[at] -= 1
            at = parents[at]
    execute_rows(connection, _RESIZE, [{"row": rid, "n_entities": n} for rid, n in sorted(sizes.items()) if n])
    _DROP.run(connection, sorted(rid for rid, n in sizes.items() if not n))


def _check(clusters: Sequence[Cluster]) -> None:
    ids = {each.id for each in clusters}
    if len(ids) < len(clusters):
        raise InvalidDelta("Two clusters of a partition have one id.")
    if lost := sorted({each.parent for each in clusters} - ids - {""}):
        raise InvalidDelta(f"The cluster {lost[0]!r}, which is to hold others, is not part of its partition.")
    members = [key for each in clusters for key in each.members]
    if len(set(members)) < len(members):
        raise InvalidDelta("An entity is in two clusters of a partition.")


def _sizes(clusters: Sequence[Cluster], entity_by_key: Mapping[str, int]) -> dict[str, int]:
    """Return how many entities there are in each cluster and below it."""
    parents = {each.id: each.parent for each in clusters}
    sizes = dict.fromkeys(parents, 0)
    for each in clusters:
        n = sum(key in entity_by_key for key in each.members)
        at, seen = each.id, set[str]()
        while at and n:
            if at in seen:
                raise InvalidDelta(f"The cluster {at!r} holds itself.")
            seen.add(at)
            sizes[at] += n
            at = parents[at]
    return sizes


def _rows_of(connection: Connection, clusters: Sequence[Cluster], known: Mapping[str, int]) -> dict[str, int]:
    new = sorted(each.id for each in clusters if each.id not in known)
    first = next_rid(connection, s.cluster) if new else 0
    return {**known, **{name: first + i for i, name in enumerate(new)}}


def _row(each: Cluster, rids: Mapping[str, int], n_entities: int, *, is_current: bool) -> dict[str, Any]:
    return {
        "rid": rids[each.id],
        "id": each.id,
        "hierarchy": each.hierarchy.value,
        "level": each.level,
        "parent": rids[each.parent] if each.parent else None,
        "n_entities": n_entities,
        "inputs_hash": each.inputs_hash if is_current else "",
    }


def _left(
    before: Mapping[int, int],
    after: Mapping[int, int],
    parents_before: Mapping[int, int | None],
    parents_after: Mapping[int, int | None],
) -> set[int]:
    """Return the clusters, of those before, that an entity was in or below and is no longer."""
    chain_before = lru_cache(maxsize=None)(lambda rid: _chain(rid, parents_before))
    chain_after = lru_cache(maxsize=None)(lambda rid: _chain(rid, parents_after))
    moves = {(cluster, after.get(entity)) for entity, cluster in before.items()}
    return set().union(*(chain_before(old) - chain_after(new) for old, new in moves))


def _chain(rid: int | None, parents: Mapping[int, int | None]) -> frozenset[int]:
    found = set[int]()
    while rid is not None:
        found.add(rid)
        rid = parents[rid]
    return frozenset(found)


def _replace(
    connection: Connection, before: Mapping[str, Any], after: Mapping[str, Mapping[str, Any]], gone: Collection[int]
) -> None:
    _DROP.run(connection, sorted(gone))
    insert_rows(connection, s.cluster, [dict(row) for name, row in sorted(after.items()) if name not in before])
    changed = [
        row
        for name, row in sorted(after.items())
        if name in before and any(row[column] != getattr(before[name], column) for column in _CHANGED)
    ]
    values = [{"row": row["rid"], **{f"new_{column}": row[column] for column in _CHANGED}} for row in changed]
    execute_rows(connection, _CHANGE, values)
