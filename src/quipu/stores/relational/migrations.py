"""Migrations: how the tables of an index of an older version of Quipu are brought up to date."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Column, Connection, Table, inspect, select
from sqlalchemy.schema import CreateColumn

from quipu.errors import Mismatch, Unavailable
from quipu.model.document import stated_end, stated_start
from quipu.stores.relational import (
    change_log,
    conversations,
    edits,
    fold,
    history,
    postings,
    repair,
    text_index,
    vector_writes,
)
from quipu.stores.relational import schema as s
from quipu.stores.relational.snapshot import BloomFilter, schema_number
from quipu.stores.relational.sql import metadata_from_json, read_meta, read_number, write_meta
from quipu.text.words import Analyzer


def migrate(connection: Connection, analyzer: Analyzer, number: int) -> None:
    """Bring the tables of schema `number` up to date. Raises Mismatch for the index of a newer version."""
    if number > SCHEMA:
        raise Mismatch(
            f"The index has schema {number}, but this version of Quipu supports schemas up to {SCHEMA}.",
            remedy="Upgrade Quipu: pip install -U quipu-rag",
        )
    for migration in MIGRATIONS[number - 1 :]:
        migration(connection)
    write_meta(connection, "schema", SCHEMA)
    if number < _TERMS_SCHEMA:
        _build_terms(connection, analyzer, number)


def _build_terms(connection: Connection, analyzer: Analyzer, number: int) -> None:
    """Build full text and links again. Another segmenter must not be put in unasked."""
    tokenizer = read_meta(connection, "tokenizer")
    if _segmenter(tokenizer) != _segmenter(analyzer.identity):
        write_meta(connection, "tokenizer", f"{tokenizer} of schema {number}")  # `check_tokenizer` says what to do
    else:
        text_index.rebuild(connection, analyzer, BloomFilter())


def _segmenter(tokenizer: str | None) -> str:
    """Return the segmenter in a tokenizer's identity. A migration does not replace one segmenter by another."""
    return (tokenizer or "").partition("+")[2]


def _add_headers_and_shorten_spaces(connection: Connection) -> None:
    for table in ("vector", "vector_gone", "vector_todo"):
        connection.exec_driver_sql(f"UPDATE {table} SET space = substr(space, 1, 1)")
    _add_columns(connection, s.chunk.c.header, s.job.c.chunking)


def _add_usage_and_summaries(connection: Connection) -> None:
    _add_columns(
        connection, s.reply.c.lifetime, s.reply_document.c.version, s.entity.c.described_by, s.relation.c.described_by
    )
    for table in (s.reply_source, s.summary, s.usage, s.claim_mention):
        table.create(connection, checkfirst=True)
    _create_indexes(connection, s.reply, s.entity, s.relation)
    fold.mark_waiting(connection)


def _add_derivations(connection: Connection) -> None:
    derived = (s.change, s.derivation, s.cluster, s.membership, s.report, s.cluster_relation)
    for table in (*derived, s.synonym, s.entity_name, s.sentence):
        table.create(connection, checkfirst=True)
    _add_columns(connection, s.document.c.stands_since)
    change_log.forget_before(connection, read_number(connection, "revision"))


def _add_spellings(connection: Connection) -> None:
    s.spelling.create(connection, checkfirst=True)
    connection.execute(s.spelling.delete())
    text_index.add_spellings(connection)


def _add_words_and_checksums(connection: Connection) -> None:
    _add_columns(connection, s.name.c.words)
    text_index.add_words(connection)
    connection.exec_driver_sql("DROP INDEX IF EXISTS name_anchor")
    if "anchor" in _column_names(connection, "name"):
        connection.exec_driver_sql("ALTER TABLE name DROP COLUMN anchor")
    _create_indexes(connection, s.name)
    checked = [table for table in s.CHECKED if table is not s.edit]
    _add_columns(connection, *(table.c.checksum for table in checked))
    for table in checked:
        if table is not s.document:  # it gets more columns below
            repair.write_checksums(connection, table)


def _add_edits(connection: Connection) -> None:
    s.metadata.create_all(connection, edits.TABLES)
    _add_columns(connection, s.edit.c.undone_at, s.edit.c.checksum)


def _create_indexes(connection: Connection, *tables: Table) -> None:
    """Create the indexes of tables where they are missing."""
    for table in tables:
        for index in table.indexes:
            index.create(connection, checkfirst=True)


def _add_columns(connection: Connection, *columns: Column[Any]) -> None:
    """Add columns to their tables where they are missing."""
    for column in columns:
        table = column.table.name
        if column.name not in _column_names(connection, table):
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {definition}")


def _column_names(connection: Connection, table: str) -> set[str]:
    """Return the names of the columns that a table has in the database."""
    return {column["name"] for column in inspect(connection).get_columns(table)}


def _replace_full_text_of_backends(connection: Connection) -> None:
    of_sqlite = ("chunk_vocabulary", "capital_vocabulary", "chunk_terms", "chunk_capitals")
    for table in (*of_sqlite, "chunk_length", "chunk_term", "chunk_capital"):
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")
    s.metadata.create_all(connection, postings.TABLES)


def _add_times_and_history(connection: Connection) -> None:
    s.metadata.create_all(connection, history.TABLES)
    d = s.document.c
    _add_columns(connection, d.since, d.holds_from, d.holds_until)
    for row in connection.execute(select(d.rid, d.metadata, d.updated_at)).all():
        metadata = metadata_from_json(row.metadata)
        start, end = stated_start(metadata) or row.updated_at, stated_end(metadata)
        times = {"since": row.updated_at, "holds_from": start, "holds_until": end}
        connection.execute(s.document.update().where(d.rid == row.rid).values(times))
    repair.write_checksums(connection, s.document)


def _add_questions(connection: Connection) -> None:
    s.question.create(connection, checkfirst=True)
    vector_writes.retarget(connection, text_index.rebuild_questions(connection), read_number(connection, "revision"))


# Position 0 migrates schema 1 to 2, and so on. Never change or remove an entry.
MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    lambda connection: s.edit.create(connection, checkfirst=True),
    _add_headers_and_shorten_spaces,
    _add_usage_and_summaries,
    _add_derivations,
    _add_spellings,
    _add_words_and_checksums,
    lambda _: None,  # schema 8 had other terms of full text
    lambda connection: s.metadata.create_all(connection, [s.document_content, s.content_part]),
    lambda connection: s.metadata.create_all(connection, conversations.TABLES),
    _add_edits,
    _replace_full_text_of_backends,
    _add_times_and_history,
    lambda _: None,  # schema 14 had names of files in full text
    lambda _: None,  # schema 15 had options of commands in full text
    lambda _: None,  # schema 16 had identifiers in full text, and no marks of footnotes in words
    _add_questions,
    lambda _: None,  # schema 18 has the names of passages and their links as keys of full text
    lambda _: None,  # schema 19 has Russian words of full text by other stems (_TERMS_SCHEMA)
)
SCHEMA = 1 + len(MIGRATIONS)
_TERMS_SCHEMA = 19  # the first schema with the present terms of full text; those of an older one are made again


def explain_failed_migration(connection: Connection, error: Unavailable) -> None:
    """Raise Unavailable with the cause and a remedy if the database is an index, which then is an older one."""
    if number := schema_number(connection):
        raise Unavailable(
            f"The index has schema {number} and could not be migrated to schema {SCHEMA}: {error.message}",
            remedy="Run `quipu status` once as a user who may write to the index. After that, reading is enough.",
        ) from error
