"""Vectors in tables: which texts want one, which have one, which are no longer wanted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, func, insert, select

from quipu.errors import InvalidDelta, Mismatch, Stale
from quipu.model.delta import VectorRow
from quipu.model.ids import digest
from quipu.ports.store import VectorSpace
from quipu.stores.relational import schema as s
from quipu.stores.relational.schema import SPACE_CODES
from quipu.stores.relational.sql import ByValues, insert_rows, next_rid, read_number, write_meta

OWNERS = {
    VectorSpace.CHUNK: s.chunk,
    VectorSpace.ENTITY: s.entity,
    VectorSpace.RELATION: s.relation,
    VectorSpace.NAME: s.entity_name,
    VectorSpace.SENTENCE: s.sentence,
    VectorSpace.REPORT: s.report,
}

_MODELS = select(s.model.c.rid)
_v, _t = s.vector.c, s.vector_todo.c
_OWNED = {
    space: ByValues(select(owner.c.vector_hash).distinct(), owner.c.vector_hash) for space, owner in OWNERS.items()
}
_KEPT = ByValues(select(_v.rid, _v.model), _v.text_hash)
_DROP = ByValues(s.vector.delete(), _v.rid)
_KNOWN = [
    ByValues(select(table.c.text_hash).where(table.c.model == bindparam("model")), table.c.text_hash)
    for table in (s.vector, s.vector_todo)
]
# Naming every model lets the key (model, text) be used.
_WAITING = ByValues(select(s.vector_todo).where(_t.model.in_(_MODELS)), _t.text_hash)
_DROP_WAITING = ByValues(s.vector_todo.delete().where(_t.model.in_(_MODELS)), _t.text_hash)
_N_WAITING = (
    select(func.count())
    .select_from(s.vector_todo)
    .join(s.model, (s.model.c.rid == _t.model) & (s.model.c.state == "live"))
    .where(_t.space == bindparam("space"))
)
_DONE = ByValues(s.vector_todo.delete().where(_t.model == bindparam("model")), _t.text_hash)


def vector_hash(space: VectorSpace, text: str) -> str:
    """Return what identifies a text within a space; owners of equal texts share one vector."""
    return digest("vector", space, text)


@dataclass(slots=True)
class VectorChanges:
    """The texts whose vectors items wanted before a change and want after it, by space and hash."""

    before: set[tuple[VectorSpace, str]] = field(default_factory=set)
    after: set[tuple[VectorSpace, str]] = field(default_factory=set)

    def moved(self, space: VectorSpace, before: str, after: str) -> None:
        """Note that an item's text changed from one hash to another, "" for none; or that it stayed."""
        if before != after:
            if before:
                self.before.add((space, before))
            if after:
                self.after.add((space, after))


def retarget(connection: Connection, changes: VectorChanges, revision: int) -> None:
    """After owners moved from some texts to others: queue texts without a vector, drop vectors without an owner."""
    models = connection.execute(_MODELS).scalars().all()
    for space in VectorSpace:
        left = {text_hash for kind, text_hash in changes.before if kind == space}
        wanted = {text_hash for kind, text_hash in changes.after if kind == space}
        _drop(connection, space, left - wanted, revision)
        for model in models:
            _queue(connection, model, space, wanted)


def _drop(connection: Connection, space: VectorSpace, hashes: set[str], revision: int) -> None:
    owned = {row[0] for row in _OWNED[space].rows(connection, sorted(hashes))}
    unowned = sorted(hashes - owned)
    gone = _KEPT.rows(connection, unowned)
    insert_rows(
        connection,
        s.vector_gone,
        [{"rid": row.rid, "model": row.model, "space": SPACE_CODES[space], "revision": revision} for row in gone],
    )
    _DROP.run(connection, [row.rid for row in gone])
    _DROP_WAITING.run(connection, unowned)


def _queue(connection: Connection, model: int, space: VectorSpace, wanted: set[str]) -> None:
    missing = sorted(wanted - _known(connection, model, wanted))
    code = SPACE_CODES[space]
    insert_rows(
        connection, s.vector_todo, [{"model": model, "text_hash": text_hash, "space": code} for text_hash in missing]
    )


def _known(connection: Connection, model: int, hashes: Iterable[str]) -> set[str]:
    ordered = sorted(hashes)
    return {row[0] for known in _KNOWN for row in known.rows(connection, ordered, model=model)}


def write(connection: Connection, rows: Sequence[VectorRow]) -> None:
    """Store vectors for texts that still want them; others are ignored. Raises InvalidDelta for a wrong dimension."""
    models = {row.identity: row for row in connection.execute(select(s.model))}
    wanted: dict[tuple[int, str], str] = {}
    for todo in _WAITING.rows(connection, sorted({row.text_hash for row in rows})):
        wanted[todo.model, todo.text_hash] = SPACE_CODES[todo.space]
    new: dict[tuple[int, str], dict[str, Any]] = {}
    for row in rows:
        model = models.get(row.model)
        if model is None or (model.rid, row.text_hash) not in wanted:
            continue
        if row.data.shape != (model.dimension,):
            raise InvalidDelta(f"A vector of shape {row.data.shape} does not fit {row.model} ({model.dimension}).")
        key = (model.rid, row.text_hash)
        data = np.ascontiguousarray(row.data, dtype="<f2").tobytes()
        new[key] = {"model": key[0], "space": wanted[key], "text_hash": key[1], "data": data}
    first = read_number(connection, "vector_row")
    insert_rows(connection, s.vector, [{"rid": first + i, **values} for i, values in enumerate(new.values())])
    write_meta(connection, "vector_row", first + len(new))
    for model_rid in {model for model, _ in new}:
        hashes = [text_hash for model, text_hash in new if model == model_rid]
        _DONE.run(connection, hashes, model=model_rid)


