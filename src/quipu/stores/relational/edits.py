"""Edits: recorded by a commit, applied to what chunks state, and listed.

The tables of mentions hold what chunks state after all edits. What an edited chunk states before them is kept beside
it, so that the next edit, or undoing one, starts from what was extracted.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, func, select, tuple_

from quipu.model.delta import ChunkFacts, Delta
from quipu.model.edit import Edit, EditKind, EditRules, RecordedEdit, Statements, targets
from quipu.model.graph import AliasMention, ClaimMention, EntityMention, RelationMention
from quipu.stores.relational import chunks
from quipu.stores.relational import schema as s
from quipu.stores.relational.documents import ChunkChanges
from quipu.stores.relational.mentions import StatedChunk, mentions
from quipu.stores.relational.replies import deflate, inflate
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import ByValues, Transaction, checksum, insert_rows, next_rid, to_json

# Which entities an edit names.
edit_key = sa.Table(
    "edit_key",
    s.metadata,
    sa.Column("key", s.TEXT, primary_key=True),
    sa.Column("edit", s.INTEGER, primary_key=True),
    sqlite_with_rowid=False,
)
# Which edits change what a chunk states.
edited_chunk = sa.Table(
    "edited_chunk",
    s.metadata,
    sa.Column("chunk", s.INTEGER, primary_key=True),
    sa.Column("edit", s.INTEGER, primary_key=True),
    sa.Index("edited_chunk_edit", "edit"),
    sqlite_with_rowid=False,
)
# What an edited chunk states before all edits: deflated JSON.
unedited = sa.Table(
    "unedited",
    s.metadata,
    sa.Column("chunk", s.INTEGER, primary_key=True),
    sa.Column("payload", sa.LargeBinary, nullable=False),
)
_OF_CHUNKS = (edited_chunk, unedited)
TABLES = (edit_key, *_OF_CHUNKS)

_MAX_ID = 2**62  # more than there can be
_d, _u, _c, _e, _r = edited_chunk.c, unedited.c, s.chunk.c, s.entity.c, s.relation.c
_ACTIVE = select(s.edit).where(s.edit.c.undone_at == "").order_by(s.edit.c.rid)
_NAMING = ByValues(
    select(s.edit)
    .distinct()
    .join_from(edit_key, s.edit, edit_key.c.edit == s.edit.c.rid)
    .where(s.edit.c.undone_at == ""),
    edit_key.c.key,
)
_IDS_NAMING = ByValues(select(edit_key.c.edit), edit_key.c.key)
_EDITS = ByValues(select(s.edit), s.edit.c.rid)
_EDITED_BY = ByValues(select(_d.chunk).distinct(), _d.edit)
_EDITS_IN = ByValues(
    select(_d.edit)
    .join_from(edited_chunk, s.chunk, _d.chunk == _c.rid)
    .join(s.document, s.document.c.rid == _c.document),
    s.document.c.id,
)
_UNEDITED = ByValues(select(unedited), _u.chunk)
_FORGET = [ByValues(table.delete(), table.c.chunk) for table in _OF_CHUNKS]
_IDS = ByValues(select(_c.rid, _c.id), _c.rid)
_MENTIONING = ByValues(
    select(s.entity_mention.c.chunk).distinct().join(s.entity, s.entity_mention.c.entity == _e.rid), _e.key
)
_SOURCE, _TARGET = s.entity.alias(), s.entity.alias()
_RELATING = ByValues(
    select(s.relation_mention.c.chunk)
    .distinct()
    .join(s.relation, s.relation_mention.c.relation == _r.rid)
    .join(_SOURCE, _SOURCE.c.rid == _r.source)
    .join(_TARGET, _TARGET.c.rid == _r.target),
    tuple_(_SOURCE.c.key, _TARGET.c.key),
)


@dataclass(frozen=True, slots=True)
class EditChanges:
    """The ids of the edits that a commit made, and of those that it undid."""

    new: tuple[int, ...] = ()
    undone: tuple[int, ...] = ()


def write(snapshot: Snapshot, delta: Delta, changes: ChunkChanges, now: str) -> EditChanges:
    """Record edits, undo others, let them follow moved documents, and change `changes` to what chunks then state.

    These are the chunks of `changes` and those of such edits.
    """
    connection = snapshot.connection
    for forget in _FORGET:
        forget.run(connection, changes.retracted_chunks)
    recorded = EditChanges(_record(connection, delta.edits, now), _undo(connection, delta.undo, now))
    moved = _follow(connection, dict(delta.moved)) if delta.moved else {}
    affected = _affected(connection, [*delta.edits, *moved.values()], [*recorded.undone, *moved])
    affected.difference_update(rid for rid, _ in changes.stated)
    restated = facts_before_edits(snapshot, sorted(affected.difference(changes.retracted_chunks)))
    changes.retracted_chunks += [rid for rid, _ in restated]
    for forget in _FORGET:
        forget.run(connection, [rid for rid, _ in restated])
    changes.stated = _edited(connection, [*changes.stated, *restated])
    return recorded


def _rules_for(connection: Connection, keys: Collection[str]) -> EditRules:
    """Return the edits that hold and name one of these entities, or one that such an edit leads to."""
    edits: dict[int, Edit] = {}
    seen, unseen = set(keys), set(keys)
    while unseen:
        named = {row.rid: _decode(row.kind, row.payload) for row in _NAMING.rows(connection, sorted(unseen))}
        edits |= named
        unseen = {edit.key for edit in named.values() if edit.key} - seen
        seen |= unseen
    return EditRules(sorted(edits.items(), key=lambda numbered: numbered[0]))


def _record(connection: Connection, edits: Sequence[Edit], now: str) -> tuple[int, ...]:
    first = next_rid(connection, s.edit) if edits else 0
    rows = [
        {"rid": first + i, "kind": edit.kind.value, "payload": _encode(edit), "made_at": now, "undone_at": ""}
        for i, edit in enumerate(edits)
    ]
    insert_rows(connection, s.edit, rows)
    named = [{"key": key, "edit": first + i} for i, edit in enumerate(edits) for key in sorted(_named_keys(edit))]
    insert_rows(connection, edit_key, named)
    return tuple(range(first, first + len(rows)))


def _named_keys(edit: Edit) -> set[str]:
    return {*edit.entities, edit.key} - {""}


def _undo(connection: Connection, undo: Sequence[int], now: str) -> tuple[int, ...]:
    rows = [row._asdict() for row in _EDITS.rows(connection, sorted(set(undo))) if not row.undone_at]
    for row in rows:
        undone = {**row, "undone_at": now}
        changed = {"undone_at": now, "checksum": checksum(s.edit, undone)}
        connection.execute(s.edit.update().where(s.edit.c.rid == row["rid"]).values(changed))
    return tuple(sorted(row["rid"] for row in rows))


def _follow(connection: Connection, id_by_moved: Mapping[str, str]) -> dict[int, Edit]:
    """Let splits name documents by their ids after a move; return those that changed."""
    moved: dict[int, Edit] = {}
    for row in connection.execute(select(s.edit).where(s.edit.c.kind == EditKind.SPLIT.value)).all():
        edit = _decode(row.kind, row.payload)
        documents = tuple(dict.fromkeys(id_by_moved.get(name, name) for name in edit.documents))
        if documents != edit.documents:
            moved[row.rid] = replace(edit, documents=documents)
            changed: dict[str, Any] = {"payload": _encode(moved[row.rid])}
            changed["checksum"] = checksum(s.edit, {**row._mapping, **changed})
            connection.execute(s.edit.update().where(s.edit.c.rid == row.rid).values(changed))
    return moved


def _affected(connection: Connection, new: Sequence[Edit], undone: Sequence[int]) -> set[int]:
    """Return the chunks whose statements may change: those that mention what an edit is about, or were edited by it."""
    affected = {rid for (rid,) in _EDITED_BY.rows(connection, undone)}
    for edit in new:
        keys, ends = targets(edit)
        affected.update(rid for (rid,) in _MENTIONING.rows(connection, sorted(keys)))
        affected.update(rid for (rid,) in _RELATING.rows(connection, [ends] if ends else ()))
    return affected


def facts_before_edits(snapshot: Snapshot, rids: Collection[int]) -> list[StatedChunk]:
    """Return what these chunks state before all edits."""
    id_by_rid: dict[int, str] = dict(map(tuple, _IDS.rows(snapshot.connection, rids)))
    before = {row.chunk: _decode_statements(row.payload) for row in _UNEDITED.rows(snapshot.connection, rids)}
    chunk_by_id = {chunk.id: chunk for chunk in chunks.chunks(snapshot, list(id_by_rid.values()))}
    plain = _current(snapshot, [chunk_id for rid, chunk_id in id_by_rid.items() if rid not in before])
    return [
        (rid, _with(ChunkFacts(chunk=chunk_by_id[chunk_id]), before.get(rid) or plain[chunk_id]))
        for rid, chunk_id in sorted(id_by_rid.items())
    ]


def _current(snapshot: Snapshot, chunk_ids: Sequence[str]) -> dict[str, Statements]:
    """Return what these chunks state now, after all edits."""
    entities, relations = mentions(snapshot, EntityMention, chunk_ids), mentions(snapshot, RelationMention, chunk_ids)
    aliases, claims = mentions(snapshot, AliasMention, chunk_ids), mentions(snapshot, ClaimMention, chunk_ids)
    return {
        chunk_id: Statements(
            entities=tuple(entities.get(chunk_id, ())),
            relations=tuple(relations.get(chunk_id, ())),
            aliases=tuple(aliases.get(chunk_id, ())),
            claims=tuple(claims.get(chunk_id, ())),
        )
        for chunk_id in chunk_ids
    }


def _edited(connection: Connection, stated: Sequence[StatedChunk]) -> list[StatedChunk]:
    """Return what these chunks state after all edits; keep what the edited ones state before them."""
    rules = _rules_for(connection, {mention.key for _, facts in stated for mention in facts.entities})
    edited: list[StatedChunk] = []
    edit_rows, unedited_rows = list[dict[str, Any]](), list[dict[str, Any]]()
    for rid, facts in stated:
        before = _of(facts)
        after, numbers = rules.apply(facts.chunk.document_id, before)
        edited.append((rid, _with(facts, after) if numbers else facts))
        edit_rows += [{"chunk": rid, "edit": number} for number in numbers]
        if numbers:
            unedited_rows.append({"chunk": rid, "payload": deflate(to_json(asdict(before)))})
    insert_rows(connection, edited_chunk, edit_rows)
    insert_rows(connection, unedited, unedited_rows)
    return edited


def _of(facts: ChunkFacts) -> Statements:
    return Statements(entities=facts.entities, relations=facts.relations, aliases=facts.aliases, claims=facts.claims)


def _with(facts: ChunkFacts, stated: Statements) -> ChunkFacts:
    return replace(
        facts, entities=stated.entities, relations=stated.relations, aliases=stated.aliases, claims=stated.claims
    )


@cache
def _adapter() -> TypeAdapter[Statements]:
    return TypeAdapter(Statements)


def _decode_statements(payload: bytes) -> Statements:
    return _adapter().validate_json(inflate(payload))


@cache
def _edit_adapter() -> TypeAdapter[Edit]:
    return TypeAdapter(Edit)


def _encode(edit: Edit) -> str:
    return to_json({name: value for name, value in asdict(edit).items() if value and name != "kind"})


def _decode(kind: str, payload: str) -> Edit:
    return _edit_adapter().validate_json(payload[:-1] + f', "kind": "{kind}"}}')


@dataclass(frozen=True, slots=True)
class RelationalEdits:
    """An EditStore in the database of an index; `ports.history` describes the method."""

    read: Transaction

    async def edits(
        self,
        ids: tuple[int, ...] | None = None,
        *,
        entity: str = "",
        with_undone: bool = True,
        before: int | None = None,
        k: int | None = None,
    ) -> list[RecordedEdit]:
        query = select(s.edit).order_by(s.edit.c.rid.desc()).limit(k)
        if ids is not None:
            query = query.where(s.edit.c.rid.in_([number for number in ids if number <= _MAX_ID]))
        if not with_undone:
            query = query.where(s.edit.c.undone_at == "")
        if before is not None:
            query = query.where(s.edit.c.rid < min(before, _MAX_ID))

        def listed(connection: Connection) -> list[RecordedEdit]:
            of_entity = s.edit.c.rid.in_(_ids_naming(connection, entity)) if entity else sa.true()
            rows = connection.execute(query.where(of_entity)).all()
            return _recorded(connection, [(row, _decode(row.kind, row.payload)) for row in rows])

        return await self.read(listed)

    async def n_chunks_in(self, documents: Sequence[str]) -> dict[int, int]:
        def counted(connection: Connection) -> dict[int, int]:
            return dict(Counter(edit for (edit,) in _EDITS_IN.rows(connection, documents)))

        return await self.read(counted)


def _ids_naming(connection: Connection, entity: str) -> list[int]:
    """Return the edits that name an entity, or one that an edit which holds has made part of it."""
    keys, unread = {entity}, {entity}
    while unread:
        edits = [_decode(row.kind, row.payload) for row in _NAMING.rows(connection, sorted(unread))]
        unread = {key for edit in edits if edit.key in keys for key in edit.entities} - keys
        keys |= unread
    return sorted({edit for (edit,) in _IDS_NAMING.rows(connection, sorted(keys))})


def _recorded(connection: Connection, rows: Sequence[tuple[Row[Any], Edit]]) -> list[RecordedEdit]:
    per_edit = select(_d.edit, func.count()).where(_d.edit.in_([row.rid for row, _ in rows])).group_by(_d.edit)
    n_chunks: dict[int, int] = dict(map(tuple, connection.execute(per_edit)))
    documents = {document for _, edit in rows for document in edit.documents}
    existing = set(connection.execute(select(s.document.c.id).where(s.document.c.id.in_(documents))).scalars())
    keys = {key for _, edit in rows if edit.kind is EditKind.DISTINCT for key in edit.entities}
    entities = set(connection.execute(select(_e.key).where(_e.key.in_(keys))).scalars())

    def has_effect(row: Row[Any], edit: Edit) -> bool:
        if row.undone_at:
            return False
        if edit.kind is EditKind.CREATE:
            return existing.issuperset(edit.documents)
        return entities.issuperset(edit.entities) if edit.kind is EditKind.DISTINCT else row.rid in n_chunks

    return [
        RecordedEdit(
            id=row.rid,
            edit=edit,
            made_at=row.made_at,
            undone_at=row.undone_at,
            n_chunks=n_chunks.get(row.rid, 0),
            has_effect=has_effect(row, edit),
        )
        for row, edit in rows
    ]


def records(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield the edits that hold, in the order in which they were made, as the dump shows them."""
    for row in connection.execute(_ACTIVE):
        yield {"edit": row.kind, **asdict(_decode(row.kind, row.payload))}


