"""Vectors and embedding models, written: which texts need a vector, and the vectors of each model.

Texts are known by their hash; rows with equal texts share a vector. Each entity, chunk and so on that wants a vector
holds the hash of its text in the column `vector_hash` and is an owner of that vector.
"""

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
from quipu.stores.relational.sql import ByValues, checksum, insert_rows, n_changed, next_rid, read_number, write_meta

OWNERS = {
    VectorSpace.CHUNK: s.chunk,
    VectorSpace.ENTITY: s.entity,
    VectorSpace.RELATION: s.relation,
    VectorSpace.NAME: s.entity_name,
    VectorSpace.SENTENCE: s.sentence,
    VectorSpace.REPORT: s.report,
    VectorSpace.QUESTION: s.question,
}

_m, _v, _t = s.model.c, s.vector.c, s.vector_todo.c
# The model whose vectors are searched, while vectors of another may be computed beside them.
LIVE = select(s.model.c.rid).where(s.model.c.state == "live").scalar_subquery()
_MODELS = select(_m.rid)
_OWNED = {
    space: ByValues(select(owner.c.vector_hash).distinct(), owner.c.vector_hash) for space, owner in OWNERS.items()
}
_VECTORS = ByValues(select(_v.rid, _v.model), _v.text_hash)
_DELETE = ByValues(s.vector.delete(), _v.rid)
_EMBEDDED_OR_QUEUED = [
    ByValues(select(table.c.text_hash).where(table.c.model == bindparam("model")), table.c.text_hash)
    for table in (s.vector, s.vector_todo)
]
# Naming every model makes SQLite use the key (model, text_hash).
_QUEUED = ByValues(select(s.vector_todo).where(_t.model.in_(_MODELS)), _t.text_hash)
_DELETE_QUEUED = ByValues(s.vector_todo.delete().where(_t.model.in_(_MODELS)), _t.text_hash)
_DELETE_QUEUED_OF_MODEL = ByValues(s.vector_todo.delete().where(_t.model == bindparam("model")), _t.text_hash)
_N_QUEUED = (
    select(func.count())
    .select_from(s.vector_todo)
    .join(s.model, (_m.rid == _t.model) & (_m.state == "live"))
    .where(_t.space == bindparam("space"))
)


def vector_hash(space: VectorSpace, text: str) -> str:
    """Return the hash of a text within a space."""
    return digest("vector", space, text)


@dataclass(slots=True)
class VectorChanges:
    """The texts of owners before and after a change, by space and text hash."""

    before: set[tuple[VectorSpace, str]] = field(default_factory=set)
    after: set[tuple[VectorSpace, str]] = field(default_factory=set)

    def moved(self, space: VectorSpace, before: str, after: str) -> None:
        """Note that an owner's text changed from one hash to another, "" for no text; equal hashes are ignored."""
        if before != after:
            if before:
                self.before.add((space, before))
            if after:
                self.after.add((space, after))

    def __or__(self, other: "VectorChanges") -> "VectorChanges":
        """Return both changes together."""
        return VectorChanges(self.before | other.before, self.after | other.after)


def retarget(connection: Connection, changes: VectorChanges, revision: int) -> None:
    """Queue new texts that have no vector, and delete vectors that have no owner any more."""
    if not changes.before and not changes.after:
        return
    models = connection.execute(_MODELS).scalars().all()
    for space in VectorSpace:
        before = {text_hash for kind, text_hash in changes.before if kind == space}
        after = {text_hash for kind, text_hash in changes.after if kind == space}
        _delete_unowned(connection, space, before - after, revision)
        for model in models:
            _queue(connection, model, space, after)


def _delete_unowned(connection: Connection, space: VectorSpace, hashes: set[str], revision: int) -> None:
    owned = {row[0] for row in _OWNED[space].rows(connection, sorted(hashes))}
    unowned = sorted(hashes - owned)
    vectors = _VECTORS.rows(connection, unowned)
    code = SPACE_CODES[space]
    rows = [{"rid": row.rid, "model": row.model, "space": code, "revision": revision} for row in vectors]
    insert_rows(connection, s.vector_gone, rows)
    _DELETE.run(connection, [row.rid for row in vectors])
    _DELETE_QUEUED.run(connection, unowned)


def _queue(connection: Connection, model: int, space: VectorSpace, hashes: Iterable[str]) -> None:
    ordered = sorted(hashes)
    present = {row[0] for query in _EMBEDDED_OR_QUEUED for row in query.rows(connection, ordered, model=model)}
    code = SPACE_CODES[space]
    missing = [text_hash for text_hash in ordered if text_hash not in present]
    rows = [{"model": model, "text_hash": text_hash, "space": code} for text_hash in missing]
    insert_rows(connection, s.vector_todo, rows)


