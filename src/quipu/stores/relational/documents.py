"""Documents, chunks and kept contents: a new version is written as its difference from the last one."""

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from quipu.errors import InvalidDelta
from quipu.model.delta import ChunkFacts, DocumentFacts
from quipu.model.document import DocumentStatus, Metadata, MetadataValue, stated_end, stated_start
from quipu.model.graph import Chunk, chunk_text
from quipu.model.ids import digest_bytes, digest_parts
from quipu.ports.store import VectorSpace
from quipu.stores.relational import schema as s
from quipu.stores.relational.change_log import CommitStamp
from quipu.stores.relational.sql import ByValues, checksum, execute_rows, insert_rows, next_rid, to_json
from quipu.stores.relational.vector_writes import VectorChanges, vector_hash

TEXT_KIND, ORIGINAL_KIND = "t", "o"
PART_BYTES = 262_144
_QUOTED = ("text", "start_char", "end_char", "page", "headings")  # what a citation shows of a chunk
_COMPRESSION = 6  # of zlib, whose default it is
_WORTHWHILE = 0.95  # of the length

_CHUNKS = ByValues(select(s.chunk), s.chunk.c.document)
_DELETE_CHUNKS = ByValues(s.chunk.delete(), s.chunk.c.rid)
_DELETE_DOCUMENTS = ByValues(s.document.delete(), s.document.c.rid)
_CONTENTS = ByValues(select(s.document_content.c.hash), s.document_content.c.document)
_CONTENT_USES = ByValues(select(s.document_content.c.hash).distinct(), s.document_content.c.hash)
_STORED_CONTENTS = ByValues(select(s.content_part.c.hash).where(s.content_part.c.ordinal == 0), s.content_part.c.hash)
_DELETE_CONTENTS = ByValues(s.document_content.delete(), s.document_content.c.document)
_DELETE_PARTS = ByValues(s.content_part.delete(), s.content_part.c.hash)
_DELETE_METADATA = ByValues(s.metadata_value.delete(), s.metadata_value.c.document)


@dataclass(frozen=True, slots=True)
class ChunkWords:
    """The searchable words of a chunk, the first of its document if `is_first`. Links are in the text only."""

    rid: int
    document_id: str
    title: str
    header: str
    text: str
    is_first: bool

    @classmethod
    def of(cls, rid: int, document_id: str, title: str, chunk: Any) -> "ChunkWords":
        """Return those of a chunk or of its row."""
        return cls(rid, document_id, title, chunk.header, chunk.text, chunk.ordinal == 0)


@dataclass(slots=True)
class ChunkChanges:
    """What a change does to chunks.

    `reworded` chunks have other words to search for (before, after). The mentions of `retracted_chunks` are to be
    deleted, and the facts of `stated` chunks to be recorded; a changed chunk is in both.
    """

    added: list[ChunkWords] = field(default_factory=list)
    removed: list[ChunkWords] = field(default_factory=list)
    reworded: list[tuple[ChunkWords, ChunkWords]] = field(default_factory=list)
    reordered: list[int] = field(default_factory=list)  # now in another place of their document
    retracted_chunks: list[int] = field(default_factory=list)
    stated: list[tuple[int, ChunkFacts]] = field(default_factory=list)
    retracting_documents: list[str] = field(default_factory=list)  # published ones with retracted chunks
    outdated_documents: set[int] = field(default_factory=set)  # what quotes them may be wrong, or must not stay
    vectors: VectorChanges = field(default_factory=VectorChanges)

    @property
    def n_unindexed(self) -> int:
        """How many chunks had their words removed from full text."""
        return len(self.removed) + len(self.reworded)

    def rids(self) -> set[int]:
        """Return the rows of all chunks that changed in any way."""
        words = (*self.added, *self.removed, *(after for _, after in self.reworded))
        return {chunk.rid for chunk in words}.union(
            self.retracted_chunks, self.reordered, (rid for rid, _ in self.stated)
        )

    def add(self, facts: ChunkFacts, words: ChunkWords) -> None:
        """Note a new chunk."""
        self.added.append(words)
        self.stated.append((words.rid, facts))

    def update(self, old: Row[Any], old_title: str, facts: ChunkFacts, words: ChunkWords) -> None:
        """Note a chunk that stays. Its mentions are replaced if the extractor's input changed, or if either failed."""
        before = ChunkWords.of(old.rid, words.document_id, old_title, old)
        if before != words:
            self.reworded.append((before, words))
        if old.ordinal != facts.chunk.ordinal:
            self.reordered.append(old.rid)
        if old.input_hash != facts.chunk.input_hash or old.error or facts.chunk.error:
            self.retracted_chunks.append(old.rid)
            self.stated.append((old.rid, facts))

    def remove(self, old: Row[Any], document_id: str, title: str) -> None:
        """Note a chunk that is removed."""
        self.removed.append(ChunkWords.of(old.rid, document_id, title, old))
        self.retracted_chunks.append(old.rid)
        self.vectors.moved(VectorSpace.CHUNK, old.vector_hash, "")


