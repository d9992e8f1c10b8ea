"""Summaries of entities and relations: which are missing, the descriptions they are made from, and writing them.

A commit marks the entities and relations it changes and drops outdated summaries, at a cost that follows the size of
the change. All descriptions are read only to make a summary, and compared once more when it is written.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, Update, bindparam, func, select, tuple_
from sqlalchemy import text as sql_text

from quipu.errors import InvalidDelta
from quipu.model.graph import NO_DESCRIPTION, descriptions_hash, distinct_descriptions, entity_text, relation_text
from quipu.model.ids import relation_ends, relation_id
from quipu.model.summary import Description, Summary, SummaryTarget, SummaryTargetKind, SummaryTask
from quipu.ports.store import VectorSpace
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import ByValues, execute_rows, insert_rows, read_number, texts_from_json
from quipu.stores.relational.vector_writes import VectorChanges, vector_hash

_SOURCE, _TARGET = s.entity.alias(), s.entity.alias()
_relation_keys = _SOURCE.c.key.label("source_key"), _TARGET.c.key.label("target_key")
_u = s.summary.c


def _with_keys(query: Select[Any]) -> Select[Any]:
    query = query.join(_SOURCE, _SOURCE.c.rid == s.relation.c.source)
    return query.join(_TARGET, _TARGET.c.rid == s.relation.c.target)


_KEYS = ByValues(select(s.entity.c.key, s.entity.c.rid), s.entity.c.key)
_ROWS = {
    SummaryTargetKind.ENTITY: ByValues(select(s.entity), s.entity.c.key),
    SummaryTargetKind.RELATION: ByValues(
        _with_keys(select(s.relation, *_relation_keys)), tuple_(s.relation.c.source, s.relation.c.target)
    ),
}
_SUMMARIES = ByValues(select(_u.owner, _u.inputs_hash, _u.text).where(_u.kind == bindparam("of")), _u.owner)
_DROP = ByValues(s.summary.delete().where(_u.kind == bindparam("of")), _u.owner)


def _is_waiting(table: Table) -> ColumnElement[bool]:
    """Return the condition of the partial index, written as text: otherwise the index would not be used."""
    return sql_text(f"{table.name}.described_by = {s.WAITING}")  # type: ignore[return-value]


_WAITING: dict[SummaryTargetKind, Select[Any]] = {
    SummaryTargetKind.ENTITY: select(s.entity.c.key).where(_is_waiting(s.entity)),
    SummaryTargetKind.RELATION: _with_keys(select(*_relation_keys).select_from(s.relation)).where(
        _is_waiting(s.relation)
    ),
}
# How many entities, and relations, need a summary.
N_WAITING = [select(func.count()).select_from(table).where(_is_waiting(table)) for table in (s.entity, s.relation)]


@dataclass(frozen=True, slots=True)
class _MentionQueries:
    """How the descriptions in the mentions of entities, or of relations, are read."""

    descriptions: ByValues  # (owner, rank, description), one row for each distinct description
    with_documents: ByValues  # the same, with the first document that states it
    stating: Select[Any]  # at most :limit mentions of :owner with the rank :rank


def _mention_queries(table: Table, owner: ColumnElement[Any]) -> _MentionQueries:
    rank, has_description = table.c.description_order, table.c.description_order != NO_DESCRIPTION
    with_documents = (
        select(owner, rank, func.min(table.c.description), func.min(s.document.c.id))
        .join_from(table, s.chunk, table.c.chunk == s.chunk.c.rid)
        .join(s.document, s.chunk.c.document == s.document.c.rid)
        .where(has_description)
        .group_by(owner, rank)
    )
    stating = select(table.c.chunk).where(owner == bindparam("owner"), rank == bindparam("rank"))
    return _MentionQueries(
        descriptions=ByValues(select(owner, rank, table.c.description).distinct().where(has_description), owner),
        with_documents=ByValues(with_documents, owner),
        stating=stating.limit(bindparam("limit")),
    )


_MENTIONS = {
    SummaryTargetKind.ENTITY: _mention_queries(s.entity_mention, s.entity_mention.c.entity),
    SummaryTargetKind.RELATION: _mention_queries(s.relation_mention, s.relation_mention.c.relation),
}


def _describe(table: Table) -> Update:
    columns = ("description", "described_by", "vector_hash")
    return table.update().where(table.c.rid == bindparam("row")).values({name: bindparam(name) for name in columns})


_DESCRIBE = {SummaryTargetKind.ENTITY: _describe(s.entity), SummaryTargetKind.RELATION: _describe(s.relation)}


def unsummarised(connection: Connection) -> list[str]:
    """Return the entities, then the relations, that need a summary, each ordered by id."""
    entities = connection.execute(_WAITING[SummaryTargetKind.ENTITY]).scalars()
    relations = connection.execute(_WAITING[SummaryTargetKind.RELATION])
    return [*sorted(entities), *sorted(relation_id(*keys) for keys in relations)]


def summary_tasks(connection: Connection, owners: Sequence[SummaryTarget]) -> list[SummaryTask]:
    """Return what to summarise for each of these owners, in their order; owners that need no summary are left out."""
    task_by_owner: dict[SummaryTarget, SummaryTask] = {}
    revision = read_number(connection, "revision")
    for kind in SummaryTargetKind:
        rows = {row.rid: row for row in _rows(connection, kind, [owner.id for owner in owners if owner.kind == kind])}
        waiting = sorted(rid for rid, row in rows.items() if row.described_by == s.WAITING)
        ranked_by_rid: dict[int, list[tuple[int, Description]]] = {}
        for rid, rank, text, document in _MENTIONS[kind].with_documents.rows(connection, waiting):
            ranked_by_rid.setdefault(rid, []).append((rank, Description(text=text, document=document)))
        for rid, ranked in ranked_by_rid.items():
            owner = SummaryTarget(kind, _id(kind, rows[rid]))
            descriptions = tuple(description for _, description in sorted(ranked, key=lambda pair: pair[0]))
            task_by_owner[owner] = SummaryTask(
                target=owner,
                names=_names(kind, rows[rid]),
                descriptions=descriptions,
                inputs_hash=descriptions_hash(description.text for description in descriptions),
                revision=revision,
            )
    return [task_by_owner[owner] for owner in owners if owner in task_by_owner]


def write(connection: Connection, summaries: Sequence[Summary]) -> tuple[VectorChanges, int]:
    """Write the summaries whose inputs are still current; return the changed vectors and how many were outdated."""
    if any(not summary.text.strip() for summary in summaries):
        raise InvalidDelta("A summary without words.")
    vectors, n_written = VectorChanges(), 0
    by_owner = {summary.target: summary for summary in summaries}
    for kind in SummaryTargetKind:
        by_id = {owner.id: summary for owner, summary in by_owner.items() if owner.kind == kind}
        rows = [row for row in _rows(connection, kind, list(by_id)) if row.described_by != s.JOINED]
        hashes = input_hashes(connection, kind, [row.rid for row in rows])
        described: list[dict[str, Any]] = []
        written: list[dict[str, Any]] = []
        for row in rows:
            summary = by_id[_id(kind, row)]
            if hashes.get(row.rid) != summary.inputs_hash:
                continue
            text_hash = _vector_hash(kind, row, summary.text)
            vectors.moved(VectorSpace(kind), row.vector_hash, text_hash)
            columns = {"description": summary.text, "described_by": s.SUMMARISED, "vector_hash": text_hash}
            described.append({"row": row.rid, **columns})
            content = {"inputs_hash": summary.inputs_hash, "text": summary.text, "model": summary.model}
            written.append({"kind": kind, "owner": row.rid, **content})
        execute_rows(connection, _DESCRIBE[kind], described)
        drop(connection, kind, [row["owner"] for row in written])
        insert_rows(connection, s.summary, written)
        n_written += len(written)
    return vectors, len(by_owner) - n_written


def read(connection: Connection, kind: SummaryTargetKind, rids: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return the summary of each of these row ids that has one: (hash of its inputs, text)."""
    return {rid: (inputs_hash, text) for rid, inputs_hash, text in _SUMMARIES.rows(connection, rids, of=kind)}


