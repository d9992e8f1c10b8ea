"""Vectors of a snapshot: the rows of the live model, the ids they stand for, which were deleted; and texts to embed.

The live model is the one whose vectors are searched, while vectors of another may be computed beside them.
`vector_writes.py` writes vectors.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, bindparam, exists, func, or_, select

from quipu.errors import Mismatch
from quipu.model.graph import chunk_text, entity_text, relation_text
from quipu.model.ids import relation_id, sentence_id
from quipu.ports.store import VectorBlock, VectorSpace
from quipu.stores.relational import change_log
from quipu.stores.relational import chunks as chunk_reads
from quipu.stores.relational import clusters as cluster_reads
from quipu.stores.relational import schema as s
from quipu.stores.relational.filters import allowed_clusters, visible_entities, visible_relations, visible_reports
from quipu.stores.relational.relations import relation_rids
from quipu.stores.relational.snapshot import (
    ALLOWED_CHUNK,
    Lookup,
    RevisionArrays,
    Snapshot,
    cached_arrays,
    cached_values,
    check_rows,
    read_only,
)
from quipu.stores.relational.sql import (
    ByValues,
    Ints,
    as_texts,
    from_texts,
    meta_value,
    read_number,
    read_numbers,
    texts_from_json,
)
from quipu.stores.relational.text_index import chunk_words
from quipu.stores.relational.vector_writes import LIVE, OWNERS, replace_models, vector_hash

# Nearly all vectors are of the live model: "+ 0" keeps the planner from starting with them.
_is_live = (s.vector.c.model + 0) == LIVE

_BLOCK_ROWS = 1_024
_CHUNK_VECTORS = "chunk vectors"
_SPANS = (VectorSpace.SENTENCE, VectorSpace.QUESTION)  # of chunks: their ids are those of chunks, and a number

_SOURCE, _TARGET = s.entity.alias("source"), s.entity.alias("target")
_c, _e, _r, _v, _gone = s.chunk.c, s.entity.c, s.relation.c, s.vector.c, s.vector_gone.c
_n, _p, _k = s.entity_name.c, s.report.c, s.cluster.c
_em, _rm = s.entity_mention.c, s.relation_mention.c

_DIMENSION = select(s.model.c.dimension).where(s.model.c.state == "live").scalar_subquery()
_is_after = _v.model == LIVE, _v.space == bindparam("space"), _v.rid > bindparam("row")
_AFTER = select(_v.rid, _v.data, _v.checksum).where(*_is_after).order_by(_v.rid)
_GONE = as_texts(
    select(_gone.rid).where(
        _gone.model == LIVE, _gone.space == bindparam("space"), _gone.revision > bindparam("revision")
    )
).scalar_subquery()
_COUNT_AND_GONE = select(func.count(), _DIMENSION, _GONE).select_from(s.vector).where(*_is_after)
_MAX_REVISION = 2**63 - 1
# Since when deleted rows are known, and whether a space has vectors or deleted ones: most indexes use three of seven.
_GONE_SINCE_AND_USED = select(
    meta_value("gone_since").scalar_subquery(),
    *(
        or_(*(exists().where(t.c.model == LIVE, t.c.space == space) for t in (s.vector, s.vector_gone)))
        for space in VectorSpace
    ),
)


def _owned(hashed: Any, *columns: Any) -> Select[Any]:
    """Return a query of the live model's vectors with columns of their owners, whose text hashes are `hashed`."""
    return select(_v.rid, *columns).join_from(s.vector, hashed.table, (_v.text_hash == hashed) & _is_live)