def write(
    connection: Connection,
    publish: Sequence[DocumentFacts],
    remove: Sequence[str],
    live: Mapping[str, Row[Any]],
    stamp: CommitStamp,
) -> ChunkChanges:
    """Replace the earlier versions of published documents and remove others; return what this changes in chunks.

    `live` has the rows of those that exist, by id. Unchanged chunks cost nothing. Unknown ids to remove are ignored.
    """
    changes = ChunkChanges()
    if publish:
        _check(publish)
        old_by_id = {document.id: live[document.id] for document in publish if document.id in live}
        rid_by_id = _document_rids(connection, publish, old_by_id)
        chunk_rows = _compare(connection, publish, old_by_id, rid_by_id, changes)
        _write_documents(connection, publish, old_by_id, rid_by_id, changes.retracting_documents, stamp)
        _write_chunks(connection, chunk_rows, changes)
        _write_contents(connection, publish, old_by_id, rid_by_id)
    removed_by_rid = {live[name].rid: live[name] for name in sorted(set(remove)) if name in live}
    removed = _CHUNKS.rows(connection, removed_by_rid)
    changes.outdated_documents.update(removed_by_rid)
    for row in removed:
        document = removed_by_rid[row.document]
        changes.remove(row, document.id, document.title)
    _DELETE_CHUNKS.run(connection, [row.rid for row in removed])
    _DELETE_METADATA.run(connection, removed_by_rid)
    _drop_contents(connection, removed_by_rid)
    _DELETE_DOCUMENTS.run(connection, removed_by_rid)
    return changes


def _check(documents: Sequence[DocumentFacts]) -> None:
    if len({document.id for document in documents}) != len(documents):
        raise InvalidDelta("One change publishes the same document twice.")
    for document in documents:
        chunks = [facts.chunk for facts in document.chunks]
        if len({chunk.id for chunk in chunks}) != len(chunks):
            raise InvalidDelta(f"Two chunks of {document.id!r} have the same id.")
        texts = (text for chunk in chunks for text in (chunk.text, chunk.header, *chunk.headings))
        if any("\0" in text for text in (document.title, *_texts(document.metadata), *texts)):
            raise InvalidDelta(f"A text of {document.id!r} holds NUL, which not every database can store.")
        if foreign := [chunk.id for chunk in chunks if chunk.document_id != document.id]:
            raise InvalidDelta(f"The chunk {foreign[0]} of {document.id!r} belongs to another document.")
        text = document.text
        if text is not None and any(text[chunk.start : chunk.end] != chunk.text for chunk in chunks):
            raise InvalidDelta(f"A chunk of {document.id!r} does not stand at its offsets in the text.")


def _texts(metadata: Metadata) -> Iterator[str]:
    for name, value in metadata.items():
        yield name
        yield from (str(single) for single in (value if isinstance(value, tuple) else (value,)))


def _document_rids(
    connection: Connection, documents: Sequence[DocumentFacts], old_by_id: Mapping[str, Row[Any]]
) -> dict[str, int]:
    """Return the row number of each document: its old one, or the next free one."""
    new = [document.id for document in documents if document.id not in old_by_id]
    first = next_rid(connection, s.document)
    rid_by_id = {document_id: row.rid for document_id, row in old_by_id.items()}
    return rid_by_id | {document_id: first + i for i, document_id in enumerate(new)}