def unedited_records(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield what edited chunks state before all edits, as the dump shows it."""
    query = select(_c.id, _u.payload).join_from(unedited, s.chunk, _c.rid == _u.chunk).order_by(_c.id)
    for row in connection.execute(query, execution_options={"yield_per": 1_000}):
        yield {"chunk": row.id, **asdict(_decode_statements(row.payload))}


def key_differences(connection: Connection) -> Iterator[str]:
    """Compare the index of the entities that edits name with the edits."""
    if _keys_of_edits(connection) != set(map(tuple, connection.execute(select(edit_key.c.key, edit_key.c.edit)))):
        yield "the entities that edits name differ from those in their index"


def rebuild_keys(connection: Connection) -> None:
    """Build the index of the entities that edits name again."""
    connection.execute(edit_key.delete())
    rows = [{"key": key, "edit": rid} for key, rid in sorted(_keys_of_edits(connection))]
    insert_rows(connection, edit_key, rows)


def _keys_of_edits(connection: Connection) -> set[tuple[str, int]]:
    rows = connection.execute(select(s.edit)).all()
    return {(key, row.rid) for row in rows for key in _named_keys(_decode(row.kind, row.payload))}


def differences(snapshot: Snapshot) -> Iterator[str]:
    """Apply all edits again to what chunks state, and compare; only chunks that an edit may change are read."""
    connection = snapshot.connection
    edits = {row.rid: _decode(row.kind, row.payload) for row in connection.execute(select(s.edit))}
    rules = EditRules((row.rid, edits[row.rid]) for row in connection.execute(_ACTIVE))
    chunk_ids: dict[int, str] = dict(map(tuple, connection.execute(select(_c.rid, _c.id))))
    stored: dict[int, set[int]] = {}
    for row in connection.execute(select(edited_chunk)):
        stored.setdefault(row.chunk, set()).add(row.edit)
    with_copy = set(connection.execute(select(_u.chunk)).scalars())
    lost = sorted((with_copy | stored.keys()) - chunk_ids.keys())
    yield from (f"edits of chunk row {rid}: the chunk does not exist" for rid in lost)
    for rid in sorted(with_copy ^ stored.keys()):
        yield f"chunk row {rid}: whether it is edited does not agree with what is kept of it"
    mentioned = {rid for (rid,) in _MENTIONING.rows(connection, sorted(rules.keys))}
    rids = sorted((mentioned | with_copy | stored.keys()) & chunk_ids.keys())
    current = _current(snapshot, [chunk_ids[rid] for rid in rids])
    for rid, facts in facts_before_edits(snapshot, rids):
        after, numbers = rules.apply(facts.chunk.document_id, _of(facts))
        if {*numbers} != stored.get(rid, set()) or after != current[facts.chunk.id]:
            place = f"document {facts.chunk.document_id!r}, chunk {facts.chunk.id}"
            yield f"{place}: what it states differs from what the edits make of it"