def drop(connection: Connection, kind: SummaryTargetKind, rids: Sequence[int]) -> None:
    """Drop the summaries of these row ids."""
    _DROP.run(connection, rids, of=kind)


def input_hashes(connection: Connection, kind: SummaryTargetKind, rids: Iterable[int]) -> dict[int, str]:
    """Return the hash of all descriptions of each of these row ids."""
    ranked_by_rid: dict[int, list[tuple[int, str]]] = {}
    for rid, rank, text in _MENTIONS[kind].descriptions.rows(connection, rids):
        ranked_by_rid.setdefault(rid, []).append((rank, text))
    return {rid: descriptions_hash(distinct_descriptions(ranked)) for rid, ranked in ranked_by_rid.items()}


def with_changed_descriptions(
    connection: Connection,
    kind: SummaryTargetKind,
    rids: Iterable[int],
    added: Mapping[int, Sequence[tuple[int, str]]],
    removed: Mapping[int, Sequence[int]],
) -> set[int]:
    """Return those row ids whose set of descriptions differs from before mentions were added and removed.

    Each changed rank is looked up once, however many mentions there are. Removing one of two mentions with the same
    description changes nothing.
    """
    changed: set[int] = set()
    for rid in rids:
        net = Counter(rank for rank, _ in added.get(rid, ()))
        net.subtract(removed.get(rid, ()))
        for rank, n_more in net.items():
            if rank == NO_DESCRIPTION or not n_more:
                continue
            n_expected = max(n_more, 0)
            where = {"owner": rid, "rank": rank, "limit": n_expected + 1}
            if len(connection.execute(_MENTIONS[kind].stating, where).all()) == n_expected:
                changed.add(rid)  # only the added mentions state this description, or no mention does any more
                break
    return changed


def _rows(connection: Connection, kind: SummaryTargetKind, ids: Sequence[str]) -> Sequence[Row[Any]]:
    if kind is SummaryTargetKind.ENTITY:
        return _ROWS[kind].rows(connection, ids)
    ends = [relation_ends(relation) for relation in ids if relation.count(" -- ") == 1]
    rids = dict(map(tuple, _KEYS.rows(connection, sorted({key for pair in ends for key in pair}))))
    return _ROWS[kind].rows(connection, sorted((rids[a], rids[b]) for a, b in ends if a in rids and b in rids))


def _names(kind: SummaryTargetKind, row: Row[Any]) -> tuple[str, ...]:
    return (row.key,) if kind is SummaryTargetKind.ENTITY else (row.source_key, row.target_key)


def _id(kind: SummaryTargetKind, row: Row[Any]) -> str:
    return str(row.key) if kind is SummaryTargetKind.ENTITY else relation_id(row.source_key, row.target_key)


def _vector_hash(kind: SummaryTargetKind, row: Row[Any], description: str) -> str:
    if kind is SummaryTargetKind.ENTITY:
        return vector_hash(VectorSpace.ENTITY, entity_text(row.name, description))
    words = texts_from_json(row.keywords)
    return vector_hash(VectorSpace.RELATION, relation_text(words, row.source_key, row.target_key, description))
