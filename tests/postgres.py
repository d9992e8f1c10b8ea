"""Indexes in PostgreSQL for tests: emptied instead of made anew, which takes a tenth of the time."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import sql

from quipu.model.index_address import DatabaseAddress, parse_database_address
from quipu.stores.postgres.backend import PostgresBackend
from quipu.stores.relational.archive import copy_to_file
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.postgres_server import PostgresServer


def open_postgres(address: DatabaseAddress, busy_timeout_s: float) -> PostgresBackend:
    """Return a backend as wiring makes it."""
    draft = partial(SqliteBackend, busy_timeout_s=busy_timeout_s, is_draft=True)
    return PostgresBackend(address, busy_timeout_s=busy_timeout_s, copy_to_file=partial(copy_to_file, draft=draft))


class PostgresIndexes:
    """The indexes of a server, one for each name; `empty` makes them as they were when they were created."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self._meta_by_name: dict[str, list[Any]] = {}
        self._unused: dict[str, list[PostgresBackend]] = {}

    def backend(self, name: str, *, busy_timeout_s: float = 30.0) -> PostgresBackend:
        """Return a backend for an index, which need not exist yet."""
        return open_postgres(parse_database_address(self.server.address(_workspace(name))), busy_timeout_s)

    @contextmanager
    def lent(self, name: str) -> Iterator[PostgresBackend]:
        """Return a backend that nobody else uses meanwhile; those used before have compiled their statements."""
        unused = self._unused.setdefault(name, [])
        backend = unused.pop() if unused else self.backend(name)
        yield backend
        unused.append(backend)

    def note_created(self, name: str) -> None:
        """Note the state of an index that has just been created."""
        if name not in self._meta_by_name:
            with self._connection(name) as connection:
                self._meta_by_name[name] = connection.execute("SELECT key, value FROM meta").fetchall()

    def empty(self) -> None:
        """Empty every index."""
        for name, rows in self._meta_by_name.items():
            with self._connection(name) as connection:
                tables = connection.execute(
                    "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename"
                ).fetchall()
                deletes = [sql.SQL("DELETE FROM {}").format(sql.Identifier(table)) for (table,) in tables]
                connection.execute(sql.SQL("; ").join(deletes))
                for row in rows:
                    connection.execute("INSERT INTO meta VALUES (%s, %s)", row)

    @contextmanager
    def _connection(self, name: str) -> Iterator["psycopg.Connection[Any]"]:
        with psycopg.connect(self.server.uri(), options=f'-c search_path="quipu_{_workspace(name)}"') as connection:
            yield connection


def _workspace(name: str) -> str:
    return name.replace(" ", "-")