_chunks_owned = _owned(_c.vector_hash, _c.rid, _c.id)
_entities_owned = _owned(_e.vector_hash, _e.rid, _e.key)
_relations_owned = (
    _owned(_r.vector_hash, _r.rid, _SOURCE.c.key, _TARGET.c.key)
    .join(_SOURCE, _SOURCE.c.rid == _r.source)
    .join(_TARGET, _TARGET.c.rid == _r.target)
)
_names_owned = _owned(_n.vector_hash, _e.rid, _e.key).join(s.entity, _e.rid == _n.rid)
_reports_owned = _owned(_p.vector_hash, _p.rid, _k.id).join(s.cluster, _k.rid == _p.rid)
_spans_owned = {
    space: _owned(span.vector_hash, span.rid, _c.id, span.ordinal).join(s.chunk, _c.rid == span.chunk)
    for space, span in ((space, OWNERS[space].c) for space in _SPANS)
}
_OWNERS = {
    VectorSpace.CHUNK: Lookup(_chunks_owned, _v.rid, stated_in=_c.rid),
    VectorSpace.ENTITY: Lookup(_entities_owned, _v.rid),
    VectorSpace.RELATION: Lookup(_relations_owned, _v.rid),
    VectorSpace.NAME: Lookup(_names_owned, _v.rid),
    VectorSpace.REPORT: Lookup(_reports_owned, _v.rid),
    **{space: Lookup(owned, _v.rid, stated_in=OWNERS[space].c.chunk) for space, owned in _spans_owned.items()},
}
_BY_ID = {  # for owners whose id is a column
    VectorSpace.CHUNK: Lookup(_chunks_owned, _c.id, stated_in=_c.rid),
    VectorSpace.ENTITY: Lookup(_entities_owned, _e.key),
    VectorSpace.NAME: Lookup(_names_owned, _e.key),
    VectorSpace.REPORT: Lookup(_reports_owned, _k.id),
}
_BY_RELATION = Lookup(_owned(_r.vector_hash, _r.rid), _r.rid)
_BY_REPORT = Lookup(_owned(_p.vector_hash, _p.rid), _p.rid)
_OF_SPANS = {space: Lookup(owned, _c.id, stated_in=OWNERS[space].c.chunk) for space, owned in _spans_owned.items()}

# How many vectors the live model has, and how many texts wait for one.
N_VECTORS = select(func.count()).where(_v.model == LIVE)
N_WITHOUT_VECTOR = select(func.count()).where(s.vector_todo.c.model == LIVE)

_chunks = select(ALLOWED_CHUNK.c.rid)
_mentioned = select(_em.entity).where(_em.chunk.in_(_chunks))
_ALLOWED_HASHES = {
    VectorSpace.CHUNK: select(_c.vector_hash).where(_c.rid.in_(_chunks)),
    VectorSpace.ENTITY: select(_e.vector_hash).where(_e.rid.in_(_mentioned)),
    VectorSpace.RELATION: select(_r.vector_hash).where(_r.rid.in_(select(_rm.relation).where(_rm.chunk.in_(_chunks)))),
    VectorSpace.NAME: select(_n.vector_hash).where(_n.rid.in_(_mentioned)),
    **{space: select(OWNERS[space].c.vector_hash).where(OWNERS[space].c.chunk.in_(_chunks)) for space in _SPANS},
}
_ALLOWED = {
    space: as_texts(select(_v.rid).where(_is_live, _v.text_hash.in_(hashes)))
    for space, hashes in _ALLOWED_HASHES.items()
}

_of_chunks = select(_c.rid, _v.rid).join_from(s.vector, s.chunk, _c.vector_hash == _v.text_hash).where(_is_live)
_ALL_CHUNKS = as_texts(_of_chunks)
_NEW_CHUNK_VECTORS = as_texts(_of_chunks.where(_v.rid >= bindparam("row")))
_SOME_CHUNKS = Lookup(_of_chunks, _c.rid)

