"""Changes: what commits changed of the graph, so that arrays outside the database catch up at the cost of the change.

A row number may be used again once what had it is gone. That is safe: both are noted, and who catches up reads what is
there now of each number noted.

Beside its changes each commit leaves a seal, a random number. Two histories of an index part where one of them was
taken from a backup; revisions are then the same and seals are not.
"""

import secrets
from collections.abc import Collection

import numpy as np
from sqlalchemy import Connection, bindparam, func, select

from quipu.ports.derived import Changed
from quipu.stores.relational import derived_schema as d
from quipu.stores.relational import meta
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.columns import as_texts, from_texts
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import Upsert

# More has changed then than is worth reading row by row.
MAX_ROWS = 200_000
_REVISIONS_BETWEEN_CHECKS = 64

_CHUNK, _ENTITY, _SEAL = "c", "e", "s"
_SEAL_BITS = 31
_SINCE = "changes_since"  # the log tells what changed after this revision

_g = d.change.c
_NOTE = Upsert(d.change)
_ROWS = as_texts(select(_g.row).where(_g.revision > bindparam("revision"), _g.kind == bindparam("kind")))
_LAST_SEAL = (
    select(_g.row)
    .where(_g.kind == _SEAL, _g.revision <= bindparam("revision"))
    .order_by(_g.revision.desc(), _g.row.desc())
    .limit(1)
)
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
    """Note that chunks came, went, moved or say something else, and that entities have other names or synonyms.

    Seals the revision. Forgets the oldest changes where there are too many.
    """
    noted = [(_CHUNK, chunks), (_ENTITY, entities), (_SEAL, [_random()])]
    rows = [{"revision": revision, "kind": kind, "row": row} for kind, changed in noted for row in sorted(changed)]
    _NOTE.run(connection, backend, rows)
    if revision % _REVISIONS_BETWEEN_CHECKS == 0 and (connection.scalar(_N_ROWS) or 0) > MAX_ROWS:
        _forget_half(connection, revision)


def since(snapshot: Snapshot, revision: int) -> Changed | None:
    """Return what commits after `revision` changed, None where that is no longer known."""
    first, last = meta.numbers(snapshot.connection, _SINCE, "revision")
    if not first <= revision <= last:
        return None
    chunks, entities = (
        from_texts(snapshot.connection.execute(_ROWS, {"revision": revision, "kind": kind}).all(), 1)[0]
        for kind in (_CHUNK, _ENTITY)
    )
    return Changed(chunks=np.unique(chunks), entities=np.unique(entities))


def seal(snapshot: Snapshot, revision: int) -> int | None:
    """Return the number that tells this history up to `revision` from others, None where it is no longer known."""
    found: int | None = snapshot.connection.scalar(_LAST_SEAL, {"revision": revision})
    return found


def forget(connection: Connection, revision: int) -> None:
    """Forget what changed before `revision`: arrays of an earlier one are then built anew."""
    connection.execute(_DROP, {"before": revision})
    if connection.scalar(_LAST_SEAL, {"revision": revision}) is None:
        connection.execute(d.change.insert(), {"revision": revision, "kind": _SEAL, "row": _random()})
    meta.put(connection, _SINCE, revision)


def _forget_half(connection: Connection, revision: int) -> None:
    kept = connection.scalar(_REVISION_AT, {"n": MAX_ROWS // 2})
    forget(connection, revision if kept is None else kept)


def _random() -> int:
    return secrets.randbits(_SEAL_BITS)
