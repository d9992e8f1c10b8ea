"""Copying an index from one database to another: every row as it is, and full text built again from the chunks."""

from collections.abc import Sequence

from sqlalchemy import Connection, insert, inspect, select

from quipu.errors import InvalidInput
from quipu.stores.relational import schema as s
from quipu.stores.relational import text_index
from quipu.stores.relational.sql import Backend, blocks
from quipu.text.words import Analyzer, split_words

_ROWS_AT_ONCE = 1_000
_CHUNKS_AT_ONCE = 200


def check_empty(connection: Connection) -> None:
    """Raise InvalidInput if there is an index, or anything else, in the database."""
    if inspect(connection).get_table_names():
        raise InvalidInput("There is something in the place to copy to.", remedy="Name a folder or workspace without.")


def copy_rows(source: Connection, target: Connection, backend: Backend, analyzer: Analyzer) -> int:
    """Copy every row from a snapshot into the empty tables of `target`; return how many rows.

    The index there gets an identity of its own. Jobs are copied with their leases, which end by the target's clock.
    """
    n_rows = 0
    for table in s.metadata.sorted_tables:
        query = select(table)
        if table is s.meta:
            query = query.where(table.c.key != "identity")
            target.execute(table.delete().where(table.c.key != "identity"))
        result = source.execute(query, execution_options={"yield_per": _ROWS_AT_ONCE})
        for rows in result.mappings().partitions(_ROWS_AT_ONCE):
            target.execute(insert(table), [dict(row) for row in rows])
            n_rows += len(rows)
    _index_text(target, backend, analyzer)
    return n_rows


def _index_text(connection: Connection, backend: Backend, analyzer: Analyzer) -> None:
    rids: Sequence[int] = connection.execute(select(s.chunk.c.rid).order_by(s.chunk.c.rid)).scalars().all()
    for block in blocks(rids, _CHUNKS_AT_ONCE):
        chunks = text_index.chunk_words(connection, block)
        rows = [text_index.index_row(chunk, split_words(chunk.text), analyzer) for chunk in chunks]
        backend.index_text(connection, rows)