def n_waiting(connection: Connection, space: VectorSpace) -> int:
    """Return how many texts of a space have no vector of the live model yet."""
    return connection.scalar(_N_WAITING, {"space": space}) or 0


def live_model(connection: Connection) -> tuple[str, int] | None:
    """Return identity and dimension of the model whose vectors answer, None where there is none yet."""
    live = connection.execute(select(s.model).where(s.model.c.state == "live")).first()
    return (live.identity, live.dimension) if live else None


def has_model(connection: Connection, identity: str, dimension: int) -> bool:
    """Say whether this model is live, False where none is used yet; raise Mismatch where another one is."""
    live = connection.execute(select(s.model).where(s.model.c.state == "live")).first()
    if live is None:
        return False
    if (live.identity, live.dimension) != (identity, dimension) and _holds_nothing(connection):
        return False
    if (live.identity, live.dimension) != (identity, dimension):
        raise Mismatch(
            f"The index holds vectors of {live.identity} ({live.dimension} numbers each), but the embedder is "
            f"{identity} ({dimension}).",
            remedy="Run `quipu reembed` to compute them anew, or set the embedder back.",
        )
    return True


def take_model(connection: Connection, identity: str, dimension: int) -> None:
    """Make this model live where none is used yet; raise Mismatch where another one is."""
    if not has_model(connection, identity, dimension):
        for model in connection.execute(_MODELS).scalars().all():
            drop_model(connection, model)
        begin_model(connection, identity, dimension, "live")


def _holds_nothing(connection: Connection) -> bool:
    owners = (s.document.c.rid, s.job.c.rid, s.vector.c.rid)
    return not any(connection.execute(select(rid).limit(1)).first() for rid in owners)


def begin_model(connection: Connection, identity: str, dimension: int, state: str) -> None:
    """Start a set of vectors and queue every text for it; an unfinished set of another model is dropped."""
    m = s.model.c
    current = connection.execute(select(s.model).where(m.identity == identity)).first()
    if current is not None:
        if current.dimension != dimension:
            raise Mismatch(
                f"The index knows {identity} with {current.dimension} numbers a vector, not {dimension}.",
                remedy="An embedder of another dimension needs another identity.",
            )
        return
    for row in connection.execute(select(m.rid).where(m.state == "building")).all():
        drop_model(connection, row.rid)
    rid = next_rid(connection, s.model)
    connection.execute(insert(s.model).values(rid=rid, identity=identity, dimension=dimension, state=state))
    for space, owner in OWNERS.items():
        hashes = {row[0] for row in connection.execute(select(owner.c.vector_hash).distinct())}
        _queue(connection, rid, space, hashes)


def finish_model(connection: Connection, identity: str) -> bool:
    """Make a finished second set the live one and drop the first; say whether it was not so already.

    Raises Stale while texts lack vectors.
    """
    m = s.model.c
    row = connection.execute(select(s.model).where(m.identity == identity)).first()
    if row is None:
        raise Stale(f"There are no vectors of {identity}.", remedy="Run `quipu reembed`.")
    waiting = connection.execute(select(s.vector_todo.c.text_hash).where(s.vector_todo.c.model == row.rid)).first()
    if waiting:
        raise Stale("Some texts have no vector under the new model yet.", remedy="Run `quipu reembed` again.")
    if row.state == "live":
        return False
    for other in connection.execute(select(m.rid).where(m.rid != row.rid)).all():
        drop_model(connection, other.rid)
    revision = read_number(connection, "revision") + 1
    write_meta(connection, "revision", revision)
    write_meta(connection, "gone_since", revision)
    connection.execute(s.model.update().where(m.rid == row.rid).values(state="live"))
    return True


def purge(connection: Connection, *, is_reembedding: bool) -> int:
    """Forget which vectors were deleted, and drop those of a re-embedding unless it goes on; return rows dropped.

    Indexes outside the database that are older than this rebuild.
    """
    if not is_reembedding:
        for row in connection.execute(select(s.model.c.rid).where(s.model.c.state == "building")).all():
            drop_model(connection, row.rid)
    write_meta(connection, "gone_since", read_number(connection, "revision"))
    return connection.execute(s.vector_gone.delete()).rowcount


def drop_model(connection: Connection, model: int) -> None:
    """Delete a model with its vectors and its waiting texts."""
    for table in (s.vector, s.vector_gone, s.vector_todo):
        connection.execute(table.delete().where(table.c.model == model))
    connection.execute(s.model.delete().where(s.model.c.rid == model))
