"""Reading the vectors of a snapshot: rows of the live model, who owns them, what is gone."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Select, bindparam, func, select

from quipu.model.ids import relation_id, sentence_id
from quipu.ports.store import VectorBlock, VectorSpace
from quipu.stores.relational import reports
from quipu.stores.relational import schema as s
from quipu.stores.relational.allowed import find
from quipu.stores.relational.allowed_clusters import clusters_within
from quipu.stores.relational.filters import ALLOWED_CHUNK
from quipu.stores.relational.live import IS_LIVE, LIVE
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.memo import arrays_once, remembered
from quipu.stores.relational.rids import relation_rids
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import Ints, as_texts, from_texts, read_number

_ROWS_AT_ONCE = 1_024

_SOURCE, _TARGET = s.entity.alias("source"), s.entity.alias("target")
_c, _e, _r, _v = s.chunk.c, s.entity.c, s.relation.c, s.vector.c
_n, _s, _p = s.entity_name.c, s.sentence.c, s.report.c
_em, _rm = s.entity_mention.c, s.relation_mention.c

_DIMENSION = select(s.model.c.dimension).where(s.model.c.state == "live")
_is_after = _v.model == LIVE, _v.space == bindparam("space"), _v.rid > bindparam("row")
_AFTER = select(_v.rid, _v.data).where(*_is_after).order_by(_v.rid)
_N_AFTER = select(func.count()).select_from(s.vector).where(*_is_after)
_GONE = as_texts(
    select(s.vector_gone.c.rid).where(
        s.vector_gone.c.model == LIVE,
        s.vector_gone.c.space == bindparam("space"),
        s.vector_gone.c.revision > bindparam("revision"),
    )
)


def _owned(hashed: Any, *columns: Any) -> Select[Any]:
    """Return a query of vectors of the live model with their owners, whose text hashes are `hashed`."""
    return select(_v.rid, *columns).join_from(s.vector, hashed.table, (_v.text_hash == hashed) & IS_LIVE)


_relations_owned = (
    _owned(_r.vector_hash, _r.rid, _SOURCE.c.key, _TARGET.c.key)
    .join(_SOURCE, _SOURCE.c.rid == _r.source)
    .join(_TARGET, _TARGET.c.rid == _r.target)
)
_names_owned = _owned(_n.vector_hash, _e.rid, _e.key).join(s.entity, _e.rid == _n.rid)
_sentences_owned = _owned(_s.vector_hash, _s.rid, _c.id, _s.ordinal).join(s.chunk, _c.rid == _s.chunk)
_reports_owned = _owned(_p.vector_hash, _p.rid, s.cluster.c.id).join(s.cluster, s.cluster.c.rid == _p.rid)
_OWNERS = {
    VectorSpace.CHUNK: Lookup(_owned(_c.vector_hash, _c.rid, _c.id), _v.rid, said_in=_c.rid),
    VectorSpace.ENTITY: Lookup(_owned(_e.vector_hash, _e.rid, _e.key), _v.rid),
    VectorSpace.RELATION: Lookup(_relations_owned, _v.rid),
    VectorSpace.NAME: Lookup(_names_owned, _v.rid),
    VectorSpace.SENTENCE: Lookup(_sentences_owned, _v.rid, said_in=_s.chunk),
    VectorSpace.REPORT: Lookup(_reports_owned, _v.rid),
}
_CHUNK_ROWS = Lookup(_owned(_c.vector_hash, _c.id), _c.id, said_in=_c.rid)
_REPORT_ROWS = Lookup(_owned(_p.vector_hash, _p.rid), _p.rid)
_RELATION_ROWS = Lookup(_owned(_r.vector_hash, _r.rid), _r.rid)
_SENTENCE_ROWS = Lookup(_sentences_owned, _c.id, said_in=_s.chunk)
_ROWS_BY_ID = {  # of what has its id in a column
    VectorSpace.ENTITY: Lookup(_owned(_e.vector_hash, _e.rid, _e.key), _e.key),
    VectorSpace.NAME: Lookup(_names_owned, _e.key),
    VectorSpace.REPORT: Lookup(_reports_owned, s.cluster.c.id),
}

_chunks = select(ALLOWED_CHUNK.c.rid)
_mentioned = select(_em.entity).where(_em.chunk.in_(_chunks))
_ALLOWED_HASHES = {
    VectorSpace.CHUNK: select(_c.vector_hash).where(_c.rid.in_(_chunks)),
    VectorSpace.ENTITY: select(_e.vector_hash).where(_e.rid.in_(_mentioned)),
    VectorSpace.RELATION: select(_r.vector_hash).where(_r.rid.in_(select(_rm.relation).where(_rm.chunk.in_(_chunks)))),
    VectorSpace.NAME: select(_n.vector_hash).where(_n.rid.in_(_mentioned)),
    VectorSpace.SENTENCE: select(_s.vector_hash).where(_s.chunk.in_(_chunks)),
}
_ALLOWED = {
    space: as_texts(select(_v.rid).where(IS_LIVE, _v.text_hash.in_(hashes)))
    for space, hashes in _ALLOWED_HASHES.items()
}


def dimension(snapshot: Snapshot) -> int:
    """Return the length of the live model's vectors, 0 where no model is set."""
    return snapshot.connection.scalar(_DIMENSION) or 0


