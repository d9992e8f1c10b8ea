"""Migrations: a numbered, append-only list. A new index starts at the last number; an older one is brought up to it."""

from collections.abc import Callable

from sqlalchemy import Connection, inspect

from quipu.errors import Corrupt, Mismatch
from quipu.stores.relational import meta
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend

Migration = Callable[[Connection], None]


def _add_edit_table(connection: Connection) -> None:
    s.edit.create(connection, checkfirst=True)


# Position 0 brings schema 1 to 2, and so on. Never change or remove an entry.
MIGRATIONS: tuple[Migration, ...] = (_add_edit_table,)

SCHEMA = 1 + len(MIGRATIONS)


def is_current(connection: Connection) -> bool:
    """Say whether the tables are there and of this version's schema, so that opening need not write."""
    return _found_schema(connection) == SCHEMA


def prepare(connection: Connection, backend: Backend, tokenizer: str) -> None:
    """Make the tables of a new index, or bring an older one up to date.

    Raises Mismatch for an index of a newer Quipu or another tokenizer, Corrupt for a database that is not ours.
    """
    if not inspect(connection).get_table_names():
        s.metadata.create_all(connection)
        backend.create_text(connection)
        meta.put(connection, "schema", SCHEMA)
        meta.put(connection, "tokenizer", tokenizer)
        return
    found = _found_schema(connection)
    if not found:
        raise Corrupt("The database holds other tables, not a Quipu index.", remedy="Name another folder.")
    _migrate(connection, found)


def check_tokenizer(connection: Connection, tokenizer: str) -> None:
    """Raise Mismatch where full text was built with another tokenizer."""
    found = meta.get(connection, "tokenizer")
    if found != tokenizer:
        raise Mismatch(
            f"Full text was built with the tokenizer {found!r}, but {tokenizer!r} is set.",
            remedy="Run `quipu refresh --rebuild`, or set the old one again.",
        )


def _found_schema(connection: Connection) -> int:
    """Return the schema number of the index, 0 where the database is empty or not an index."""
    tables = inspect(connection)
    if not tables.has_table("meta") or {c["name"] for c in tables.get_columns("meta")} != {"key", "value"}:
        return 0
    number = meta.get(connection, "schema") or ""
    return int(number) if number.isdigit() else 0


def _migrate(connection: Connection, found: int) -> None:
    if found > SCHEMA:
        raise Mismatch(
            f"The index has schema {found}; this version of Quipu knows up to {SCHEMA}.",
            remedy="Upgrade Quipu: pip install -U quipu-rag",
        )
    for migration in MIGRATIONS[found - 1 :]:
        migration(connection)
    if found < SCHEMA:
        meta.put(connection, "schema", SCHEMA)
