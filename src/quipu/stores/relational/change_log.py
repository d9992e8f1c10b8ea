"""The change log and the derivation records: what changed since a revision, and which derivations are up to date.

Each commit logs the chunks and entities that it changed, so that arrays outside the database catch up at the cost of
the change. A row number may be used again after its row was deleted. That is safe: both changes are logged, and a
reader looks up the present content of each logged number.

Each commit also logs a history nonce, a random number. If an index is restored from a backup and changed again, its
revisions repeat those of the lost history, but its nonces differ.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, select

from quipu.model.derivation import DerivationRecord
from quipu.ports.derivation_view import ChangeSet
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import (
    Backend,
    Upsert,
    as_texts,
    from_texts,
    insert_rows,
    meta_value,
    read_number,
    read_numbers,
    write_meta,
)

MAX_ROWS = 200_000  # reading everything is cheaper than following more changes than this
_REVISIONS_BETWEEN_CHECKS = 64
_NONCE_BITS = 31

_CHUNK, _ENTITY, _MENTIONS, _NONCE = "c", "e", "m", "s"  # kinds of changes
_CHANGES_SINCE, _MENTIONS_SINCE = "changes_since", "said_since"  # the log is complete after these revisions

_c, _d = s.change.c, s.derivation.c
_INSERT = Upsert(s.change)
_ROWS = as_texts(select(_c.row).where(_c.revision > bindparam("revision"), _c.kind == bindparam("kind")))
# First the revision, then its row: ordering by both would read everything that a large commit logged.
_LAST_NONCE_REVISION = select(func.max(_c.revision)).where(_c.kind == _NONCE, _c.revision <= bindparam("revision"))
_LAST_NONCE = select(func.max(_c.row)).where(_c.kind == _NONCE, _c.revision == _LAST_NONCE_REVISION.scalar_subquery())
_is_of_mentions = _c.kind == _MENTIONS  # forgotten separately: ten times as many, and not used to update arrays
_CHANGES = select(
    *(meta_value(key).scalar_subquery() for key in (_CHANGES_SINCE, "revision")),
    *(
        as_texts(select(_c.row).where(_c.revision > bindparam("revision"), _c.kind == kind)).scalar_subquery()
        for kind in (_CHUNK, _ENTITY)
    ),
    _LAST_NONCE.scalar_subquery(),
)
_NEWEST = select(func.max(_c.revision)).where(_c.kind == _NONCE).scalar_subquery()
_NOW = select(
    *(meta_value(key).scalar_subquery() for key in ("schema", "revision")),
    select(func.max(_c.row)).where(_c.kind == _NONCE, _c.revision == _NEWEST).scalar_subquery(),
)
_N_ROWS = select(func.count()).select_from(s.change)
_REVISION_AT = select(_c.revision).order_by(_c.revision).offset(bindparam("n")).limit(1)
_DELETE = s.change.delete().where(_c.revision < bindparam("before"))


@dataclass(frozen=True, slots=True)
class CommitStamp:
    """The revision and the time (UTC) of a commit, and the documents that say something else from now on."""

    revision: int
    at: datetime
    ended: Collection[str] = ()

    @property
    def moment(self) -> str:
        """The time as text, to the microsecond."""
        return self.at.isoformat(timespec="microseconds")

    @property
    def second(self) -> str:
        """The time as text, to the second."""
        return self.at.isoformat(timespec="seconds")


def log_changes(
    connection: Connection,
    backend: Backend,
    revision: int,
    *,
    chunks: Collection[int] = (),
    entities: Collection[int] = (),
) -> None:
    """Log changed chunks and renamed entities under a revision, with a history nonce.

    A chunk changed if it was added, removed or moved, or if its words or mentions changed. The oldest changes are
    forgotten from time to time, when there are more than MAX_ROWS.
    """
    rows_by_kind = [(_CHUNK, chunks), (_ENTITY, entities), (_NONCE, [_random()])]
    rows = [{"revision": revision, "kind": kind, "row": row} for kind, rids in rows_by_kind for row in sorted(rids)]
    _INSERT.run(connection, backend, rows)
    if revision % _REVISIONS_BETWEEN_CHECKS == 0:
        if (first := _first_to_keep(connection, ~_is_of_mentions, revision)) is not None:
            _forget_changes(connection, first)
        if (first := _first_to_keep(connection, _is_of_mentions, revision)) is not None:
            _forget_mentions(connection, first)


def log_synonyms(connection: Connection, backend: Backend, revision: int, rids: Collection[int]) -> None:
    """Record in the change log that these entities have other synonyms."""
    if rids:
        log_changes(connection, backend, revision, entities=rids)


def log_mention_changes(connection: Connection, backend: Backend, revision: int, entities: Collection[int]) -> None:
    """Log that the mentions of entities in clusters changed."""
    rows = [{"revision": revision, "kind": _MENTIONS, "row": row} for row in sorted(entities)]
    _INSERT.run(connection, backend, rows)


def mention_changes_since(connection: Connection, revision: int) -> frozenset[int] | None:
    """Return the entities logged by `log_mention_changes` after `revision`, None if the log does not go back so far."""
    if revision < read_number(connection, _MENTIONS_SINCE):
        return None
    rows = connection.execute(_ROWS, {"revision": revision, "kind": _MENTIONS}).all()
    return frozenset(from_texts(rows, 1)[0].tolist())


def changes_since(connection: Connection, revision: int) -> ChangeSet | None:
    """Return what commits after `revision` changed, None if the log does not go back so far."""
    first, last, *texts, nonce = connection.execute(_CHANGES, {"revision": revision}).one()
    if not int(first or 0) <= revision <= int(last or 0):
        return None
    chunks, entities = (np.unique(from_texts([[text]], 1)[0]) for text in texts)
    return ChangeSet(chunks=chunks, entities=entities, history_nonce=nonce)


def schema_revision_and_nonce(connection: Connection) -> tuple[int, int, int | None]:
    """Return the schema number, the present revision and the history nonce."""
    now = connection.execute(_NOW).one()
    return int(now[0] or 0), int(now[1] or 0), now[2]


def history_nonce(connection: Connection, revision: int) -> int | None:
    """Return the nonce that tells this history up to `revision` from others, None if it was forgotten."""
    nonce: int | None = connection.scalar(_LAST_NONCE, {"revision": revision})
    return nonce


def forget_before(connection: Connection, revision: int) -> None:
    """Forget what changed before `revision`: arrays of earlier revisions must then be built again."""
    changes_first, mentions_first = read_numbers(connection, _CHANGES_SINCE, _MENTIONS_SINCE)
    _forget_changes(connection, max(revision, changes_first))
    _forget_mentions(connection, max(revision, mentions_first))


def _forget_changes(connection: Connection, revision: int) -> None:
    connection.execute(_DELETE.where(~_is_of_mentions), {"before": revision})
    if connection.scalar(_LAST_NONCE, {"revision": revision}) is None:
        connection.execute(s.change.insert(), {"revision": revision, "kind": _NONCE, "row": _random()})
    write_meta(connection, _CHANGES_SINCE, revision)


def _forget_mentions(connection: Connection, revision: int) -> None:
    connection.execute(_DELETE.where(_is_of_mentions), {"before": revision})
    write_meta(connection, _MENTIONS_SINCE, revision)


def _first_to_keep(connection: Connection, kinds: ColumnElement[bool], revision: int) -> int | None:
    """Return the first revision whose changes of these kinds are kept, None if there are not too many changes."""
    if (connection.scalar(_N_ROWS.where(kinds)) or 0) <= MAX_ROWS:
        return None
    middle: int | None = connection.scalar(_REVISION_AT.where(kinds), {"n": MAX_ROWS // 2})
    return revision if middle is None else middle


def _random() -> int:
    return secrets.randbits(_NONCE_BITS)


def derivation_records(connection: Connection) -> Mapping[str, DerivationRecord]:
    """Return the record of each derivation that is kept up to date, by name."""
    rows = connection.execute(select(s.derivation).order_by(_d.name))
    return {row.name: DerivationRecord(name=row.name, identity=row.identity, revision=row.revision) for row in rows}


def is_derived(connection: Connection, name: str) -> bool:
    """Say whether a derivation is kept up to date."""
    return connection.execute(select(_d.name).where(_d.name == name)).first() is not None


def oldest_derivation(connection: Connection) -> int | None:
    """Return the earliest revision from which a derivation was made, None if there are no derivations."""
    revision: int | None = connection.scalar(select(func.min(_d.revision)))
    return revision


def write_derivation_records(connection: Connection, records: Sequence[DerivationRecord]) -> None:
    """Write records in place of earlier ones of the same names."""
    if records:
        connection.execute(delete(s.derivation).where(_d.name.in_([record.name for record in records])))
        rows = [{"name": record.name, "identity": record.identity, "revision": record.revision} for record in records]
        insert_rows(connection, s.derivation, rows)