_ENTITY_TEXTS = ByValues(select(_e.rid, _e.name, _e.description), _e.rid)
_NAME_TEXTS = ByValues(select(_e.rid, _e.name), _e.rid)
_RELATION_TEXTS = ByValues(
    select(_r.rid, _r.keywords, _SOURCE.c.key, _TARGET.c.key, _r.description)
    .join(_SOURCE, _SOURCE.c.rid == _r.source)
    .join(_TARGET, _TARGET.c.rid == _r.target),
    _r.rid,
)
_OWNERS_BY_HASH = {
    space: ByValues(select(owner.c.rid, owner.c.vector_hash), owner.c.vector_hash) for space, owner in OWNERS.items()
}
_WITHOUT_VECTOR = (
    select(s.vector_todo.c.text_hash, s.vector_todo.c.space)
    .join(s.model, s.model.c.rid == s.vector_todo.c.model)
    .where(s.model.c.identity == bindparam("model"))
    .order_by(s.vector_todo.c.text_hash)
    .limit(bindparam("limit"))
)


def live_model(connection: Connection) -> tuple[str, int] | None:
    """Return identity and dimension of the model whose vectors are searched, None if there is none yet."""
    live = connection.execute(select(s.model).where(s.model.c.state == "live")).first()
    return (live.identity, live.dimension) if live else None


def has_model(connection: Connection, identity: str, dimension: int) -> bool:
    """Say whether this model is live; False if the index is empty or has no model yet.

    Raises Mismatch if another model is live.
    """
    live = live_model(connection)
    if live == (identity, dimension):
        return True
    if live is None or _is_empty(connection):
        return False
    raise Mismatch(
        f"The index holds vectors of {live[0]} ({live[1]} numbers each), but the embedder is {identity} ({dimension}).",
        remedy="Run `quipu reembed` to compute new vectors, or set the earlier embedder again.",
    )


def take_model(connection: Connection, identity: str, dimension: int) -> None:
    """Make this model live if the index is empty or has no model yet; raise Mismatch if another model is live."""
    if not has_model(connection, identity, dimension):
        replace_models(connection, identity, dimension)


def _is_empty(connection: Connection) -> bool:
    return not any(connection.execute(select(table.c.rid).limit(1)).first() for table in (s.document, s.job, s.vector))


def vectors(snapshot: Snapshot, space: VectorSpace, after: int = -1, *, since: int | None = None) -> VectorBlock:
    """Return the vectors of a space with a row above `after`, and the rows deleted after the revision `since`."""
    where = {"space": space, "row": after, "revision": _MAX_REVISION if since is None else since}

    def read() -> tuple[Ints]:
        return (np.array([int(value or 0) for value in snapshot.connection.execute(_GONE_SINCE_AND_USED).one()]),)

    gone_since, *is_used = cached_arrays(snapshot.cache.arrays, "used spaces", read)[0]
    is_empty = not is_used[list(VectorSpace).index(space)]
    n_after, dimension, deleted_rows = (
        (0, 0, "") if is_empty else snapshot.connection.execute(_COUNT_AND_GONE, where).one()
    )
    rows = np.empty(n_after, dtype=np.int64)
    matrix = np.empty((n_after, dimension if n_after else 0), dtype="<f2")
    result = snapshot.connection.execute(_AFTER, where) if n_after else None
    start = 0
    # Into arrays at once: row objects would take as much memory again.
    while result and (block := result.fetchmany(_BLOCK_ROWS)):
        end = start + len(block)
        rows[start:end] = [row.rid for row in check_rows(s.vector, block)]
        matrix[start:end] = np.frombuffer(b"".join([row.data for row in block]), "<f2").reshape(len(block), -1)
        start = end
    is_known = since is not None and since >= gone_since
    return VectorBlock(
        rows=rows, vectors=matrix, deleted=np.sort(from_texts([(deleted_rows,)], 1)[0]) if is_known else None
    )


def allowed_rows(snapshot: Snapshot, space: VectorSpace) -> Ints | None:
    """Return the rows whose owner the filter allows, rising; None without a filter."""
    if not snapshot.is_filtered:
        return None

    def read() -> tuple[Ints]:
        if space is VectorSpace.REPORT:
            return (np.unique(_BY_REPORT.ints(snapshot, allowed_clusters(snapshot).fully_allowed.tolist())[0]),)
        return (np.sort(from_texts(snapshot.connection.execute(_ALLOWED[space]).all(), 1)[0]),)

    return cached_arrays(snapshot.cache.arrays, f"rows of {space}", read)[0]


