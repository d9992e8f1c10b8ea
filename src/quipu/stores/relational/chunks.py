"""Documents, what they keep, chunks and their sentences: read by id, searched by text, and sentences written.

`documents.py` writes documents and chunks.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, bindparam, func, or_, select

from quipu.errors import Corrupt
from quipu.model.delta import ChunkSentences
from quipu.model.derivation import SENTENCES
from quipu.model.document import Document, DocumentListing, DocumentOrder, DocumentStatus
from quipu.model.graph import Chunk
from quipu.ports.derivation_view import DerivationCounts, Sentence
from quipu.ports.store import VectorSpace
from quipu.stores.relational import change_log
from quipu.stores.relational import schema as s
from quipu.stores.relational.documents import ORIGINAL_KIND, PART_BYTES, TEXT_KIND
from quipu.stores.relational.snapshot import (
    ALLOWED_DOCUMENT,
    MAX_CACHED_CHUNKS,
    Lookup,
    Snapshot,
    cached_values,
    check_rows,
    in_order,
)
from quipu.stores.relational.sql import (
    ByValues,
    insert_rows,
    metadata_from_json,
    next_rid,
    read_number,
    texts_from_json,
    write_meta,
)
from quipu.stores.relational.vector_writes import VectorChanges, n_waiting, vector_hash
from quipu.text.formatting import format_count
from quipu.text.sentences import sentence_spans

_SAMPLE_SIZE = 100  # chunks split to estimate the number of sentences in all chunks not split yet
_SPACES = "".join(character for character in map(chr, range(0x3001)) if character.isspace())
_MAX_INT = 2**63 - 1
_SPLIT_TO = "sentences to"  # every chunk up to this row id is split, so a search for others starts behind it

_c, _d, _s, _j = s.chunk.c, s.document.c, s.sentence.c, s.job.c
_k, _p = s.document_content.c, s.content_part.c
_CHUNK = select(s.chunk, _d.id.label("document_id"), _d.title).join(s.document, _d.rid == _c.document)
_CHUNKS = Lookup(_CHUNK, _c.id, stated_in=_c.rid)
_DOCUMENT_CHUNKS = Lookup(_CHUNK, _d.id, stated_in=_c.rid)
_SOME_CHUNKS = Lookup(
    _CHUNK.where(_c.ordinal >= bindparam("start"), _c.ordinal < bindparam("end")), _d.id, stated_in=_c.rid
)
_near = s.chunk.alias()
_is_near = (_near.c.document == _c.document) & _c.ordinal.between(_near.c.ordinal - 1, _near.c.ordinal + 1)
_NEIGHBOURS = Lookup(_CHUNK.join(_near, _is_near), _near.c.id, stated_in=_c.rid)
_RIDS = Lookup(select(_c.id, _c.rid), _c.id, stated_in=_c.rid)
_IDS = Lookup(select(_c.rid, _c.id), _c.rid, stated_in=_c.rid)
_TEXTS = Lookup(select(_c.rid, _c.id, _c.text), _c.id, stated_in=_c.rid)
_TEXTS_BY_RID = ByValues(select(_c.rid, _c.text), _c.rid)
_CHUNKS_BY_ID = ByValues(select(_c.id, _c.rid, _c.text), _c.id)
_SENTENCES = ByValues(select(s.sentence), _s.chunk)
_SPANS = {
    table: ByValues(select(table.c.rid, table.c.chunk, table.c.start_char, table.c.end_char), table.c.rid)
    for table in (s.sentence, s.question)
}
_HASHES = ByValues(select(_s.vector_hash), _s.chunk)
_DROP = ByValues(s.sentence.delete(), _s.chunk)
_is_unsplit = (
    (_c.rid > bindparam("split_to"))
    & ~select(1).where(_s.chunk == _c.rid).exists()
    & (func.trim(_c.text, _SPACES) != "")
)
_UNSPLIT = select(_c.id).where(_is_unsplit).order_by(_c.rid)
_FIRST_UNSPLIT = select(_c.rid).where(_is_unsplit).order_by(_c.rid).limit(1)
_N_UNSPLIT = select(func.count()).where(_is_unsplit)
_LAST_CHUNK = select(func.max(_c.rid))
_NUMBERED = select(_c.rid, func.row_number().over(order_by=_c.rid).label("place")).where(_is_unsplit).subquery()
# A sample from all over the index, because documents are written in different styles.
_SAMPLE = select(_c.text).join(_NUMBERED, _NUMBERED.c.rid == _c.rid).where(_NUMBERED.c.place % bindparam("step") == 0)


def _hash_of(kind: str, label: str) -> Any:
    """Return the column of the hash of what a document keeps."""
    content_hash = select(_k.hash).where(_k.document == _d.rid, _k.kind == kind)
    return func.coalesce(content_hash.scalar_subquery(), "").label(label)


_ERRORS = select(_c.error).where(_c.document == _d.rid, _c.error != "")
_LIVE = select(
    s.document,
    select(func.count()).where(_c.document == _d.rid).scalar_subquery().label("n_chunks"),
    select(func.count()).where(_c.document == _d.rid, _c.error != "").scalar_subquery().label("n_failed"),
    _ERRORS.order_by(_c.ordinal).limit(1).scalar_subquery().label("chunk_error"),
    _hash_of(TEXT_KIND, "text_hash"),
    _hash_of(ORIGINAL_KIND, "original_hash"),
)
_VISIBLE = _LIVE.where(_d.rid.in_(select(ALLOWED_DOCUMENT.c.rid)))
_is_shown = _j.status != DocumentStatus.PARTIAL
_SHOWN = select(*(column for column in _j if column.name not in ("data", "rid", "chunking"))).where(_is_shown)
_SOME_LIVE, _SOME_VISIBLE = ByValues(_LIVE, _d.id), ByValues(_VISIBLE, _d.id)
_SOME_SHOWN = ByValues(_SHOWN, _j.document)


def documents(
    snapshot: Snapshot, ids: Sequence[str] | None = None, listing: DocumentListing | None = None
) -> list[Document]:
    """Return live and queued documents; one that is both is the live document with the status of its job."""
    if ids is None and listing is not None:
        ids = _listed_ids(snapshot, listing)

    def read(every: Select[Any], some: ByValues) -> Sequence[Row[Any]]:
        connection = snapshot.connection
        return connection.execute(every).all() if ids is None else some.rows(connection, sorted(set(ids)))

    rows = check_rows(s.document, read(_VISIBLE, _SOME_VISIBLE) if snapshot.is_filtered else read(_LIVE, _SOME_LIVE))
    jobs = {job.document: job for job in ([] if snapshot.is_filtered else read(_SHOWN, _SOME_SHOWN))}
    document_by_id = {row.id: _document(row, jobs.pop(row.id, None)) for row in rows}
    document_by_id.update({document_id: _queued_document(job) for document_id, job in jobs.items()})
    ordered = sorted(document_by_id) if ids is None else ids
    return [document_by_id[document_id] for document_id in ordered if document_id in document_by_id]


def content(snapshot: Snapshot, content_hash: str, start: int = 0, n: int | None = None) -> bytes | None:
    """Return `n` bytes, or all, of a kept content from `start`; None if no visible document keeps it."""
    uses = select(_k.document).where(_k.hash == content_hash)
    if snapshot.is_filtered:
        uses = uses.where(_k.document.in_(select(ALLOWED_DOCUMENT.c.rid)))
    if snapshot.connection.execute(uses.limit(1)).first() is None:
        return None
    first = start // PART_BYTES
    parts = select(_p.data).where(_p.hash == content_hash, _p.ordinal >= first).order_by(_p.ordinal)
    if n is not None:
        parts = parts.where(_p.ordinal * PART_BYTES < start + n)
    try:
        inflated = b"".join(zlib.decompress(part) for part in snapshot.connection.execute(parts).scalars())
    except zlib.error as error:
        raise Corrupt(
            f"The content {content_hash} is damaged.",
            remedy="Restore the index from a copy, or remove its documents and add them again.",
        ) from error
    offset = start - first * PART_BYTES
    return inflated[offset : None if n is None else offset + n]


def _listed_ids(snapshot: Snapshot, listing: DocumentListing) -> list[str]:
    """Return the ids of a page of a listing: the first of the live documents and of those that only a job has."""
    is_live = select(1).where(_d.id == _j.document).exists()
    status: ColumnElement[str] = _d.status
    live = select(_d.id)
    if snapshot.is_filtered:
        live = live.where(_d.rid.in_(select(ALLOWED_DOCUMENT.c.rid)))
    else:
        job = select(_j.status).where(_j.document == _d.id, _is_shown).scalar_subquery()
        status = func.coalesce(job, _d.status)
    if listing.text_hashes:
        with_text = select(_k.document).where(_k.hash.in_(listing.text_hashes), _k.kind == TEXT_KIND)
        live = live.where(_d.rid.in_(with_text), _d.id.not_in(listing.without))
    pages = [_first_listed(live, (_d.id, _d.title, _d.source, _d.updated_at), status, listing)]
    if not (snapshot.is_filtered or listing.text_hashes):
        queued = select(_j.document.label("id")).where(_is_shown, ~is_live)
        pages.append(_first_listed(queued, (_j.document, _j.title, _j.source, _j.added_at), _j.status, listing))
    rows = [row for page in pages for row in snapshot.connection.execute(page)]
    rows.sort(key=lambda row: row.id)
    if listing.order is not DocumentOrder.ID:
        rows.sort(key=lambda row: row.value, reverse=listing.order is DocumentOrder.UPDATED)
    return [row.id for row in rows[: listing.k]]


def _first_listed(
    query: Select[Any], columns: tuple[Any, Any, Any, Any], status: Any, listing: DocumentListing
) -> Select[Any]:
    """Return a query of the first k documents of a listing with the values that order them, from one kind of row."""
    document_id, title, source, updated_at = columns
    value = {DocumentOrder.TITLE: title, DocumentOrder.UPDATED: updated_at}.get(listing.order, document_id)
    query = query.add_columns(value.label("value"))
    if listing.statuses:
        query = query.where(status.in_([str(name) for name in listing.statuses]))
    if listing.prefix:
        query = query.where(
            or_(*(column.startswith(listing.prefix, autoescape=True) for column in (document_id, title, source)))
        )
    is_descending = listing.order is DocumentOrder.UPDATED
    if listing.after and (place := listing.place_after()):
        last, last_id = place
        is_later = value < last if is_descending else value > last
        query = query.where(or_(is_later, and_(value == last, document_id > last_id)))
    query = query.order_by(value.desc() if is_descending else value, document_id)
    return query if listing.k is None else query.limit(listing.k)


def chunks(
    snapshot: Snapshot,
    ids: Sequence[str] = (),
    *,
    document_id: str | None = None,
    start: int = 0,
    n_first: int | None = None,
    with_neighbours: bool = False,
) -> list[Chunk]:
    """Return these chunks in the given order, or the chunks of a document in order; neighbours follow, in order."""
    if with_neighbours:
        rows = check_rows(s.chunk, _NEIGHBOURS.records(snapshot, sorted(set(ids))))
        near = {row.id: _chunk(row) for row in rows}
        neighbours = (chunk for chunk_id, chunk in near.items() if chunk_id not in ids)
        in_place = sorted(neighbours, key=lambda chunk: (chunk.document_id, chunk.ordinal))
        return [*(near[chunk_id] for chunk_id in ids if chunk_id in near), *in_place]
    if document_id is not None:
        if n_first is None and not start:
            rows = _DOCUMENT_CHUNKS.records(snapshot, [document_id])
        else:
            end = _MAX_INT if n_first is None else start + n_first
            rows = _SOME_CHUNKS.records(snapshot, [document_id], start=start, end=end)
        return [_chunk(row) for row in sorted(check_rows(s.chunk, rows), key=lambda row: row.ordinal)]

    def read(missing: Sequence[str]) -> dict[str, Chunk]:
        return {row.id: _chunk(row) for row in check_rows(s.chunk, _CHUNKS.records(snapshot, sorted(missing)))}

    chunk_by_id = cached_values(snapshot.cache.chunks, set(ids), read, MAX_CACHED_CHUNKS)
    return [chunk_by_id[chunk_id] for chunk_id in ids if chunk_id in chunk_by_id]


def chunk_numbers(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, int]:
    """Return the number of each of these chunks: its row id, by which arrays outside the database know it."""
    return in_order(_RIDS.mapping(snapshot, snapshot.cache.chunk_numbers, set(ids)), ids)


def chunk_ids(snapshot: Snapshot, numbers: Collection[int]) -> dict[int, str]:
    """Return the id of each of these chunk numbers."""
    id_by_rid = _IDS.mapping(snapshot, snapshot.cache.chunk_ids, set(numbers))
    rid_by_id = {chunk_id: rid for rid, chunk_id in id_by_rid.items()}
    cached_values(snapshot.cache.chunk_numbers, rid_by_id, lambda _: rid_by_id)  # they are asked for next
    return in_order(id_by_rid, numbers)


def sentences(snapshot: Snapshot, chunk_ids: Sequence[str]) -> dict[str, list[Sentence]]:
    """Return the sentences of these chunks, in order; a chunk that is not split yet has none."""
    chunk_by_rid = {rid: (chunk_id, text) for rid, chunk_id, text in _TEXTS.rows(snapshot, sorted(set(chunk_ids)))}
    sentences_by_chunk: dict[str, list[Sentence]] = {}
    rows = check_rows(s.sentence, _SENTENCES.rows(snapshot.connection, sorted(chunk_by_rid)))
    for row in sorted(rows, key=lambda row: (row.chunk, row.ordinal)):
        chunk_id, text = chunk_by_rid[row.chunk]
        start, end = row.start_char, row.end_char
        sentence = Sentence(chunk=chunk_id, ordinal=row.ordinal, start=start, end=end, text=text[start:end])
        sentences_by_chunk.setdefault(chunk_id, []).append(sentence)
    return in_order(sentences_by_chunk, chunk_ids)


def unsplit_chunks(snapshot: Snapshot, limit: int | None) -> list[str]:
    """Return up to `limit` chunks that are not split into sentences yet, the oldest first."""
    rows = snapshot.connection.execute(_UNSPLIT.limit(limit), _split_to(snapshot.connection))
    return list(rows.scalars())


def sentence_counts(snapshot: Snapshot) -> DerivationCounts:
    """Count sentences, chunks not split yet, and (estimated) the sentences that need a vector."""
    n_sentences = snapshot.connection.scalar(select(func.count()).select_from(s.sentence)) or 0
    n_unsplit = snapshot.connection.scalar(_N_UNSPLIT, _split_to(snapshot.connection)) or 0
    n_texts = n_waiting(snapshot.connection, VectorSpace.SENTENCE) + _estimate_sentences(snapshot.connection, n_unsplit)
    is_kept = change_log.is_derived(snapshot.connection, SENTENCES)
    return DerivationCounts(n_items=n_sentences if is_kept else 0, n_stale=n_unsplit, n_texts=n_texts)


def span_texts(connection: Connection, table: Table, rids: Sequence[int]) -> Mapping[int, str]:
    """Return the text of each of these sentences or questions, the rows of `table`, by row id."""
    spans = _SPANS[table].rows(connection, rids)
    texts: dict[int, str] = dict(map(tuple, _TEXTS_BY_RID.rows(connection, sorted({span.chunk for span in spans}))))
    return {rid: texts[chunk][start:end] for rid, chunk, start, end in spans if chunk in texts}


def write_sentences(connection: Connection, split_chunks: Sequence[ChunkSentences]) -> VectorChanges:
    """Replace the sentences of these chunks and return the changed vectors. Chunks that no longer exist are skipped."""
    chunk_by_id = {row.id: row for row in _CHUNKS_BY_ID.rows(connection, [split.chunk for split in split_chunks])}
    vectors = _drop_sentences(connection, [chunk.rid for chunk in chunk_by_id.values()])
    first_rid = next_rid(connection, s.sentence)
    rows: list[dict[str, Any]] = []
    for split in split_chunks:
        for ordinal, (start, end) in enumerate(split.spans if split.chunk in chunk_by_id else ()):
            chunk = chunk_by_id[split.chunk]
            text_hash = vector_hash(VectorSpace.SENTENCE, chunk.text[start:end])
            vectors.moved(VectorSpace.SENTENCE, "", text_hash)
            span = {"start_char": start, "end_char": end, "vector_hash": text_hash}
            rows.append({"rid": first_rid + len(rows), "chunk": chunk.rid, "ordinal": ordinal, **span})
    insert_rows(connection, s.sentence, rows)
    first_unsplit = connection.scalar(_FIRST_UNSPLIT, _split_to(connection))
    write_meta(connection, _SPLIT_TO, _last_chunk(connection) if first_unsplit is None else first_unsplit - 1)
    return vectors


def drop_sentences_of_removed(connection: Connection, chunks: Sequence[int]) -> VectorChanges:
    """Drop the sentences of removed chunks. Later chunks may reuse row ids behind the last chunk."""
    vectors = _drop_sentences(connection, chunks)
    if chunks:
        split_to = read_number(connection, _SPLIT_TO)
        if split_to and (last := _last_chunk(connection)) < split_to:
            write_meta(connection, _SPLIT_TO, last)
    return vectors


def _drop_sentences(connection: Connection, chunks: Sequence[int]) -> VectorChanges:
    """Drop the sentences of these chunks, given by row id."""
    vectors = VectorChanges()
    for (text_hash,) in _HASHES.rows(connection, chunks):
        vectors.moved(VectorSpace.SENTENCE, text_hash, "")
    _DROP.run(connection, chunks)
    return vectors


def restart_sentences(connection: Connection) -> None:
    """Record that no chunk is split."""
    write_meta(connection, _SPLIT_TO, 0)


def wrongly_split(connection: Connection) -> list[int]:
    """Return the row ids of chunks that count as split but have no sentences."""
    query = select(_c.rid).where(_is_unsplit, _c.rid <= read_number(connection, _SPLIT_TO)).order_by(_c.rid)
    return list(connection.execute(query, {"split_to": -1}).scalars())


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
        error=job.error if job else _chunk_errors(row),
        added_at=row.added_at,
        updated_at=row.updated_at,
        text_hash=row.text_hash,
        original_hash=row.original_hash,
        holds_from=row.holds_from,
        holds_until=row.holds_until,
    )


def _chunk_errors(row: Row[Any]) -> str:
    """Return the error of a document some of whose chunks could not be read."""
    if not row.n_failed:
        return ""
    first = ", the first" if row.n_failed > 1 else ""
    return f"{row.n_failed:,} of {format_count(row.n_chunks, 'chunk')} could not be read{first}: {row.chunk_error}"


def _queued_document(job: Row[Any]) -> Document:
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


def _estimate_sentences(connection: Connection, n_unsplit: int) -> int:
    """Return about how many sentences the chunks that are not split yet have, judged from a sample."""
    if not n_unsplit:
        return 0
    step = {"step": max(1, n_unsplit // _SAMPLE_SIZE)}
    sample = connection.execute(_SAMPLE, _split_to(connection) | step).scalars().all()
    return round(sum(len(sentence_spans(text)) for text in sample) / len(sample) * n_unsplit)


def _split_to(connection: Connection) -> dict[str, int]:
    return {"split_to": read_number(connection, _SPLIT_TO)}


def _last_chunk(connection: Connection) -> int:
    return connection.scalar(_LAST_CHUNK) or 0
