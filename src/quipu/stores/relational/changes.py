"""Changes: what commits changed of the graph, so that arrays outside the database catch up at the cost of the change.

A row number may be used again once what had it is gone. That is safe: both are noted, and who catches up reads what is
there now of each number noted.

Beside its changes each commit leaves a seal, a random number. Two histories of an index part where one of them was
taken from a backup; revisions are then the same and seals are not.
"""

import secrets
from collections.abc import Collection

import numpy as np
from sqlalchemy import ColumnElement, Connection, bindparam, func, select

from quipu.ports.derivation_view import ChangeSet
from quipu.stores.relational import derived_schema as d
from quipu.stores.relational import meta
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.columns import as_texts, from_texts
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import Upsert

# More has changed then than is worth reading row by row.
MAX_ROWS = 200_000
_REVISIONS_BETWEEN_CHECKS = 64

_CHUNK, _ENTITY, _SAID, _SEAL = "c", "e", "m", "s"
_SEAL_BITS = 31
_SINCE, _SAID_SINCE = "changes_since", "said_since"  # the log tells what changed after these revisions

_g = d.change.c
_NOTE = Upsert(d.change)
_ROWS = as_texts(select(_g.row).where(_g.revision > bindparam("revision"), _g.kind == bindparam("kind")))
# Its revision first: ordered by both, all a large commit noted would be read for it.
_SEALED = select(func.max(_g.revision)).where(_g.kind == _SEAL, _g.revision <= bindparam("revision"))
_LAST_SEAL = select(func.max(_g.row)).where(_g.kind == _SEAL, _g.revision == _SEALED.scalar_subquery())
_is_said = _g.kind == _SAID  # forgotten apart: there are ten times as many, and arrays are not read by them
_N_ROWS = select(func.count()).select_from(d.change)
_REVISION_AT = select(_g.revision).order_by(_g.revision).offset(bindparam("n")).limit(1)
_DROP = d.change.delete().where(_g.revision < bindparam("before"))


def note(
    connection: Connection,
    backend: Backend,
    revision: int,
    *,
    chunks: Collection[int] = (),
    entities: Collection[int] = (),
) -> None:
    """Note that chunks came, went, moved, have other words or say something else, and entities are named otherwise.

    Seals the revision. Forgets the oldest changes where there are too many.
    """
    noted = [(_CHUNK, chunks), (_ENTITY, entities), (_SEAL, [_random()])]
    rows = [{"revision": revision, "kind": kind, "row": row} for kind, changed in noted for row in sorted(changed)]
    _NOTE.run(connection, backend, rows)
    if revision % _REVISIONS_BETWEEN_CHECKS == 0:
        if (kept := _revision_to_keep(connection, ~_is_said, revision)) is not None:
            _forget_changes(connection, kept)
        if (kept := _revision_to_keep(connection, _is_said, revision)) is not None:
            _forget_said(connection, kept)


def note_said(connection: Connection, backend: Backend, revision: int, entities: Collection[int]) -> None:
    """Note that something else is said of entities."""
    _NOTE.run(connection, backend, [{"revision": revision, "kind": _SAID, "row": row} for row in sorted(entities)])


def said_since(connection: Connection, revision: int) -> frozenset[int] | None:
    """Return the entities so noted after `revision`, None where that is no longer known."""
    if revision < meta.number(connection, _SAID_SINCE):
        return None
    rows = connection.execute(_ROWS, {"revision": revision, "kind": _SAID}).all()
    return frozenset(from_texts(rows, 1)[0].tolist())


def since(snapshot: Snapshot, revision: int) -> ChangeSet | None:
    """Return what commits after `revision` changed, None where that is no longer known."""
    first, last = meta.numbers(snapshot.connection, _SINCE, "revision")
    if not first <= revision <= last:
        return None
    chunks, entities = (
        from_texts(snapshot.connection.execute(_ROWS, {"revision": revision, "kind": kind}).all(), 1)[0]
        for kind in (_CHUNK, _ENTITY)
    )
    return ChangeSet(chunks=np.unique(chunks), entities=np.unique(entities))


def seal(connection: Connection, revision: int) -> int | None:
    """Return the number that tells this history up to `revision` from others, None where it is no longer known."""
    found: int | None = connection.scalar(_LAST_SEAL, {"revision": revision})
    return found


def forget(connection: Connection, revision: int) -> None:
    """Forget what changed before `revision`: arrays of an earlier one are then built anew."""
    changes_since, said_since = meta.number(connection, _SINCE), meta.number(connection, _SAID_SINCE)
    _forget_changes(connection, max(revision, changes_since))  # what is forgotten already stays so
    _forget_said(connection, max(revision, said_since))


def _forget_changes(connection: Connection, revision: int) -> None:
    connection.execute(_DROP.where(~_is_said), {"before": revision})
    if connection.scalar(_LAST_SEAL, {"revision": revision}) is None:
        connection.execute(d.change.insert(), {"revision": revision, "kind": _SEAL, "row": _random()})
    meta.put(connection, _SINCE, revision)


def _forget_said(connection: Connection, revision: int) -> None:
    connection.execute(_DROP.where(_is_said), {"before": revision})
    meta.put(connection, _SAID_SINCE, revision)


def _revision_to_keep(connection: Connection, kinds: ColumnElement[bool], revision: int) -> int | None:
    """Return since when changes of these kinds are kept where there are too many of them, None where not."""
    if (connection.scalar(_N_ROWS.where(kinds)) or 0) <= MAX_ROWS:
        return None
    kept: int | None = connection.scalar(_REVISION_AT.where(kinds), {"n": MAX_ROWS // 2})
    return revision if kept is None else kept


def _random() -> int:
    return secrets.randbits(_SEAL_BITS)
