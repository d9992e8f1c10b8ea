"""Sentences in tables: where the sentences of each chunk begin and end, and the vectors they want."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from quipu.model.delta import ChunkSentences
from quipu.model.derivation import SENTENCES
from quipu.ports.derivation_view import DerivationCounts, Sentence
from quipu.ports.store import VectorSpace
from quipu.stores.relational import change_log
from quipu.stores.relational import schema as s
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import ByValues, insert_rows, next_rid, read_number, write_meta
from quipu.stores.relational.vector_writes import VectorChanges, n_waiting, vector_hash
from quipu.text.sentences import sentence_spans

_SAMPLE = 100  # chunks that are divided to tell how many sentences those will have that are not divided yet
_SPACES = "".join(character for character in map(chr, range(0x3001)) if character.isspace())

_s, _c = s.sentence.c, s.chunk.c
_CHUNKS = Lookup(select(_c.rid, _c.id, _c.text), _c.id, said_in=_c.rid)
_TEXTS = ByValues(select(_c.rid, _c.text), _c.rid)
_RIDS = ByValues(select(_c.id, _c.rid, _c.text), _c.id)
_OF = ByValues(select(_s.chunk, _s.ordinal, _s.start_char, _s.end_char), _s.chunk)
_PLACES = ByValues(select(_s.rid, _s.chunk, _s.start_char, _s.end_char), _s.rid)
_HASHES = ByValues(select(_s.vector_hash), _s.chunk)
_DROP = ByValues(s.sentence.delete(), _s.chunk)
# Every chunk up to this row is divided: who looks for those that are not looks at none of these.
_DIVIDED_TO = "sentences to"
_is_undivided = (
    (_c.rid > bindparam("divided_to"))
    & ~select(1).where(_s.chunk == _c.rid).exists()
    & (func.trim(_c.text, _SPACES) != "")
)
_UNDIVIDED = select(_c.id).where(_is_undivided).order_by(_c.rid)
_FIRST_UNDIVIDED = select(_c.rid).where(_is_undivided).order_by(_c.rid).limit(1)
_LAST_CHUNK = select(func.max(_c.rid))
_PLACED = select(_c.rid, func.row_number().over(order_by=_c.rid).label("place")).where(_is_undivided).subquery()
# From all over the index: documents are written in different ways.
_SAMPLED = select(_c.text).join(_PLACED, _PLACED.c.rid == _c.rid).where(_PLACED.c.place % bindparam("step") == 0)
_N_UNDIVIDED = select(func.count()).where(_is_undivided)


def read(snapshot: Snapshot, chunk_ids: Sequence[str]) -> dict[str, list[Sentence]]:
    """Return the sentences of these chunks, in order; of chunks not divided yet, nothing."""
    chunks = {rid: (chunk, text) for rid, chunk, text in _CHUNKS.rows(snapshot, sorted(set(chunk_ids)))}
    found: dict[str, list[Sentence]] = {}
    for rid, ordinal, start, end in sorted(map(tuple, _OF.rows(snapshot.connection, sorted(chunks)))):
        chunk, text = chunks[rid]
        sentence = Sentence(chunk=chunk, ordinal=ordinal, start=start, end=end, text=text[start:end])
        found.setdefault(chunk, []).append(sentence)
    return {chunk: found[chunk] for chunk in chunk_ids if chunk in found}


def undivided(snapshot: Snapshot, limit: int) -> list[str]:
    """Return chunks whose sentences are not known yet, the oldest first."""
    return list(snapshot.connection.execute(_UNDIVIDED.limit(limit), _from(snapshot.connection)).scalars())


def texts(connection: Connection, rids: Sequence[int]) -> Mapping[int, str]:
    """Return the words of each of these sentences, by row."""
    places = _PLACES.rows(connection, rids)
    text_by_chunk: dict[int, str] = dict(map(tuple, _TEXTS.rows(connection, sorted({row.chunk for row in places}))))
    known = (place for place in places if place.chunk in text_by_chunk)
    return {rid: text_by_chunk[chunk][start:end] for rid, chunk, start, end in known}


def write(connection: Connection, divided: Sequence[ChunkSentences]) -> VectorChanges:
    """Put sentences in place of those these chunks had; chunks that are gone are left out. Return what that changes."""
    vectors = VectorChanges()
    chunks = {row.id: row for row in _RIDS.rows(connection, [each.chunk for each in divided])}
    drop(connection, [row.rid for row in chunks.values()], vectors)
    rid = next_rid(connection, s.sentence)
    rows: list[dict[str, Any]] = []
    for each in divided:
        for ordinal, (start, end) in enumerate(each.spans if each.chunk in chunks else ()):
            chunk = chunks[each.chunk]
            wanted = vector_hash(VectorSpace.SENTENCE, chunk.text[start:end])
            vectors.moved(VectorSpace.SENTENCE, "", wanted)
            place = {"start_char": start, "end_char": end, "vector_hash": wanted}
            rows.append({"rid": rid + len(rows), "chunk": chunk.rid, "ordinal": ordinal, **place})
    insert_rows(connection, s.sentence, rows)
    first = connection.scalar(_FIRST_UNDIVIDED, _from(connection))
    write_meta(connection, _DIVIDED_TO, _last_chunk(connection) if first is None else first - 1)
    return vectors


def drop(connection: Connection, chunks: Sequence[int], vectors: VectorChanges) -> None:
    """Drop the sentences of these chunks."""
    for (text_hash,) in _HASHES.rows(connection, chunks):
        vectors.moved(VectorSpace.SENTENCE, text_hash, "")
    _DROP.run(connection, chunks)


def forget(connection: Connection, chunks: Sequence[int], vectors: VectorChanges) -> None:
    """Drop the sentences of chunks that have gone: rows beyond the last may be those of other chunks later."""
    if chunks:
        drop(connection, chunks, vectors)
        divided_to = read_number(connection, _DIVIDED_TO)
        if divided_to and (last := _last_chunk(connection)) < divided_to:
            write_meta(connection, _DIVIDED_TO, last)


def restart(connection: Connection) -> None:
    """Note that no chunk is divided."""
    write_meta(connection, _DIVIDED_TO, 0)


def skipped(connection: Connection) -> list[int]:
    """Return the rows of chunks that are taken for divided and are not."""
    is_taken = select(_c.rid).where(_is_undivided, _c.rid <= read_number(connection, _DIVIDED_TO)).order_by(_c.rid)
    return list(connection.execute(is_taken, {"divided_to": -1}).scalars())


def held(snapshot: Snapshot) -> DerivationCounts:
    """Return how many sentences there are, in how many chunks they are not known, and about what is to be embedded."""
    n_sentences = snapshot.connection.scalar(select(func.count()).select_from(s.sentence)) or 0
    n_undivided = snapshot.connection.scalar(_N_UNDIVIDED, _from(snapshot.connection)) or 0
    n_texts = n_waiting(snapshot.connection, VectorSpace.SENTENCE) + _n_expected(snapshot.connection, n_undivided)
    is_kept = change_log.is_derived(snapshot.connection, SENTENCES)
    return DerivationCounts(n_items=n_sentences if is_kept else 0, n_stale=n_undivided, n_texts=n_texts)


def _n_expected(connection: Connection, n_undivided: int) -> int:
    """Return about how many sentences the chunks that are not divided have, from a sample of them."""
    if not n_undivided:
        return 0
    step = {"step": max(1, n_undivided // _SAMPLE)}
    sample = connection.execute(_SAMPLED, _from(connection) | step).scalars().all()
    return round(sum(len(sentence_spans(text)) for text in sample) / len(sample) * n_undivided)


def _from(connection: Connection) -> dict[str, int]:
    return {"divided_to": read_number(connection, _DIVIDED_TO)}


def _last_chunk(connection: Connection) -> int:
    return connection.scalar(_LAST_CHUNK) or 0
