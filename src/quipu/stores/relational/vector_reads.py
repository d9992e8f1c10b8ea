"""Reading the vectors of a snapshot: rows of the live model, who owns them, what is gone."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Select, func, select

from quipu.model.ids import relation_id
from quipu.ports.store import Space, VectorBlock
from quipu.stores.relational import meta
from quipu.stores.relational import schema as s
from quipu.stores.relational.filters import is_allowed
from quipu.stores.relational.graph import relation_rids
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import select_in

_SOURCE, _TARGET = s.entity.alias("source"), s.entity.alias("target")


def dimension(snapshot: Snapshot) -> int:
    """Return the length of the live model's vectors, 0 where no model is set."""
    return snapshot.connection.scalar(select(s.model.c.dimension).where(s.model.c.state == "live")) or 0


def after(snapshot: Snapshot, space: Space, row: int) -> VectorBlock:
    """Return the rows of the space above `row`."""
    v = s.vector.c
    query = select(v.rid, v.data).where(v.model == _live(), v.space == space, v.rid > row).order_by(v.rid)
    found = snapshot.connection.execute(query).all()
    rows = np.fromiter((r.rid for r in found), np.int64, len(found))
    data = np.frombuffer(b"".join(r.data for r in found), "<f2").reshape(len(found), -1 if found else 0)
    return VectorBlock(rows=rows, data=data)


def gone(snapshot: Snapshot, space: Space, revision: int) -> npt.NDArray[np.int64] | None:
    """Return the rows deleted after `revision`, None where that is no longer known."""
    if revision < meta.number(snapshot.connection, "gone_since"):
        return None
    g = s.vector_gone.c
    query = select(g.rid).where(g.model == _live(), g.space == space, g.revision > revision).order_by(g.rid)
    return np.array(snapshot.connection.execute(query).scalars().all(), np.int64)


def allowed(snapshot: Snapshot, space: Space) -> npt.NDArray[np.int64] | None:
    """Return the rows whose owner the filter allows, None without a filter."""
    if not snapshot.is_filtered:
        return None
    v, owner = s.vector.c, _owner_hashes(snapshot, space)
    query = select(v.rid).where(_is_live(), v.text_hash.in_(owner)).order_by(v.rid)
    return np.array(snapshot.connection.execute(query).scalars().all(), np.int64)


def owners(snapshot: Snapshot, space: Space, rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return the allowed ids each row stands for, ordered by id."""
    v = s.vector.c
    query, hashed = _owner_ids(snapshot, space)
    query = query.add_columns(v.rid.label("row")).join(s.vector, (v.text_hash == hashed) & _is_live())
    found: dict[int, list[str]] = {}
    for row in select_in(snapshot.connection, query, v.rid, [int(row) for row in rows]):
        found.setdefault(row.row, []).append(_public_id(space, row))
    return {row: tuple(sorted(ids)) for row, ids in found.items()}


def of(snapshot: Snapshot, space: Space, ids: Sequence[str]) -> dict[str, npt.NDArray[np.float16]]:
    """Return the vectors of the given ids."""
    v = s.vector.c
    query, hashed = _owner_ids(snapshot, space)
    query = query.add_columns(v.data).join(s.vector, (v.text_hash == hashed) & _is_live())
    wanted = set(ids)
    column: Any = {Space.CHUNK: s.chunk.c.id, Space.ENTITY: s.entity.c.key, Space.RELATION: s.relation.c.rid}[space]
    keys: Iterable[Any] = relation_rids(snapshot, ids) if space is Space.RELATION else wanted
    rows = select_in(snapshot.connection, query, column, sorted(keys))
    found = {_public_id(space, row): np.frombuffer(row.data, "<f2") for row in rows}
    return {i: found[i] for i in sorted(wanted) if i in found}


def n_waiting(snapshot: Snapshot) -> int:
    """Return the number of texts waiting for a vector of the live model."""
    return snapshot.connection.scalar(select(func.count()).where(s.vector_todo.c.model == _live())) or 0


def n_vectors(snapshot: Snapshot) -> int:
    """Return the number of vectors of the live model."""
    return snapshot.connection.scalar(select(func.count()).where(s.vector.c.model == _live())) or 0


def _live() -> Any:
    return select(s.model.c.rid).where(s.model.c.state == "live").scalar_subquery()


def _is_live() -> Any:
    """Hold for vectors of the live model, nearly all there are: "+ 0" keeps the planner from starting with them."""
    return (s.vector.c.model + 0) == _live()


def _owner_ids(snapshot: Snapshot, space: Space) -> tuple[Select[Any], Any]:
    """Return a query of the columns that make up public ids, and the column of their text hashes."""
    if space is Space.RELATION:
        r = s.relation.c
        query = select(_SOURCE.c.key.label("source_key"), _TARGET.c.key.label("target_key"))
        query = query.join_from(s.relation, _SOURCE, _SOURCE.c.rid == r.source)
        return _restrict(snapshot, space, query.join(_TARGET, _TARGET.c.rid == r.target)), r.vector_hash
    if space is Space.ENTITY:
        return _restrict(snapshot, space, select(s.entity.c.key.label("id")).select_from(s.entity)), (
            s.entity.c.vector_hash
        )
    return _restrict(snapshot, space, select(s.chunk.c.id).select_from(s.chunk)), s.chunk.c.vector_hash


def _owner_hashes(snapshot: Snapshot, space: Space) -> Select[Any]:
    table = {Space.CHUNK: s.chunk, Space.ENTITY: s.entity, Space.RELATION: s.relation}[space]
    return _restrict(snapshot, space, select(table.c.vector_hash))


def _restrict(snapshot: Snapshot, space: Space, query: Select[Any]) -> Select[Any]:
    if not snapshot.is_filtered:
        return query
    if space is Space.CHUNK:
        return query.where(is_allowed(s.chunk.c.rid))
    owner, mention = (s.entity, s.entity_mention) if space is Space.ENTITY else (s.relation, s.relation_mention)
    said = select(1).where(mention.c[owner.name] == owner.c.rid, is_allowed(mention.c.chunk))
    return query.where(said.correlate(owner).exists())


def _public_id(space: Space, row: Any) -> str:
    return relation_id(row.source_key, row.target_key) if space is Space.RELATION else str(row.id)