def _compare(
    connection: Connection,
    documents: Sequence[DocumentFacts],
    old_by_id: Mapping[str, Row[Any]],
    rid_by_id: Mapping[str, int],
    changes: ChunkChanges,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of new chunks and those of changed chunks; note both, and removed chunks, in `changes`."""
    old_chunks: dict[int, dict[str, Row[Any]]] = {}
    for old in _CHUNKS.rows(connection, [row.rid for row in old_by_id.values()]):
        old_chunks.setdefault(old.document, {})[old.id] = old
    first_new = next_rid(connection, s.chunk)
    new_rows, changed_rows = list[dict[str, Any]](), list[dict[str, Any]]()
    for document in documents:
        old_by_chunk = old_chunks.get(rid_by_id[document.id], {})
        old_document = old_by_id.get(document.id)
        old_title = old_document.title if old_document is not None else ""
        if old_document is not None and (old_title, old_document.source) != (document.title, document.source):
            changes.outdated_documents.add(old_document.rid)
        n_retracted = len(changes.retracted_chunks)
        for facts in document.chunks:
            before = old_by_chunk.pop(facts.chunk.id, None)
            rid = before.rid if before is not None else first_new + len(new_rows)
            words = ChunkWords.of(rid, document.id, document.title, facts.chunk)
            row = {"rid": rid, "document": rid_by_id[document.id], **_chunk_row(facts.chunk)}
            changes.vectors.moved(
                VectorSpace.CHUNK, before.vector_hash if before is not None else "", row["vector_hash"]
            )
            if before is None:
                new_rows.append(row)
                changes.add(facts, words)
            else:
                if any(getattr(before, column) != value for column, value in row.items()):
                    changed_rows.append(row)
                if any(getattr(before, column) != row[column] for column in _QUOTED):
                    changes.outdated_documents.add(before.document)
                changes.update(before, old_title, facts, words)
        for old in old_by_chunk.values():
            changes.remove(old, document.id, old_title)
            changes.outdated_documents.add(old.document)
        if len(changes.retracted_chunks) > n_retracted:
            changes.retracting_documents.append(document.id)
    return new_rows, changed_rows


def _write_documents(
    connection: Connection,
    documents: Sequence[DocumentFacts],
    old_by_id: Mapping[str, Row[Any]],
    rid_by_id: Mapping[str, int],
    retracting: Sequence[str],
    stamp: CommitStamp,
) -> None:
    """Replace the document rows. `stands_since` stays if a document retracts nothing, `since` if it says the same."""
    old_rids = [row.rid for row in old_by_id.values()]
    _DELETE_DOCUMENTS.run(connection, old_rids)
    _DELETE_METADATA.run(connection, old_rids)
    rows: list[dict[str, Any]] = []
    values: list[dict[str, Any]] = []
    for document in documents:
        old = old_by_id.get(document.id)
        has_failed = any(facts.chunk.error for facts in document.chunks)
        since = old.since if old is not None and document.id not in stamp.ended else stamp.moment
        rid = rid_by_id[document.id]
        row = {
            "rid": rid,
            "id": document.id,
            "version": old.version + 1 if old else 1,
            "title": document.title,
            "status": DocumentStatus.PARTIAL if has_failed else DocumentStatus.READY,
            "source": document.source,
            "media_type": document.media_type,
            "metadata": to_json(document.metadata),
            "content_hash": document.content_hash,
            "added_at": old.added_at if old else stamp.second,
            "updated_at": stamp.second,
            "stands_since": stamp.revision,
            "since": since,
            "holds_from": stated_start(document.metadata) or since,
            "holds_until": stated_end(document.metadata),
        }
        if old is not None and document.id not in retracting:
            row["stands_since"] = old.stands_since
        rows.append(row)
        values += metadata_rows(rid, document.metadata)
    insert_rows(connection, s.document, rows)
    insert_rows(connection, s.metadata_value, values)


def _write_contents(
    connection: Connection,
    documents: Sequence[DocumentFacts],
    old_by_id: Mapping[str, Row[Any]],
    rid_by_id: Mapping[str, int],
) -> None:
    """Keep the texts and files of documents in place of earlier ones, equal ones once; one is in memory at a time."""
    rows: list[dict[str, Any]] = [
        {"document": rid_by_id[document.id], "kind": kind, "hash": digest_bytes(content)}
        for document in documents
        for kind, content in _contents(document)
    ]
    stored = {row.hash for row in _STORED_CONTENTS.rows(connection, {row["hash"] for row in rows})}
    contents = (content for document in documents for _, content in _contents(document))
    for row, content in zip(rows, contents, strict=True):
        if row["hash"] not in stored:
            _write_parts(connection, row["hash"], content)
            stored.add(row["hash"])
    _drop_contents(connection, [old.rid for old in old_by_id.values()], rows)


def _contents(document: DocumentFacts) -> Iterator[tuple[str, bytes]]:
    if document.text is not None:
        yield TEXT_KIND, document.text.encode("utf-8", "surrogatepass")
    if document.original is not None:
        yield ORIGINAL_KIND, document.original


def _write_parts(connection: Connection, content_hash: str, content: bytes) -> None:
    """Write a content in compressed parts, one after the other; an empty content has one part.

    After a part that compresses badly, as in most PDF files and archives, the others are only wrapped: this takes a
    tenth of the time, during which nobody else can write.
    """
    view, level = memoryview(content), _COMPRESSION
    for ordinal, start in enumerate(range(0, max(1, len(content)), PART_BYTES)):
        raw = view[start : start + PART_BYTES]
        part = zlib.compress(raw, level)
        insert_rows(connection, s.content_part, [{"hash": content_hash, "ordinal": ordinal, "data": part}])
        level = level if len(part) < _WORTHWHILE * len(raw) else 0


def _drop_contents(
    connection: Connection, documents: Collection[int], replacements: Sequence[dict[str, Any]] = ()
) -> None:
    """Drop what these documents keep, or replace it, and the bytes that no document keeps any more."""
    before = {row.hash for row in _CONTENTS.rows(connection, documents)}
    _DELETE_CONTENTS.run(connection, documents)
    insert_rows(connection, s.document_content, replacements)
    used = {row.hash for row in _CONTENT_USES.rows(connection, sorted(before))}
    _DELETE_PARTS.run(connection, sorted(before - used))


def _write_chunks(
    connection: Connection, rows: tuple[list[dict[str, Any]], list[dict[str, Any]]], changes: ChunkChanges
) -> None:
    new_rows, changed_rows = rows
    _DELETE_CHUNKS.run(connection, [chunk.rid for chunk in changes.removed])
    insert_rows(connection, s.chunk, new_rows)
    if changed_rows:
        changed_rows = [{**row, "checksum": checksum(s.chunk, row)} for row in changed_rows]
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in changed_rows[0] if name != "rid"}
        statement = s.chunk.update().where(s.chunk.c.rid == bindparam("new_rid")).values(values)
        execute_rows(connection, statement, [{f"new_{k}": v for k, v in row.items()} for row in changed_rows])


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


def content_differences(connection: Connection) -> Iterator[str]:
    """Compare kept contents with their hashes, with the documents that keep them, and texts with their chunks."""
    k, p = s.document_content.c, s.content_part.c
    uses = connection.execute(
        select(s.document.c.id, k.document, k.kind, k.hash)
        .outerjoin_from(s.document_content, s.document, s.document.c.rid == k.document)
        .order_by(k.document, k.kind)
    ).all()
    stored = set(connection.execute(select(p.hash).distinct()).scalars())
    without = select(s.document.c.id).where(s.document.c.rid.not_in(select(k.document))).limit(10)
    if unused := sorted(stored - {use.hash for use in uses}):
        names = sorted(connection.execute(without).scalars())
        yield from (f"content {content}: no document keeps it, perhaps one of {names}" for content in unused)
    is_intact = {content_hash: _is_intact(connection, content_hash) for content_hash in sorted(stored)}
    for use in uses:
        name = f"document {use.id!r}: its {'text' if use.kind == TEXT_KIND else 'original'}"
        if use.id is None:
            yield f"content {use.hash}: its document is not live"
        elif not is_intact.get(use.hash):
            yield f"{name} {'is damaged' if use.hash in stored else 'is missing'}"
        elif use.kind == TEXT_KIND:
            text = b"".join(_inflated_parts(connection, use.hash)).decode("utf-8", "surrogatepass")
            chunks = _CHUNKS.rows(connection, [use.document])
            if any(text[chunk.start_char : chunk.end_char] != chunk.text for chunk in chunks):
                yield f"{name} does not hold its chunks at their offsets"


def _is_intact(connection: Connection, content_hash: str) -> bool:
    try:
        return digest_parts(_inflated_parts(connection, content_hash)) == content_hash
    except zlib.error:
        return False


def _inflated_parts(connection: Connection, content_hash: str) -> Iterator[bytes]:
    p = s.content_part.c
    ordinals = connection.execute(select(p.ordinal).where(p.hash == content_hash).order_by(p.ordinal)).scalars().all()
    for ordinal in ordinals:  # one query each, so that one part is in memory at a time
        part = connection.scalar(select(p.data).where(p.hash == content_hash, p.ordinal == ordinal))
        yield zlib.decompress(part or b"")


def metadata_rows(document: int, metadata: Metadata) -> list[dict[str, Any]]:
    """Return one row for each metadata value, as filters compare them: text casefolded, numbers as numbers."""
    rows: list[dict[str, Any]] = []
    for name, value in sorted(metadata.items()):
        values: Sequence[MetadataValue] = value if isinstance(value, tuple) else (value,)
        for ordinal, single in enumerate(values):
            if single is None:
                continue
            number = float(single) if isinstance(single, int | float) and not isinstance(single, bool) else None
            row = {"document": document, "field": name, "ordinal": ordinal, "text": str(single).casefold()}
            rows.append({**row, "number": number})
    return rows
