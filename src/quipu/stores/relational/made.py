"""Which derivations are kept, by what they were made, and of which revision."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, func, select

from quipu.model.derivation import DerivationRecord
from quipu.stores.relational import derived_schema as d
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import insert_rows

_c = d.derivation.c


def read(snapshot: Snapshot) -> Mapping[str, DerivationRecord]:
    """Return the derivations that are kept, by name."""
    rows = snapshot.connection.execute(select(d.derivation).order_by(_c.name))
    return {row.name: DerivationRecord(name=row.name, identity=row.identity, revision=row.revision) for row in rows}


def is_kept(connection: Connection, name: str) -> bool:
    """Say whether a derivation is kept."""
    return connection.execute(select(_c.name).where(_c.name == name)).first() is not None


def oldest(connection: Connection) -> int | None:
    """Return the earliest revision a derivation that is kept was made of, None where none is kept."""
    revision: int | None = connection.scalar(select(func.min(_c.revision)))
    return revision


def write(connection: Connection, made: Sequence[DerivationRecord]) -> None:
    """Note that derivations were made, in place of what was noted of them before."""
    if made:
        connection.execute(delete(d.derivation).where(_c.name.in_([each.name for each in made])))
        rows = [{"name": each.name, "identity": each.identity, "revision": each.revision} for each in made]
        insert_rows(connection, d.derivation, rows)
