"""Summaries in tables: which entities and relations wait for one, what it is to be made of, and what is shown.

A commit marks what it touches and drops what is outdated, at a cost that follows the change: descriptions are read in
full only when a summary is made of them, and compared with its inputs once more when it is written.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, Update, bindparam, func, select, tuple_
from sqlalchemy import text as sql_text

from quipu.errors import InvalidDelta
from quipu.model.fold import NO_DESCRIPTION, descriptions_hash, distinct_descriptions
from quipu.model.graph import entity_text, relation_text
from quipu.model.ids import relation_ends, relation_id
from quipu.model.summary import Description, Summary, SummaryTarget, SummaryTargetKind, SummaryTask
from quipu.ports.store import VectorSpace
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import ByValues, execute_rows, insert_rows, read_number, texts_from_json
from quipu.stores.relational.vector_writes import VectorChanges, vector_hash

_source, _target = s.entity.alias(), s.entity.alias()
_relation_keys = _source.c.key.label("source_key"), _target.c.key.label("target_key")
_kept = s.summary.c


def _with_keys(query: Select[Any]) -> Select[Any]:
    query = query.join(_source, _source.c.rid == s.relation.c.source)
    return query.join(_target, _target.c.rid == s.relation.c.target)


_RELATION = _with_keys(select(s.relation, *_relation_keys))
_KEYS = ByValues(select(s.entity.c.key, s.entity.c.rid), s.entity.c.key)
_ROWS = {
    SummaryTargetKind.ENTITY: ByValues(select(s.entity), s.entity.c.key),
    SummaryTargetKind.RELATION: ByValues(_RELATION, tuple_(s.relation.c.source, s.relation.c.target)),
}
_OF = ByValues(select(_kept.owner, _kept.inputs_hash, _kept.text).where(_kept.kind == bindparam("of")), _kept.owner)
_DROP = ByValues(s.summary.delete().where(_kept.kind == bindparam("of")), _kept.owner)


def _is_waiting(table: Table) -> ColumnElement[bool]:
    """Return the condition as the partial index has it: written out, or it would not be used."""
    return sql_text(f"{table.name}.described_by = {s.WAITING}")  # type: ignore[return-value]


_WAITING: dict[SummaryTargetKind, Select[Any]] = {
    SummaryTargetKind.ENTITY: select(s.entity.c.key).where(_is_waiting(s.entity)),
    SummaryTargetKind.RELATION: _with_keys(select(*_relation_keys).select_from(s.relation)).where(
        _is_waiting(s.relation)
    ),
}
_N_WAITING = [select(func.count()).select_from(table).where(_is_waiting(table)) for table in (s.entity, s.relation)]


@dataclass(frozen=True, slots=True)
class _Mentions:
    """How the mentions of one kind of owner are read."""

    described: ByValues  # (owner, rank, description), a row for each that is distinct
    stated: ByValues  # the same, with the first document that states it
    is_said: Select[Any]  # rows of the mentions of :owner with the rank :rank, at most :limit


def _mentions(table: Table, owner: ColumnElement[Any]) -> _Mentions:
    rank, is_described = table.c.description_order, table.c.description_order != NO_DESCRIPTION
    stated = (
        select(owner, rank, func.min(table.c.description), func.min(s.document.c.id))
        .join_from(table, s.chunk, table.c.chunk == s.chunk.c.rid)
        .join(s.document, s.chunk.c.document == s.document.c.rid)
        .where(is_described)
        .group_by(owner, rank)
    )
    said = select(table.c.chunk).where(owner == bindparam("owner"), rank == bindparam("rank"))
    return _Mentions(
        described=ByValues(select(owner, rank, table.c.description).distinct().where(is_described), owner),
        stated=ByValues(stated, owner),
        is_said=said.limit(bindparam("limit")),
    )


_MENTIONS = {
    SummaryTargetKind.ENTITY: _mentions(s.entity_mention, s.entity_mention.c.entity),
    SummaryTargetKind.RELATION: _mentions(s.relation_mention, s.relation_mention.c.relation),
}


def _describe(table: Table) -> Update:
    columns = ("description", "described_by", "vector_hash")
    return table.update().where(table.c.rid == bindparam("row")).values({name: bindparam(name) for name in columns})


_DESCRIBE = {SummaryTargetKind.ENTITY: _describe(s.entity), SummaryTargetKind.RELATION: _describe(s.relation)}


def waiting(connection: Connection) -> list[SummaryTarget]:
    """Return everything that waits for a summary, ordered."""
    entities = connection.execute(_WAITING[SummaryTargetKind.ENTITY]).scalars()
    relations = connection.execute(_WAITING[SummaryTargetKind.RELATION])
    return sorted(
        [
            *(SummaryTarget(SummaryTargetKind.ENTITY, key) for key in entities),
            *(SummaryTarget(SummaryTargetKind.RELATION, relation_id(*keys)) for keys in relations),
        ]
    )


def n_waiting(connection: Connection) -> int:
    """Return how many entities and relations wait for a summary."""
    return sum(connection.scalar(query) or 0 for query in _N_WAITING)


def tasks(connection: Connection, owners: Sequence[SummaryTarget]) -> list[SummaryTask]:
    """Return what is to be summarised of these owners, in their order; those that no longer wait are left out."""
    found: dict[SummaryTarget, SummaryTask] = {}
    revision = read_number(connection, "revision")
    for kind in SummaryTargetKind:
        rows = {row.rid: row for row in _rows(connection, kind, [owner.id for owner in owners if owner.kind == kind])}
        rids = sorted(rid for rid, row in rows.items() if row.described_by == s.WAITING)
        stated: dict[int, list[tuple[int, Description]]] = {}
        for rid, rank, text, document in _MENTIONS[kind].stated.rows(connection, rids):
            stated.setdefault(rid, []).append((rank, Description(text=text, document=document)))
        for rid, ranked in stated.items():
            names = _names(kind, rows[rid])
            owner = SummaryTarget(kind, names[0] if kind is SummaryTargetKind.ENTITY else relation_id(*names))
            ordered = tuple(description for _, description in sorted(ranked, key=lambda each: each[0]))
            inputs_hash = descriptions_hash(each.text for each in ordered)
            found[owner] = SummaryTask(
                owner=owner, names=names, descriptions=ordered, inputs_hash=inputs_hash, revision=revision
            )
    return [found[owner] for owner in owners if owner in found]


def write(connection: Connection, summaries: Sequence[Summary]) -> tuple[VectorChanges, int]:
    """Show summaries whose inputs are what is described now; return what that changes, and how many were outdated."""
    if any(not summary.text.strip() for summary in summaries):
        raise InvalidDelta("A summary without words.")
    changes, n_written = VectorChanges(), 0
    by_owner = {summary.owner: summary for summary in summaries}
    for kind in SummaryTargetKind:
        by_id = {owner.id: summary for owner, summary in by_owner.items() if owner.kind == kind}
        rows = [row for row in _rows(connection, kind, list(by_id)) if row.described_by != s.JOINED]
        hashes = inputs(connection, kind, [row.rid for row in rows])
        described: list[dict[str, Any]] = []
        kept: list[dict[str, Any]] = []
        for row in rows:
            names = _names(kind, row)
            summary = by_id[names[0] if kind is SummaryTargetKind.ENTITY else relation_id(*names)]
            if hashes.get(row.rid) == summary.inputs_hash:
                wanted = _vector_hash(kind, row, summary.text)
                changes.moved(VectorSpace(kind), row.vector_hash, wanted)
                written = {"description": summary.text, "described_by": s.SUMMARISED, "vector_hash": wanted}
                described.append({"row": row.rid, **written})
                content = {"inputs_hash": summary.inputs_hash, "text": summary.text, "model": summary.model}
                kept.append({"kind": kind, "owner": row.rid, **content})
        execute_rows(connection, _DESCRIBE[kind], described)
        drop(connection, kind, [row["owner"] for row in kept])
        insert_rows(connection, s.summary, kept)
        n_written += len(kept)
    return changes, len(by_owner) - n_written


def inputs(connection: Connection, kind: SummaryTargetKind, rids: Iterable[int]) -> dict[int, str]:
    """Return the hash of all descriptions of each of these rows."""
    described: dict[int, list[tuple[int, str]]] = {}
    for rid, rank, text in _MENTIONS[kind].described.rows(connection, rids):
        described.setdefault(rid, []).append((rank, text))
    return {rid: descriptions_hash(distinct_descriptions(ranked)) for rid, ranked in described.items()}


def changed(
    connection: Connection,
    kind: SummaryTargetKind,
    rids: Iterable[int],
    added: Mapping[int, Sequence[tuple[int, str]]],
    removed: Mapping[int, Sequence[int]],
) -> set[int]:
    """Return which rows are described by other descriptions than before mentions were added and removed.

    Each rank is looked up, whatever the number of mentions: what is said twice and taken back once changes nothing.
    """
    is_said = _MENTIONS[kind].is_said
    found: set[int] = set()
    for rid in rids:
        net = Counter(rank for rank, _ in added.get(rid, ()))
        net.subtract(removed.get(rid, ()))
        for rank, more in net.items():
            if rank == NO_DESCRIPTION or not more:
                continue
            limit = max(more, 0) + 1
            n_now = len(connection.execute(is_said, {"owner": rid, "rank": rank, "limit": limit}).all())
            if n_now == max(more, 0):  # new: none but these says it; gone: none says it any more
                found.add(rid)
                break
    return found


def drop(connection: Connection, kind: SummaryTargetKind, rids: Sequence[int]) -> None:
    """Drop the summaries of these rows."""
    _DROP.run(connection, rids, of=kind)


def of(connection: Connection, kind: SummaryTargetKind, rids: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return the summary of each of these rows that has one: (hash of its inputs, text)."""
    return {rid: (inputs_hash, text) for rid, inputs_hash, text in _OF.rows(connection, rids, of=kind)}


def _rows(connection: Connection, kind: SummaryTargetKind, ids: Sequence[str]) -> Sequence[Row[Any]]:
    if kind is SummaryTargetKind.ENTITY:
        return _ROWS[kind].rows(connection, ids)
    ends = [relation_ends(each) for each in ids if each.count(" -- ") == 1]
    rids = dict(map(tuple, _KEYS.rows(connection, sorted({key for pair in ends for key in pair}))))
    return _ROWS[kind].rows(connection, sorted((rids[a], rids[b]) for a, b in ends if a in rids and b in rids))


def _names(kind: SummaryTargetKind, row: Row[Any]) -> tuple[str, ...]:
    return (row.key,) if kind is SummaryTargetKind.ENTITY else (row.source_key, row.target_key)


def _vector_hash(kind: SummaryTargetKind, row: Row[Any], description: str) -> str:
    if kind is SummaryTargetKind.ENTITY:
        return vector_hash(VectorSpace.ENTITY, entity_text(row.name, description))
    words = texts_from_json(row.keywords)
    return vector_hash(VectorSpace.RELATION, relation_text(words, row.source_key, row.target_key, description))