def after(snapshot: Snapshot, space: VectorSpace, row: int) -> VectorBlock:
    """Return the rows of the space above `row`."""
    where = {"space": space, "row": row}
    n = snapshot.connection.scalar(_N_AFTER, where) or 0
    rows, data = np.empty(n, dtype=np.int64), np.empty((n, dimension(snapshot) if n else 0), dtype="<f2")
    result = snapshot.connection.execute(_AFTER, where)
    start = 0
    while found := result.fetchmany(_ROWS_AT_ONCE):  # as arrays at once: an object a row takes as much again
        end = start + len(found)
        rows[start:end] = [rid for rid, _ in found]
        data[start:end] = np.frombuffer(b"".join([vector for _, vector in found]), "<f2").reshape(len(found), -1)
        start = end
    return VectorBlock(rows=rows, data=data)


def gone(snapshot: Snapshot, space: VectorSpace, revision: int) -> npt.NDArray[np.int64] | None:
    """Return the rows deleted after `revision`, None where that is no longer known."""
    if revision < read_number(snapshot.connection, "gone_since"):
        return None
    found = snapshot.connection.execute(_GONE, {"space": space, "revision": revision}).all()
    return np.sort(from_texts(found, 1)[0])


def allowed(snapshot: Snapshot, space: VectorSpace) -> npt.NDArray[np.int64] | None:
    """Return the rows whose owner the filter allows, None without a filter."""
    if not snapshot.is_filtered:
        return None
    return arrays_once(snapshot.memo.arrays, f"rows of {space}", lambda: (_allowed(snapshot, space),))[0]


def owners(snapshot: Snapshot, space: VectorSpace, rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return the allowed ids each row stands for, ordered by id."""
    return remembered(snapshot.memo.owners[space], rows, lambda missing: _owners(snapshot, space, missing))


def rows_of(snapshot: Snapshot, space: VectorSpace, ids: Sequence[str]) -> dict[str, int]:
    """Return the rows of the vectors of the given ids."""
    memo = snapshot.memo.vector_rows[space]
    return remembered(memo, ids, lambda missing: _rows_of(snapshot, space, missing))


def _allowed(snapshot: Snapshot, space: VectorSpace) -> Ints:
    if space is VectorSpace.REPORT:
        return np.unique(_REPORT_ROWS.ints(snapshot, clusters_within(snapshot).told.tolist())[0])
    return np.sort(from_texts(snapshot.connection.execute(_ALLOWED[space]).all(), 1)[0])


def _rows_of(snapshot: Snapshot, space: VectorSpace, ids: Sequence[str]) -> dict[str, int]:
    if space is VectorSpace.CHUNK:
        return {i: row for row, i in _CHUNK_ROWS.rows(snapshot, ids)}
    if space is VectorSpace.SENTENCE:
        return _rows_of_sentences(snapshot, ids)
    if space in _ROWS_BY_ID:
        owned = [(row, rid, key) for row, rid, key in _ROWS_BY_ID[space].rows(snapshot, ids)]
    else:
        id_by_rid = relation_rids(snapshot, ids)
        owned = [(row, rid, id_by_rid[rid]) for row, rid in _RELATION_ROWS.rows(snapshot, sorted(id_by_rid))]
    visible = _visible(snapshot, space, [rid for _, rid, _ in owned])
    return {i: row for row, rid, i in owned if rid in visible}


def n_waiting(snapshot: Snapshot) -> int:
    """Return the number of texts waiting for a vector of the live model."""
    return snapshot.connection.scalar(select(func.count()).where(s.vector_todo.c.model == LIVE)) or 0


def n_vectors(snapshot: Snapshot) -> int:
    """Return the number of vectors of the live model."""
    return snapshot.connection.scalar(select(func.count()).where(_v.model == LIVE)) or 0


def _owners(snapshot: Snapshot, space: VectorSpace, rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    owned = _OWNERS[space].rows(snapshot, rows)
    visible = _visible(snapshot, space, [rid for _, rid, *_ in owned])
    for row, rid, *ids in owned:
        if rid in visible:
            found.setdefault(row, []).append(_id_of(space, ids))
    return {row: tuple(sorted(ids)) for row, ids in found.items()}


def _id_of(space: VectorSpace, columns: Sequence[Any]) -> str:
    if space is VectorSpace.RELATION:
        return relation_id(*columns)
    return sentence_id(*columns) if space is VectorSpace.SENTENCE else str(columns[0])


def _rows_of_sentences(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, int]:
    wanted = frozenset(ids)
    chunks = sorted({each.partition("#")[0] for each in wanted})
    rows = {sentence_id(chunk, n): row for row, _, chunk, n in _SENTENCE_ROWS.rows(snapshot, chunks)}
    return {each: row for each, row in rows.items() if each in wanted}


def _visible(snapshot: Snapshot, space: VectorSpace, rids: Collection[int]) -> frozenset[int]:
    """Return which of the owners the snapshot may see; of chunks and sentences, only such are read."""
    if snapshot.allowed is None or space in (VectorSpace.CHUNK, VectorSpace.SENTENCE):
        return frozenset(rids)
    if space is VectorSpace.REPORT:
        return reports.readable(snapshot, rids)
    if space in (VectorSpace.ENTITY, VectorSpace.NAME):
        return snapshot.allowed.among(rids)
    wanted = np.array(list(rids), dtype=np.int64)
    return frozenset(wanted[find(snapshot.allowed.relations.rids, wanted)[1]].tolist())
