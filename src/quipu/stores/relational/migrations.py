"""Migrations: a numbered, append-only list. A new index starts at the last number; an older one is brought up to it."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Column, Connection, inspect
from sqlalchemy.schema import CreateColumn

from quipu.errors import Corrupt, Mismatch, Unavailable
from quipu.stores.relational import change_log, fold, text_index
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import Backend, read_meta, read_number, write_meta
from quipu.text.words import Analyzer

Migration = Callable[[Connection], None]


def _add_edit_table(connection: Connection) -> None:
    s.edit.create(connection, checkfirst=True)


def _add_headers_and_shorten_spaces(connection: Connection) -> None:
    for table in ("vector", "vector_gone", "vector_todo"):
        connection.exec_driver_sql(f"UPDATE {table} SET space = substr(space, 1, 1)")
    for column in (s.chunk.c.header, s.job.c.chunking):
        _add_column(connection, column)


def _add_column(connection: Connection, column: Column[Any]) -> None:
    if column.name not in {
        existing_column["name"] for existing_column in inspect(connection).get_columns(column.table.name)
    }:
        connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {CreateColumn(column)}")


def _add_usage_and_summaries(connection: Connection) -> None:
    columns = (s.reply.c.lifetime, s.reply_document.c.version, s.entity.c.described_by, s.relation.c.described_by)
    for column in columns:
        _add_column(connection, column)
    for table in (s.reply_source, s.summary, s.usage, s.claim_mention):
        table.create(connection, checkfirst=True)
    for table in (s.reply, s.entity, s.relation):
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    fold.mark_waiting(connection)


def _add_derivations(connection: Connection) -> None:
    derived = (s.change, s.derivation, s.cluster, s.membership, s.report, s.cluster_relation)
    for table in (*derived, s.synonym, s.entity_name, s.sentence):
        table.create(connection, checkfirst=True)
    _add_column(connection, s.document.c.stands_since)
    change_log.forget_before(connection, read_number(connection, "revision"))


# Position 0 brings schema 1 to 2, and so on. Never change or remove an entry.
MIGRATIONS: tuple[Migration, ...] = (
    _add_edit_table,
    _add_headers_and_shorten_spaces,
    _add_usage_and_summaries,
    _add_derivations,
)

SCHEMA = 1 + len(MIGRATIONS)
_TEXT_SINCE = 3  # the first schema whose full text holds what it holds now; that of an older index is built anew


def is_current(connection: Connection) -> bool:
    """Say whether the tables are there and of this version's schema, so that opening need not write."""
    return _found_schema(connection) == SCHEMA


def prepare(connection: Connection, backend: Backend, analyzer: Analyzer) -> None:
    """Make the tables of a new index, or bring an older one up to date.

    Raises Mismatch for an index of a newer Quipu, Corrupt for a database that is not ours.
    """
    if not inspect(connection).get_table_names():
        s.metadata.create_all(connection, checkfirst=False)
        backend.create_text(connection)
        write_meta(connection, "schema", SCHEMA)
        write_meta(connection, "tokenizer", analyzer.identity)
        return
    schema_number = _found_schema(connection)
    if not schema_number:
        raise Corrupt("The database holds other tables, not a Quipu index.", remedy="Name another folder.")
    _migrate(connection, schema_number)
    if schema_number < _TEXT_SINCE and _segmenter(read_meta(connection, "tokenizer")) == _segmenter(analyzer.identity):
        text_index.rebuild(connection, backend, analyzer, text_index.BloomFilter())


def explain(connection: Connection, error: Unavailable) -> None:
    """Raise Unavailable with its cause and a way out where an older index could not be brought up to date."""
    if schema_number := _found_schema(connection):
        raise Unavailable(
            f"The index has schema {schema_number} and must be brought to {SCHEMA}, which failed: {error.message}",
            remedy="Run `quipu status` once where and as someone who may write to it; then reading is enough.",
        ) from error


def _segmenter(tokenizer: str | None) -> str:
    """Return the segmenter in a tokenizer's identity: another one is not to be put in its place unasked."""
    return (tokenizer or "").partition("+")[2]


def check_schema(schema: int) -> None:
    """Raise Mismatch where another version has brought the index to another schema since it was opened."""
    if schema != SCHEMA:
        raise Mismatch(
            f"Another version of Quipu has brought the index from schema {SCHEMA} to {schema} while it was open.",
            remedy="Stop this process and start it again with that version: pip install -U quipu-rag",
        )


def check_tokenizer(connection: Connection, tokenizer: str) -> None:
    """Raise Mismatch where full text was built with another tokenizer."""
    index_tokenizer = read_meta(connection, "tokenizer")
    if index_tokenizer != tokenizer:
        raise Mismatch(
            f"Full text was built with the tokenizer {index_tokenizer!r}, but {tokenizer!r} is set.",
            remedy="Run `quipu refresh --rebuild`, or set the old one again.",
        )


def _found_schema(connection: Connection) -> int:
    """Return the schema number of the index, 0 where the database is empty or not an index."""
    tables = inspect(connection)
    if not tables.has_table("meta") or {c["name"] for c in tables.get_columns("meta")} != {"key", "value"}:
        return 0
    number = read_meta(connection, "schema") or ""
    return int(number) if number.isdigit() else 0


def _migrate(connection: Connection, schema_number: int) -> None:
    if schema_number > SCHEMA:
        raise Mismatch(
            f"The index has schema {schema_number}; this version of Quipu knows up to {SCHEMA}.",
            remedy="Upgrade Quipu: pip install -U quipu-rag",
        )
    for migration in MIGRATIONS[schema_number - 1 :]:
        migration(connection)
    if schema_number < SCHEMA:
        write_meta(connection, "schema", SCHEMA)
