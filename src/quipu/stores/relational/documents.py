"""Documents and chunks in tables: publishing a version as the difference from the last one, and removing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from quipu.errors import InvalidDelta
from quipu.model.delta import ChunkFacts, DocumentFacts
from quipu.model.document import DocumentStatus, Metadata, MetadataValue
from quipu.model.graph import Chunk, chunk_text
from quipu.ports.store import VectorSpace
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import ByValues, execute_rows, insert_rows, next_rid, to_json
from quipu.stores.relational.vector_writes import VectorChanges, vector_hash

_BY_ID = ByValues(select(s.document), s.document.c.id)
_CHUNKS = ByValues(select(s.chunk), s.chunk.c.document)
_DROP_CHUNKS = ByValues(s.chunk.delete(), s.chunk.c.rid)
_DROP_CHUNKS_OF = ByValues(s.chunk.delete(), s.chunk.c.document)
_DROP_DOCUMENTS = ByValues(s.document.delete(), s.document.c.rid)
_DROP_METADATA = ByValues(s.metadata_value.delete(), s.metadata_value.c.document)


@dataclass(frozen=True, slots=True)
class ChunkWords:
    """The words of a chunk: by all of them it is found, in its text alone names are."""

    rid: int
    title: str
    header: str
    text: str


@dataclass(slots=True)
class ChunkChanges:
    """Which chunks came, went, are found by other words (before, after), or say something else now."""

    added: list[ChunkWords] = field(default_factory=list)
    removed: list[ChunkWords] = field(default_factory=list)
    reworded: list[tuple[ChunkWords, ChunkWords]] = field(default_factory=list)
    unsaid: list[int] = field(default_factory=list)
    retracted: list[str] = field(default_factory=list)  # documents that no longer say something they said before
    said: list[tuple[int, ChunkFacts]] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)  # that have another place in their document

    def rows(self) -> set[int]:
        """Return the rows of chunks that came, went, moved, are found by other words or say something else."""
        here = {chunk.rid for chunk in (*self.added, *self.removed, *(after for _, after in self.reworded))}
        return here.union(self.unsaid, self.moved, (row for row, _ in self.said))


@dataclass(frozen=True, slots=True)
class _Stamp:
    """When documents are written, and which of them no longer say something they said before."""

    revision: int
    now: str
    retracted: frozenset[str]


def publish(
    connection: Connection,
    documents: Sequence[DocumentFacts],
    changes: ChunkChanges,
    vectors: VectorChanges,
    *,
    revision: int,
    now: str,
) -> None:
    """Put each document in place of its earlier version; chunks that stay as they are cost nothing."""
    _check(documents)
    if not documents:
        return
    known = {row.id: row for row in _BY_ID.rows(connection, [document.id for document in documents])}
    row_by_id = {row.id: row.rid for row in known.values()}
    new = [document.id for document in documents if document.id not in known]
    first = next_rid(connection, s.document)
    row_by_id.update({document_id: first + i for i, document_id in enumerate(new)})
    old_chunks: dict[int, dict[str, Row[Any]]] = {}
    for row in _CHUNKS.rows(connection, [row.rid for row in known.values()]):
        old_chunks.setdefault(row.document, {})[row.id] = row
    next_chunk = next_rid(connection, s.chunk)
    inserted, moved = list[dict[str, Any]](), list[dict[str, Any]]()
    for document in documents:
        rid = row_by_id[document.id]
        old = old_chunks.get(rid, {})
        old_title = known[document.id].title if document.id in known else ""
        n_unsaid = len(changes.unsaid)
        for facts in document.chunks:
            before = old.pop(facts.chunk.id, None)
            row_number = before.rid if before is not None else next_chunk + len(inserted)
            after = {"rid": row_number, "document": rid, **_chunk_row(facts.chunk)}
            words = ChunkWords(row_number, document.title, facts.chunk.header, facts.chunk.text)
            if before is None:
                inserted.append(after)
                changes.added.append(words)
            elif any(getattr(before, column) != value for column, value in after.items()):
                moved.append(after)
            if before is not None and (old_title, before.header) != (words.title, words.header):
                changes.reworded.append((_words(before, old_title), words))
            vectors.moved(VectorSpace.CHUNK, before.vector_hash if before else "", str(after["vector_hash"]))
            _compare(before, facts, row_number, changes)
        for row in old.values():
            _drop(row, old_title, changes, vectors)
        if len(changes.unsaid) > n_unsaid:
            changes.retracted.append(document.id)
    _write_documents(connection, documents, known, row_by_id, _Stamp(revision, now, frozenset(changes.retracted)))
    _DROP_CHUNKS.run(connection, [chunk.rid for chunk in changes.removed])
    insert_rows(connection, s.chunk, inserted)
    _move(connection, moved)


def _check(documents: Sequence[DocumentFacts]) -> None:
    if len({document.id for document in documents}) != len(documents):
        raise InvalidDelta("One change publishes the same document twice.")
    for document in documents:
        chunks = [facts.chunk for facts in document.chunks]
        if len({chunk.id for chunk in chunks}) != len(chunks):
            raise InvalidDelta(f"Two chunks of {document.id!r} have the same id.")
        if foreign := [chunk.id for chunk in chunks if chunk.document_id != document.id]:
            raise InvalidDelta(f"The chunk {foreign[0]} of {document.id!r} belongs to another document.")


def remove(connection: Connection, ids: Sequence[str], changes: ChunkChanges, vectors: VectorChanges) -> None:
    """Take documents out; ids that are not live are left out."""
    title_by_rid = {row.rid: row.title for row in _BY_ID.rows(connection, sorted(set(ids)))}
    rids = list(title_by_rid)
    for chunk in _CHUNKS.rows(connection, rids):
        _drop(chunk, title_by_rid[chunk.document], changes, vectors)
    for drop in (_DROP_CHUNKS_OF, _DROP_METADATA, _DROP_DOCUMENTS):
        drop.run(connection, rids)


def metadata_rows(document: int, metadata: Metadata) -> list[dict[str, Any]]:
    """Return one row a value, as filters compare them: text casefolded, numbers as numbers."""
    rows: list[dict[str, Any]] = []
    for name, value in sorted(metadata.items()):
        values: Sequence[MetadataValue] = value if isinstance(value, tuple) else (value,)
        for ordinal, item in enumerate(values):
            if item is None:
                continue
            number = float(item) if isinstance(item, int | float) and not isinstance(item, bool) else None
            row = {"document": document, "field": name, "ordinal": ordinal, "text": str(item).casefold()}
            rows.append({**row, "number": number})
    return rows


def _write_documents(
    connection: Connection,
    documents: Sequence[DocumentFacts],
    known: Mapping[str, Row[Any]],
    row_by_id: Mapping[str, int],
    stamp: _Stamp,
) -> None:
    rids = [row.rid for row in known.values()]
    _DROP_DOCUMENTS.run(connection, rids)
    _DROP_METADATA.run(connection, rids)
    rows: list[dict[str, Any]] = []
    values: list[dict[str, Any]] = []
    for document in documents:
        before = known.get(document.id)
        stands = before is not None and document.id not in stamp.retracted
        has_failed = any(facts.chunk.error for facts in document.chunks)
        rows.append(
            {
                "rid": row_by_id[document.id],
                "id": document.id,
                "version": before.version + 1 if before else 1,
                "title": document.title,
                "status": DocumentStatus.PARTIAL if has_failed else DocumentStatus.READY,
                "source": document.source,
                "media_type": document.media_type,
                "metadata": to_json(document.metadata),
                "content_hash": document.content_hash,
                "added_at": before.added_at if before else stamp.now,
                "updated_at": stamp.now,
                "stands_since": before.stands_since if before is not None and stands else stamp.revision,
            }
        )
        values += metadata_rows(row_by_id[document.id], document.metadata)
    insert_rows(connection, s.document, rows)
    insert_rows(connection, s.metadata_value, values)


def _chunk_row(chunk: Chunk) -> dict[str, Any]:
    return {
        "id": chunk.id,
        "ordinal": chunk.ordinal,
        "text": chunk.text,
        "start_char": chunk.start,
        "end_char": chunk.end,
        "page": chunk.page,
        "headings": to_json(chunk.headings),
        "header": chunk.header,
        "n_tokens": chunk.n_tokens,
        "text_hash": chunk.text_hash,
        "input_hash": chunk.input_hash,
        "vector_hash": vector_hash(VectorSpace.CHUNK, chunk_text(chunk.title, chunk.header, chunk.text)),
        "error": chunk.error,
    }


def _compare(before: Row[Any] | None, facts: ChunkFacts, row: int, changes: ChunkChanges) -> None:
    """Note what the chunk says where its extractor's input is another, or failed before."""
    if before is not None:
        if before.ordinal != facts.chunk.ordinal:
            changes.moved.append(row)
        if before.input_hash == facts.chunk.input_hash and not before.error and not facts.chunk.error:
            return
        changes.unsaid.append(row)
    changes.said.append((row, facts))


def _drop(row: Row[Any], title: str, changes: ChunkChanges, vectors: VectorChanges) -> None:
    changes.removed.append(_words(row, title))
    changes.unsaid.append(row.rid)
    vectors.moved(VectorSpace.CHUNK, row.vector_hash, "")


def _words(row: Row[Any], title: str) -> ChunkWords:
    return ChunkWords(row.rid, title, row.header, row.text)


def _move(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Update chunks that kept their text but moved, or stand under another title or heading."""
    if rows:
        values: dict[str, Any] = {column: bindparam(f"new_{column}") for column in rows[0] if column != "rid"}
        statement = s.chunk.update().where(s.chunk.c.rid == bindparam("row")).values(values)
        renamed = [{"row": row["rid"], **{f"new_{k}": v for k, v in row.items() if k != "rid"}} for row in rows]
        execute_rows(connection, statement, renamed)