def write(connection: Connection, vectors: Sequence[VectorRow]) -> None:
    """Store the vectors of queued texts; others are ignored. Raises InvalidDelta for a wrong dimension."""
    if not vectors:
        return
    models = {row.identity: row for row in connection.execute(select(s.model))}
    queued = _QUEUED.rows(connection, sorted({vector.text_hash for vector in vectors}))
    code_by_key = {(row.model, row.text_hash): SPACE_CODES[row.space] for row in queued}
    new: dict[tuple[int, str], dict[str, Any]] = {}
    for vector in vectors:
        model = models.get(vector.model)
        if model is None or (model.rid, vector.text_hash) not in code_by_key:
            continue
        if vector.vector.shape != (model.dimension,):
            raise InvalidDelta(
                f"A vector of shape {vector.vector.shape} does not fit {vector.model} ({model.dimension})."
            )
        key = (model.rid, vector.text_hash)
        packed = np.ascontiguousarray(vector.vector, dtype="<f2").tobytes()
        new[key] = {"model": key[0], "space": code_by_key[key], "text_hash": key[1], "data": packed}
    first = read_number(connection, "vector_row")
    insert_rows(connection, s.vector, [{"rid": first + i, **values} for i, values in enumerate(new.values())])
    write_meta(connection, "vector_row", first + len(new))
    for model_rid in {model for model, _ in new}:
        hashes = [text_hash for model, text_hash in new if model == model_rid]
        _DELETE_QUEUED_OF_MODEL.run(connection, hashes, model=model_rid)


def n_waiting(connection: Connection, space: VectorSpace) -> int:
    """Return how many texts of a space have no vector of the live model yet."""
    return connection.scalar(_N_QUEUED, {"space": space}) or 0


def replace_models(connection: Connection, identity: str, dimension: int) -> None:
    """Drop all models with their vectors, and make this one live."""
    for model in connection.execute(_MODELS).scalars().all():
        _drop_model(connection, model)
    begin_model(connection, identity, dimension, "live")


def begin_model(connection: Connection, identity: str, dimension: int, state: str) -> None:
    """Add a model and queue every text for it; the unfinished vectors of another model are dropped."""
    existing = connection.execute(select(s.model).where(_m.identity == identity)).first()
    if existing is not None:
        if existing.dimension != dimension:
            raise Mismatch(
                f"The index has vectors of {identity} with {existing.dimension} numbers, not {dimension}.",
                remedy="Give an embedder of another dimension another identity.",
            )
        return
    for row in connection.execute(select(_m.rid).where(_m.state == "building")).all():
        _drop_model(connection, row.rid)
    rid = next_rid(connection, s.model)
    connection.execute(insert(s.model).values(rid=rid, identity=identity, dimension=dimension, state=state))
    for space, owner in OWNERS.items():
        _queue(connection, rid, space, connection.execute(select(owner.c.vector_hash).distinct()).scalars().all())


def finish_model(connection: Connection, identity: str) -> bool:
    """Make a model live and drop all others; return False if it was live already.

    Raises Stale while texts lack vectors.
    """
    row = connection.execute(select(s.model).where(_m.identity == identity)).first()
    if row is None:
        raise Stale(
            f"The new vectors of {identity} were deleted meanwhile, by `quipu purge` or another re-embedding.",
            remedy="Run `quipu reembed` again, and wait for its end before you run one of these.",
        )
    if connection.execute(select(_t.text_hash).where(_t.model == row.rid)).first():
        raise Stale("Some texts have no vector of the new model yet.", remedy="Run `quipu reembed` again.")
    if row.state == "live":
        return False
    for other in connection.execute(select(_m.rid).where(_m.rid != row.rid)).all():
        _drop_model(connection, other.rid)
    revision = read_number(connection, "revision") + 1
    write_meta(connection, "revision", revision)
    write_meta(connection, "gone_since", revision)
    connection.execute(s.model.update().where(_m.rid == row.rid).values(state="live"))
    return True


def purge(connection: Connection, *, is_reembedding: bool) -> int:
    """Forget which vectors were deleted; drop unfinished models unless a re-embedding runs. Return rows deleted.

    Vector indexes outside the database that have not followed so far must be built again.
    """
    if not is_reembedding:
        for row in connection.execute(select(_m.rid).where(_m.state == "building")).all():
            _drop_model(connection, row.rid)
    write_meta(connection, "gone_since", read_number(connection, "revision"))
    return n_changed(connection, s.vector_gone.delete())


def rebuild(connection: Connection, revision: int) -> None:
    """Drop the vectors that are damaged or that nothing has, and queue every text without a vector.

    Vector indexes outside the database must be built again.
    """
    dimensions: dict[int, int] = dict(map(tuple, connection.execute(select(_m.rid, _m.dimension))))
    hashes = {space: set(connection.execute(select(owner.c.vector_hash)).scalars()) for space, owner in OWNERS.items()}
    damaged: list[int] = []
    for row in connection.execute(select(s.vector), execution_options={"yield_per": 1_000}):
        is_owned = row.text_hash in hashes.get(row.space, ())
        is_whole = len(row.data) == 2 * dimensions.get(row.model, -1) and row.checksum == checksum(
            s.vector, row._mapping
        )
        if not is_owned or not is_whole:
            damaged.append(row.rid)
    _DELETE.run(connection, damaged)
    connection.execute(s.vector_todo.delete())
    connection.execute(s.vector_gone.delete())
    write_meta(connection, "gone_since", revision)
    for model in dimensions:
        for space, owned in hashes.items():
            _queue(connection, model, space, owned)


def _drop_model(connection: Connection, model: int) -> None:
    """Delete a model with its vectors and its queued texts."""
    for table in (s.vector, s.vector_gone, s.vector_todo):
        connection.execute(table.delete().where(table.c.model == model))
    connection.execute(s.model.delete().where(_m.rid == model))
