"""Copying an index from one database to another: every row as it is."""

from sqlalchemy import Connection, insert, inspect, select

from quipu.errors import InvalidInput
from quipu.stores.relational import schema as s

_ROWS_AT_ONCE = 1_000


def check_empty(connection: Connection) -> None:
    """Raise InvalidInput if there is an index, or anything else, in the database."""
    if inspect(connection).get_table_names():
        raise InvalidInput("There is something in the place to copy to.", remedy="Name a folder or workspace without.")


def copy_rows(source: Connection, target: Connection) -> int:
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
    return n_rows
