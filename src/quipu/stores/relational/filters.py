"""Filters: the documents and chunks a snapshot may see, and the entities, relations and clusters they leave visible.

A filter is applied once, before any search: temporary tables then hold the allowed documents and chunks. The visible
part of the graph is computed from the mentions in these chunks, once for each revision and filter.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, or_, select

from quipu.errors import InvalidInput
from quipu.model.document import is_date
from quipu.model.query import Condition, Filter
from quipu.model.validity import END
from quipu.stores.relational import schema as s
from quipu.stores.relational.snapshot import ALLOWED_CHUNK, ALLOWED_DOCUMENT, Lookup, Snapshot, cached_arrays
from quipu.stores.relational.sql import Backend, Ints, as_texts, from_texts, member_sets

_COMPARE: dict[str, Callable[[Any, Any], ColumnElement[bool]]] = {
    "=": lambda left, right: left == right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_NO_PARENT = -1

_em, _rm, _r, _e = s.entity_mention.c, s.relation_mention.c, s.relation.c, s.entity.c
_k, _m = s.cluster.c, s.membership.c
_chunks = select(ALLOWED_CHUNK.c.rid)
_mentioned = select(_em.entity).where(_em.chunk.in_(_chunks))
_stated = select(_rm.relation).where(_rm.chunk.in_(_chunks))
_CHUNKS = as_texts(_chunks)
_MENTIONED = as_texts(_mentioned)
_N_MENTIONS = as_texts(select(_e.rid, _e.n_mentions).where(_e.rid.in_(_mentioned)))
_STATED = as_texts(select(_rm.relation, _rm.weight).where(_rm.chunk.in_(_chunks)))
_ENDS = as_texts(select(_r.rid, _r.source, _r.target).where(_r.rid.in_(_stated)))
_MEMBERS = as_texts(select(_m.entity, _m.cluster).where(_m.entity.in_(_mentioned)))
_CLUSTERS = Lookup(select(_k.rid, func.coalesce(_k.parent, _NO_PARENT), _k.n_entities), _k.rid)


def apply_filter(connection: Connection, backend: Backend, allowed: Filter) -> None:
    """Restrict the snapshot to the documents and chunks that the filter allows.

    Raises InvalidInput for a date, a field or a comparison that cannot be read.
    """
    conditions: list[ColumnElement[bool]] = []
    if allowed.documents:
        conditions.append(_has_name(connection, allowed.documents))
    if allowed.exclude:
        conditions.append(~_has_name(connection, allowed.exclude))
    conditions += [_meets(condition) for condition in allowed.where]
    for date in filter(None, (allowed.after, allowed.before)):
        _check_date(date)
    if allowed.after:
        conditions.append(_any_value("date", s.metadata_value.c.text >= allowed.after.casefold()))
    if allowed.before:
        # "~" sorts after every digit and dash: 2001 includes all of 2001.
        conditions.append(_any_value("date", s.metadata_value.c.text <= allowed.before.casefold() + "~"))
    if allowed.as_of:
        conditions.append(_holds_at(allowed.as_of))
    documents = select(s.document.c.rid).where(and_(True, *conditions))
    backend.restrict(connection, ALLOWED_DOCUMENT, documents)
    chunks = select(s.chunk.c.rid).where(s.chunk.c.document.in_(select(ALLOWED_DOCUMENT.c.rid)))
    backend.restrict(connection, ALLOWED_CHUNK, chunks)


@dataclass(frozen=True, slots=True)
class AllowedRelations:
    """Relations by row id, rising: their ends, and their weights in thousandths, each [n]."""

    rids: Ints
    sources: Ints
    targets: Ints
    weights: Ints


@dataclass(frozen=True, slots=True)
class AllowedClusters:
    """Clusters with allowed entities in them or below, by row id, rising, and the number of these entities, both [n].

    `fully_allowed` are the rising row ids of those whose entities are mentioned by allowed chunks alone. Only their
    reports may be read, because other reports also tell what hidden chunks say.
    """

    rids: Ints
    sizes: Ints
    fully_allowed: Ints

    def sizes_of(self, rids: Sequence[int]) -> list[int]:
        """Return the number of allowed entities in each of these clusters and below it."""
        positions, is_present = find_sorted(self.rids, np.array(rids, dtype=np.int64))
        sizes: Ints = self.sizes.take(positions, mode="clip") if len(self.sizes) else positions
        return [size if is_known else 0 for size, is_known in zip(sizes.tolist(), is_present.tolist(), strict=True)]


def allowed_chunks(snapshot: Snapshot) -> Ints | None:
    """Return the row ids of the chunks the filter allows, rising; None if there is no filter."""
    if not snapshot.is_filtered:
        return None
    return cached_arrays(snapshot.cache.arrays, "chunks", lambda: (np.sort(_read(snapshot, _CHUNKS, 1)[0]),))[0]


def allowed_relations(snapshot: Snapshot) -> AllowedRelations:
    """Return the relations that an allowed chunk states, with the weights that the allowed chunks give them."""
    return AllowedRelations(*cached_arrays(snapshot.cache.arrays, "relations", lambda: _relations(snapshot)))


def allowed_degrees(snapshot: Snapshot, entities: Ints) -> Ints:
    """Return the number of allowed relations of each entity, [n]."""

    def count() -> tuple[Ints, Ints]:
        relations = allowed_relations(snapshot)
        return np.unique(np.concatenate([relations.sources, relations.targets]), return_counts=True)

    rids, counts = cached_arrays(snapshot.cache.arrays, "degrees", count)
    positions, is_present = find_sorted(rids, entities)
    return np.where(is_present, counts.take(positions, mode="clip") if len(counts) else 0, 0)


def allowed_clusters(snapshot: Snapshot) -> AllowedClusters:
    """Return the clusters that a filtered snapshot may see."""
    return AllowedClusters(*cached_arrays(snapshot.cache.arrays, "clusters", lambda: _clusters(snapshot)))


def visible_entities(snapshot: Snapshot, rids: Collection[int]) -> frozenset[int]:
    """Return those of some entities, by row id, that the snapshot may see: an allowed chunk mentions them."""
    return _among(rids, _entities(snapshot)[0]) if snapshot.is_filtered else frozenset(rids)


def visible_relations(snapshot: Snapshot, rids: Collection[int]) -> frozenset[int]:
    """Return those of some relations, by row id, that the snapshot may see: an allowed chunk states them."""
    return _among(rids, allowed_relations(snapshot).rids) if snapshot.is_filtered else frozenset(rids)


def visible_reports(snapshot: Snapshot, rids: Collection[int]) -> frozenset[int]:
    """Return those of some clusters, by row id, whose reports may be read: no hidden chunk mentions their entities."""
    return _among(rids, allowed_clusters(snapshot).fully_allowed) if snapshot.is_filtered else frozenset(rids)


def find_sorted(values: Ints, queries: Ints) -> tuple[Ints, "np.ndarray[Any, np.dtype[np.bool_]]"]:
    """Return the position of each of `queries` in the rising `values`, and whether it is present there."""
    positions = np.searchsorted(values, queries)
    if not len(values):
        return positions, np.zeros(len(queries), dtype=bool)
    return positions, values.take(positions, mode="clip") == queries


def _check_date(text: str) -> None:
    if not is_date(text):
        raise InvalidInput(
            f"{text!r} is not a date.", remedy="Write a year, a month or a day: 1907, 1907-03, 1907-03-31."
        )


def _holds_at(as_of: str) -> ColumnElement[bool]:
    """Match documents that hold at the end of a date, as `validity.holds_at` says it."""
    start, end = s.document.c.holds_from, s.document.c.holds_until
    return and_(start <= as_of + END, or_(end == "", end + END >= as_of + END))


def _has_name(connection: Connection, names: Sequence[str]) -> ColumnElement[bool]:
    """Match documents by id or by a pattern of the id; there may be thousands of ids."""
    patterns = [name for name in names if "*" in name or "?" in name]
    ids = sorted(set(names) - set(patterns))
    parts = [s.document.c.id.in_(members) for members in member_sets(connection, s.document.c.id, ids)]
    return or_(*parts, *(_matches(pattern) for pattern in patterns))


def _matches(pattern: str) -> ColumnElement[bool]:
    """Compare a document id with a shell pattern of `*` and `?`."""
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return s.document.c.id.like(escaped.replace("*", "%").replace("?", "_"), escape="\\")


def _meets(condition: Condition) -> ColumnElement[bool]:
    if not condition.field.strip():
        raise InvalidInput("A metadata condition has no field.", remedy='Write it as "field=value".')
    if condition.operator == "exists":
        return _any_value(condition.field)
    if condition.operator == "!=":
        equal = Condition(field="value", operator="=", value=condition.value)
        return ~_any_value(condition.field, _compares(equal))
    return _any_value(condition.field, _compares(condition))


def _compares(condition: Condition) -> ColumnElement[bool]:
    v = s.metadata_value.c
    if condition.operator == "in":
        parts = [part.strip() for part in condition.value.split(",")]
        numbers = [number for number in map(_number, parts) if number is not None]
        return or_(and_(v.number.is_(None), v.text.in_([part.casefold() for part in parts])), v.number.in_(numbers))
    if condition.operator == "contains":
        return v.text.contains(condition.value.casefold(), autoescape=True)
    compare = _COMPARE.get(condition.operator)
    if compare is None:
        raise InvalidInput(
            f"Unknown comparison {condition.operator!r}.",
            remedy=f"Use one of {', '.join([*_COMPARE, '!=', 'in', 'contains', 'exists'])}.",
        )
    number = _number(condition.value)
    as_text = and_(v.number.is_(None), compare(v.text, condition.value.casefold()))
    return as_text if number is None else or_(as_text, compare(v.number, number))


def _any_value(field: str, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    v = s.metadata_value.c
    return exists().where(v.document == s.document.c.rid, v.field == field, *conditions)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _entities(snapshot: Snapshot) -> tuple[Ints, ...]:
    """Return the entities that an allowed chunk mentions, rising, and whether no other chunk mentions each (1 or 0)."""

    def read() -> tuple[Ints, Ints]:
        rids, counts = np.unique(_read(snapshot, _MENTIONED, 1)[0], return_counts=True)
        unsorted_rids, totals = _read(snapshot, _N_MENTIONS, 2)
        return rids, (totals[np.argsort(unsorted_rids)] == counts).astype(np.int64)

    return cached_arrays(snapshot.cache.arrays, "entities", read)


def _relations(snapshot: Snapshot) -> tuple[Ints, Ints, Ints, Ints]:
    relations, weights = _read(snapshot, _STATED, 2)
    order = np.argsort(relations, kind="stable")
    rids, starts = np.unique(relations[order], return_index=True)
    sums = np.add.reduceat(weights[order], starts) if len(rids) else weights
    unsorted_rids, sources, targets = _read(snapshot, _ENDS, 3)
    by_rid = np.argsort(unsorted_rids)
    return rids, sources[by_rid], targets[by_rid], sums


def _clusters(snapshot: Snapshot) -> tuple[Ints, Ints, Ints]:
    """Count entities in their finest clusters, then in the parents, which may be above clusters of several levels."""
    members, clusters = _read(snapshot, _MEMBERS, 2)
    entities, is_fully_allowed = _entities(snapshot)
    counts = np.stack([np.ones_like(members), is_fully_allowed[find_sorted(entities, members)[0]]], axis=1)
    rows: list[Ints] = []
    while len(clusters):
        rids, counts = _sum_by_rid(clusters, counts)
        parents = np.stack(_CLUSTERS.ints(snapshot, rids.tolist()), axis=1)
        parents = parents[np.argsort(parents[:, 0])]
        rows.append(np.column_stack([rids, parents[:, 2], counts]))
        has_parent = parents[:, 1] != _NO_PARENT
        clusters, counts = parents[has_parent, 1], counts[has_parent]
    all_rows = np.concatenate(rows) if rows else np.empty((0, 4), dtype=np.int64)
    n_entities_by_rid = dict(all_rows[:, :2].tolist())
    rids, counts = _sum_by_rid(all_rows[:, 0], all_rows[:, 2:])
    n_entities = np.array([n_entities_by_rid[rid] for rid in rids.tolist()], dtype=np.int64)
    return rids, counts[:, 0], rids[counts[:, 1] == n_entities]


def _sum_by_rid(rids: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return each row id once, rising, with the sums of its counts [n, 2]."""
    order = np.argsort(rids, kind="stable")
    distinct, starts = np.unique(rids[order], return_index=True)
    return distinct, np.add.reduceat(counts[order], starts, axis=0) if len(distinct) else counts


def _among(rids: Collection[int], visible: Ints) -> frozenset[int]:
    candidates = np.array(list(rids), dtype=np.int64)
    return frozenset(candidates[find_sorted(visible, candidates)[1]].tolist())


def _read(snapshot: Snapshot, query: Select[Any], n_columns: int) -> tuple[Ints, ...]:
    return from_texts(snapshot.connection.execute(query).all(), n_columns)
