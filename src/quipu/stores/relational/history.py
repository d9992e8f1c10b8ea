"""History: what replaced and removed documents said, in a table that nothing else reads, until a purge.

A question about the past is asked of a copy of the index in which later changes are taken back. So no view, fold,
vector or full text of the index itself ever holds what only an earlier version states.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, select

from quipu.errors import InvalidInput
from quipu.model.delta import ChunkFacts, DocumentFacts
from quipu.model.document import EarlierVersion, stated_end, stated_start
from quipu.model.ids import digest
from quipu.model.validity import VersionTimes, holds_at, version_at
from quipu.ports.history import Rewind
from quipu.stores.relational import conversations, edits, segments
from quipu.stores.relational import schema as s
from quipu.stores.relational.chunks import content
from quipu.stores.relational.documents import TEXT_KIND
from quipu.stores.relational.replies import deflate, inflate
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import (
    Backend,
    ByValues,
    Transaction,
    blocks,
    checksum,
    finish_in_thread,
    insert_rows,
    metadata_from_json,
    n_changed,
    to_json,
)

# `since`: the moment from which the index had the version; `ended_at`: when it was replaced or removed. `starts` and
# `ends` are the dates that it states. `payload`: what it said before all edits, deflated JSON.
earlier_version = sa.Table(
    "earlier_version",
    s.metadata,
    sa.Column("rid", s.INTEGER, primary_key=True),
    *(sa.Column(name, s.TEXT, nullable=False) for name in ("document", "title", "since", "ended_at")),
    *(sa.Column(name, s.TEXT, nullable=False) for name in ("starts", "ends")),
    sa.Column("is_removed", s.INTEGER, nullable=False),
    sa.Column("n_chunks", s.INTEGER, nullable=False),
    sa.Column("payload", sa.LargeBinary, nullable=False),
    sa.Index("earlier_version_document", "document", "since"),
)
TABLES = (earlier_version,)

_BATCH = 32  # documents whose facts are in memory at once
_v, _d, _c = earlier_version.c, s.document.c, s.chunk.c
_TIMES = select(*(column for column in _v if column is not _v.payload)).order_by(
    _v.document, _v.since, _v.ended_at, _v.rid
)
_PAYLOADS = ByValues(select(_v.rid, _v.payload, _v.since), _v.rid)
_DOCUMENTS = ByValues(select(s.document), _d.id)
_CHUNK_RIDS = ByValues(select(_c.rid), _c.document)
_CONTENTS = ByValues(
    select(s.document_content.c.document, s.document_content.c.hash).where(s.document_content.c.kind == TEXT_KIND),
    s.document_content.c.document,
)
_FORGOTTEN_IN_COPIES = (earlier_version, s.job, *conversations.TABLES)


class Apply(Protocol):
    """Publishes and removes documents inside a transaction."""

    def __call__(
        self, connection: Connection, /, publish: Sequence[DocumentFacts], remove: Sequence[str]
    ) -> object: ...


def keep(snapshot: Snapshot, ended: Mapping[str, bool], moment: str) -> None:
    """Keep what the live versions of these documents say, before all edits; must run before they are changed."""
    for ids in blocks(sorted(ended), _BATCH):
        rows = _DOCUMENTS.rows(snapshot.connection, ids)
        insert_rows(
            snapshot.connection,
            earlier_version,
            [
                {
                    "document": facts.id,
                    "title": facts.title,
                    "since": row.since,
                    "ended_at": moment,
                    "starts": stated_start(facts.metadata),
                    "ends": stated_end(facts.metadata),
                    "is_removed": int(ended[row.id]),
                    "n_chunks": len(facts.chunks),
                    "payload": _encode(facts),
                }
                for row in rows
                for facts in [_facts(snapshot, row)]
            ],
        )


def _facts(snapshot: Snapshot, row: Row[Any]) -> DocumentFacts:
    """Return what a live document says before all edits, without its original."""
    rids = [chunk.rid for chunk in _CHUNK_RIDS.rows(snapshot.connection, [row.rid])]
    chunks = [facts for _, facts in edits.facts_before_edits(snapshot, rids)]
    contents = _CONTENTS.rows(snapshot.connection, [row.rid])
    text = content(snapshot, contents[0].hash) if contents else None
    return DocumentFacts(
        id=row.id,
        title=row.title,
        content_hash=row.content_hash,
        chunks=tuple(sorted(chunks, key=lambda facts: facts.chunk.ordinal)),
        source=row.source,
        media_type=row.media_type,
        metadata=metadata_from_json(row.metadata),
        text=None if text is None else text.decode("utf-8", "surrogatepass"),
    )


@cache
def _adapter() -> TypeAdapter[DocumentFacts]:
    return TypeAdapter(DocumentFacts)


def _encode(facts: DocumentFacts) -> bytes:
    """Return facts as JSON, deflated; the texts of chunks are left out where the whole text has them."""
    chunks = facts.chunks if facts.text is None else tuple(_with_text(chunk, "") for chunk in facts.chunks)
    return deflate(to_json(asdict(replace(facts, chunks=chunks))))


def _decode(payload: bytes) -> DocumentFacts:
    facts = _adapter().validate_json(inflate(payload))
    if (text := facts.text) is None:
        return facts
    chunks = (_with_text(chunk, text[chunk.chunk.start : chunk.chunk.end]) for chunk in facts.chunks)
    return replace(facts, chunks=tuple(chunks))


def _with_text(facts: ChunkFacts, text: str) -> ChunkFacts:
    return replace(facts, chunk=replace(facts.chunk, text=text))


@dataclass(frozen=True, slots=True)
class RelationalHistory:
    """A HistoryStore in the database of an index; `ports.history` describes every method."""

    read: Transaction
    write: Transaction
    backend: Backend
    apply: Apply
    is_kept: bool

    async def versions(
        self, documents: Sequence[str] | None = None, *, before: str = "", k: int | None = None, after: str = ""
    ) -> list[EarlierVersion]:
        query = _TIMES.where(_v.document.in_(documents)) if documents is not None else _TIMES
        query = query.where(_v.ended_at < before) if before else query
        if after:
            query = query.where(sa.tuple_(_v.document, _v.since, _v.ended_at) > sa.tuple_(*_after(after)))

        def listed(connection: Connection) -> list[EarlierVersion]:
            return [_version(row) for row in connection.execute(query.limit(k))]

        return await self.read(listed)

    async def drop(self, *, before: str = "") -> int:
        dropped = earlier_version.delete().where(_v.ended_at < before if before else sa.true())

        def drop(connection: Connection) -> int:
            n_dropped = n_changed(connection, dropped)
            segments.note_removed(connection, n_dropped, at_once=True)
            return n_dropped

        n_dropped = await self.write(drop)
        await segments.empty_log(self.read, self.write, self.backend)
        return n_dropped

    async def rewind_to(self, as_of: str) -> Rewind:
        return await self.read(partial(_rewind_to, as_of=as_of))

    async def copy_to(self, file: Path) -> None:
        def copy() -> None:
            with self.backend.reading() as connection:
                self.backend.copy_to(connection, file)

        await finish_in_thread(copy)

    async def rewind(self, rewind: Rewind) -> None:
        def change(connection: Connection) -> None:
            rows = _PAYLOADS.rows(connection, rewind.restore)
            facts = [_decode(row.payload) for row in rows]
            for table in _FORGOTTEN_IN_COPIES:
                connection.execute(table.delete())
            self.apply(connection, facts, rewind.remove)
            _set_since(connection, {document.id: row.since for row, document in zip(rows, facts, strict=True)})

        await self.write(change)


def _set_since(connection: Connection, since_by_id: Mapping[str, str]) -> None:
    """Write the times from which restored versions hold, which a commit sets to its own time."""
    for row in _DOCUMENTS.rows(connection, sorted(since_by_id)):
        since = since_by_id[row.id]
        start = stated_start(metadata_from_json(row.metadata)) or since
        times = {"since": since, "holds_from": start}
        changed = {**times, "checksum": checksum(s.document, {**row._asdict(), **times})}
        connection.execute(s.document.update().where(_d.rid == row.rid).values(changed))


def _after(cursor: str) -> tuple[str, str, str]:
    """Return the document and the times in a cursor of a version. Raises InvalidInput for any other text."""
    try:
        document, since, ended_at = json.loads(cursor)
    except (ValueError, TypeError):
        document = since = ended_at = None
    if isinstance(document, str) and isinstance(since, str) and isinstance(ended_at, str):
        return document, since, ended_at
    raise InvalidInput(f"{cursor[:80]!r} is not a cursor of versions.", remedy="Give that of the page before, or none.")


def _version(row: Row[Any]) -> EarlierVersion:
    return EarlierVersion(
        document_id=row.document,
        title=row.title,
        since=row.since,
        ended_at=row.ended_at,
        is_removed=bool(row.is_removed),
        holds_from=row.starts,
        holds_until=row.ends,
        n_chunks=row.n_chunks,
    )


def _rewind_to(connection: Connection, as_of: str) -> Rewind:
    earlier: dict[str, list[Row[Any]]] = {}
    for row in connection.execute(_TIMES):
        earlier.setdefault(row.document, []).append(row)
    live = {row.id: row for row in _DOCUMENTS.rows(connection, sorted(earlier))}
    restore, remove = list[int](), list[str]()
    for document, rows in earlier.items():
        times = [_times(row) for row in rows]
        now = live.get(document)
        if now is not None:
            metadata = metadata_from_json(now.metadata)
            times.append(VersionTimes(since=now.since, start=stated_start(metadata), end=stated_end(metadata)))
        holding = version_at(times, as_of)
        if holding is not None and holding < len(rows):
            restore.append(rows[holding].rid)
        elif holding is None and now is not None and holds_at(now.holds_from, now.holds_until, as_of):
            remove.append(document)
    return Rewind(restore=tuple(sorted(restore)), remove=tuple(sorted(remove)))


def _times(row: Row[Any]) -> VersionTimes:
    return VersionTimes(
        since=row.since, ended_at=row.ended_at, is_removed=bool(row.is_removed), start=row.starts, end=row.ends
    )


def records(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield what earlier versions said, with their times, as the dump shows it."""
    columns = _v.document, _v.since, _v.ended_at, _v.is_removed, _v.payload
    query = select(*columns).order_by(_v.document, _v.since, _v.ended_at, _v.is_removed, _v.payload)
    for row in connection.execute(query, execution_options={"yield_per": 100}):
        record = {name: value for name, value in row._asdict().items() if name != "payload"}
        facts = asdict(_decode(row.payload))
        yield {**record, "is_removed": bool(row.is_removed), **{n: v for n, v in facts.items() if n != "id"}}


def differences(connection: Connection) -> Iterator[str]:
    """Yield the earlier versions whose columns differ from what they hold, or whose texts differ from their hashes."""
    for row in connection.execute(select(earlier_version), execution_options={"yield_per": 100}):
        facts = _decode(row.payload)
        name = f"the version of {row.document!r} that ended at {row.ended_at}"
        columns = facts.id, facts.title, len(facts.chunks), stated_start(facts.metadata), stated_end(facts.metadata)
        if columns != (row.document, row.title, row.n_chunks, row.starts, row.ends) or row.since > row.ended_at:
            yield f"{name}: its columns differ from what it holds"
        if any(digest(chunk.chunk.text) != chunk.chunk.text_hash for chunk in facts.chunks):
            yield f"{name}: a text differs from its hash"