def vector_owners(snapshot: Snapshot, space: VectorSpace, rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return the allowed ids that each row stands for, ordered by id."""

    def read(missing: Sequence[int]) -> dict[int, tuple[str, ...]]:
        ids_by_row: dict[int, list[str]] = {}
        owned = _OWNERS[space].rows(snapshot, missing)
        visible = _visible(snapshot, space, [rid for _, rid, *_ in owned])
        for row, rid, *columns in owned:
            if rid in visible:
                ids_by_row.setdefault(row, []).append(_owner_id(space, columns))
        return {row: tuple(sorted(ids)) for row, ids in ids_by_row.items()}

    return cached_values(snapshot.cache.owners[space], rows, read)


def vector_rows(snapshot: Snapshot, space: VectorSpace, ids: Sequence[str]) -> dict[str, int]:
    """Return the row of the vector of each of these ids."""

    def read(missing: Sequence[str]) -> dict[str, int]:
        owned = _owned_by(snapshot, space, missing)
        visible = _visible(snapshot, space, [rid for _, rid, _ in owned])
        return {owner: row for row, rid, owner in owned if rid in visible}

    return cached_values(snapshot.cache.vector_rows[space], ids, read)


def chunk_vector_rows(snapshot: Snapshot) -> tuple[Ints, Ints]:
    """Return the numbers of the chunks with a vector, rising, and the row of each, both [n]; whatever the filter.

    Scoring all chunks needs these arrays. They are read once, then updated for each revision by what has changed.
    """

    def read() -> tuple[Ints, Ints]:
        earlier = snapshot.cache.incremental.get(_CHUNK_VECTORS)
        arrays = _update_chunk_vectors(snapshot, earlier) if earlier is not None else None
        if arrays is None:
            arrays = _read_chunk_vectors(snapshot)
        revision, next_row = read_numbers(snapshot.connection, "revision", "vector_row")
        snapshot.cache.incremental[_CHUNK_VECTORS] = RevisionArrays(
            revision=revision,
            history_nonce=change_log.history_nonce(snapshot.connection, revision),
            next_row=next_row,
            arrays=read_only(*arrays),
        )
        return arrays

    numbers, rows = cached_arrays(snapshot.cache.unfiltered, _CHUNK_VECTORS, read)
    return numbers, rows


def _owned_by(snapshot: Snapshot, space: VectorSpace, ids: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return (vector row, row id, id) of each of these owners that has a vector."""
    if space in _SPANS:
        span_ids = frozenset(ids)
        rows = _OF_SPANS[space].rows(snapshot, sorted({span.partition("#")[0] for span in span_ids}))
        owned = [(row, rid, sentence_id(chunk, ordinal)) for row, rid, chunk, ordinal in rows]
        return [(row, rid, span) for row, rid, span in owned if span in span_ids]
    if space is VectorSpace.RELATION:
        id_by_rid = relation_rids(snapshot, ids)
        return [(row, rid, id_by_rid[rid]) for row, rid in _BY_RELATION.rows(snapshot, sorted(id_by_rid))]
    return [(row, rid, owner) for row, rid, owner in _BY_ID[space].rows(snapshot, ids)]


def _owner_id(space: VectorSpace, columns: Sequence[Any]) -> str:
    if space is VectorSpace.RELATION:
        return relation_id(*columns)
    return sentence_id(*columns) if space in _SPANS else str(columns[0])


def _visible(snapshot: Snapshot, space: VectorSpace, rids: Collection[int]) -> frozenset[int]:
    """Return the row ids of the owners that the snapshot may see; lookups of chunks and spans read no others."""
    if space is VectorSpace.CHUNK or space in _SPANS:
        return frozenset(rids)
    if space is VectorSpace.REPORT:
        return visible_reports(snapshot, rids)
    return visible_relations(snapshot, rids) if space is VectorSpace.RELATION else visible_entities(snapshot, rids)


def _read_chunk_vectors(snapshot: Snapshot) -> tuple[Ints, Ints]:
    numbers, rows = from_texts(snapshot.connection.execute(_ALL_CHUNKS).all(), 2)
    return _by_number(numbers, rows)


def _update_chunk_vectors(snapshot: Snapshot, earlier: RevisionArrays) -> tuple[Ints, Ints] | None:
    """Return the arrays with all later changes; None if these are not recorded, or belong to another history."""
    changed = change_log.changes_since(snapshot.connection, earlier.revision)
    if changed is None or changed.history_nonce is None or changed.history_nonce != earlier.history_nonce:
        return None
    if earlier.revision < read_number(snapshot.connection, "gone_since"):  # another model became the live one
        return None
    new_vectors = snapshot.connection.execute(_NEW_CHUNK_VECTORS, {"row": earlier.next_row}).all()
    new_numbers, new_rows = from_texts(new_vectors, 2)
    changed_numbers, changed_rows = _SOME_CHUNKS.ints(snapshot, changed.chunks.tolist())
    numbers, rows = earlier.arrays
    is_unchanged = ~np.isin(numbers, np.concatenate([changed.chunks, new_numbers]))
    updated, index = np.unique(np.concatenate([new_numbers, changed_numbers]), return_index=True)
    updated_rows = np.concatenate([new_rows, changed_rows])[index]
    return _by_number(
        np.concatenate([numbers[is_unchanged], updated]), np.concatenate([rows[is_unchanged], updated_rows])
    )


def _by_number(numbers: Ints, rows: Ints) -> tuple[Ints, Ints]:
    order = np.argsort(numbers, kind="stable")
    return numbers[order], rows[order]


def stale_texts(connection: Connection, model: str, limit: int) -> dict[str, str]:
    """Return up to `limit` texts that have no vector of this model, by text hash."""
    hashes: dict[VectorSpace, list[str]] = {}
    for text_hash, space in connection.execute(_WITHOUT_VECTOR, {"model": model, "limit": limit}):
        hashes.setdefault(VectorSpace(space), []).append(text_hash)
    texts: dict[str, str] = {}
    for space, text_hashes in sorted(hashes.items()):
        rows = _OWNERS_BY_HASH[space].rows(connection, text_hashes)
        text_by_rid = owner_texts(connection, space, [row.rid for row in rows])
        texts.update({row.vector_hash: text_by_rid[row.rid] for row in rows})
    return texts


def owner_texts(connection: Connection, space: VectorSpace, rids: Sequence[int]) -> dict[int, str]:
    """Return the text to embed for each owner of a vector of this space, by row number."""
    if space is VectorSpace.CHUNK:
        chunks = chunk_words(connection, rids)
        return {chunk.rid: chunk_text(chunk.title, chunk.header, chunk.text) for chunk in chunks}
    if space is VectorSpace.ENTITY:
        return {rid: entity_text(name, description) for rid, name, description in _ENTITY_TEXTS.rows(connection, rids)}
    if space is VectorSpace.NAME:
        return dict(map(tuple, _NAME_TEXTS.rows(connection, rids)))
    if space in _SPANS:
        return dict(chunk_reads.span_texts(connection, OWNERS[space], rids))
    if space is VectorSpace.REPORT:
        return cluster_reads.report_texts(connection, rids)
    return {
        rid: relation_text(texts_from_json(keywords), source, target, description)
        for rid, keywords, source, target, description in _RELATION_TEXTS.rows(connection, rids)
    }


def owner_hashes(connection: Connection, space: VectorSpace, rids: Sequence[int]) -> dict[int, str]:
    """Return the hash of each owner's text to embed, computed from the text."""
    return {rid: vector_hash(space, text) for rid, text in owner_texts(connection, space, rids).items()}
