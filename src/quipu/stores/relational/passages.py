"""Reading documents and chunks of a snapshot, and searching their text."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, func, select

from quipu.model.document import Document, DocumentStatus
from quipu.model.evidence import Scored
from quipu.model.graph import Chunk
from quipu.stores.relational import schema as s
from quipu.stores.relational.filters import ALLOWED_DOCUMENT
from quipu.stores.relational.jobs import metadata_from_json
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import select_in, texts_from_json
from quipu.text.formatting import format_count

_HIDDEN_JOBS = (DocumentStatus.PARTIAL,)
_N_CHUNKS = select(func.count()).select_from(s.chunk)
_CHUNK = select(s.chunk, s.document.c.id.label("document_id"), s.document.c.title).join(
    s.document, s.document.c.rid == s.chunk.c.document
)
_CHUNKS = Lookup(_CHUNK, s.chunk.c.id, said_in=s.chunk.c.rid)
_DOCUMENT_CHUNKS = Lookup(_CHUNK, s.document.c.id, said_in=s.chunk.c.rid)


def n_chunks(snapshot: Snapshot) -> int:
    """Return how many chunks the whole index holds."""
    return snapshot.connection.scalar(_N_CHUNKS) or 0


def documents(snapshot: Snapshot, ids: Sequence[str] | None) -> list[Document]:
    """Return documents, live or on their way; where both, the live one with the status of its job."""
    d, j = s.document.c, s.job.c
    n_chunks = select(func.count()).where(s.chunk.c.document == d.rid).scalar_subquery()
    n_failed = select(func.count()).where(s.chunk.c.document == d.rid, s.chunk.c.error != "").scalar_subquery()
    failed = select(s.chunk.c.error).where(s.chunk.c.document == d.rid, s.chunk.c.error != "")
    error = failed.order_by(s.chunk.c.ordinal).limit(1).scalar_subquery()
    live = select(s.document, n_chunks.label("n_chunks"), n_failed.label("n_failed"), error.label("chunk_error"))
    if snapshot.is_filtered:
        live = live.where(d.rid.in_(select(ALLOWED_DOCUMENT.c.rid)))
    waiting = select(j.document, j.status, j.title, j.source, j.media_type, j.metadata, j.error, j.added_at).where(
        j.status.not_in(_HIDDEN_JOBS)
    )
    live_rows = _chosen(snapshot, live, d.id, ids)
    jobs = {} if snapshot.is_filtered else {row.document: row for row in _chosen(snapshot, waiting, j.document, ids)}
    found = {row.id: _document(row, jobs.pop(row.id, None)) for row in live_rows}
    found.update({document_id: _waiting_document(row) for document_id, row in jobs.items()})
    return [found[document_id] for document_id in (sorted(found) if ids is None else ids) if document_id in found]


def chunks(snapshot: Snapshot, ids: Sequence[str]) -> list[Chunk]:
    """Return chunks in the order asked for."""
    rows = _CHUNKS.records(snapshot, sorted(set(ids)))
    found = {row.id: _chunk(row) for row in rows}
    return [found[chunk_id] for chunk_id in ids if chunk_id in found]


def document_chunks(snapshot: Snapshot, document_id: str) -> list[Chunk]:
    """Return a document's chunks in order."""
    rows = _DOCUMENT_CHUNKS.records(snapshot, [document_id])
    return [_chunk(row) for row in sorted(rows, key=lambda row: row.ordinal)]


def full_text(snapshot: Snapshot, text: str, k: int) -> list[Scored]:
    """Return the chunks that match the words of `text` best."""
    found = snapshot.backend.search_text(
        snapshot.connection, snapshot.analyzer.query_terms(text), k, is_filtered=snapshot.is_filtered
    )
    return [Scored(id=chunk_id, score=score) for chunk_id, score in found]


def _chosen(snapshot: Snapshot, query: Select[Any], column: Any, ids: Sequence[str] | None) -> Sequence[Row[Any]]:
    if ids is None:
        return snapshot.connection.execute(query).all()
    return select_in(snapshot.connection, query, column, sorted(set(ids)))


def _document(row: Row[Any], job: Row[Any] | None) -> Document:
    return Document(
        id=row.id,
        title=row.title,
        status=DocumentStatus(job.status if job else row.status),
        source=row.source,
        media_type=row.media_type,
        metadata=metadata_from_json(row.metadata),
        content_hash=row.content_hash,
        version=row.version,
        n_chunks=row.n_chunks,
        n_failed_chunks=row.n_failed,
        error=job.error if job else _error_of_chunks(row),
        added_at=row.added_at,
        updated_at=row.updated_at,
    )


def _error_of_chunks(row: Row[Any]) -> str:
    """Return what is wrong with a document that was read in part."""
    if not row.n_failed:
        return ""
    first = ", the first" if row.n_failed > 1 else ""
    return f"{row.n_failed:,} of {format_count(row.n_chunks, 'chunk')} could not be read{first}: {row.chunk_error}"


def _waiting_document(job: Row[Any]) -> Document:
    return Document(
        id=job.document,
        title=job.title,
        status=DocumentStatus(job.status),
        source=job.source,
        media_type=job.media_type,
        metadata=metadata_from_json(job.metadata),
        error=job.error,
        added_at=job.added_at,
        updated_at=job.added_at,
    )


def _chunk(row: Row[Any]) -> Chunk:
    return Chunk(
        id=row.id,
        document_id=row.document_id,
        title=row.title,
        ordinal=row.ordinal,
        text=row.text,
        start=row.start_char,
        end=row.end_char,
        n_tokens=row.n_tokens,
        text_hash=row.text_hash,
        input_hash=row.input_hash,
        headings=texts_from_json(row.headings),
        page=row.page,
        header=row.header,
        error=row.error,
    )
