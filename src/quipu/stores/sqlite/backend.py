"""SQLite: one file with a write-ahead log, snapshots for readers, one writer at a time."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Double,
    Engine,
    MetaData,
    Select,
    Table,
    TableClause,
    create_engine,
    create_mock_engine,
    event,
    func,
    insert,
)
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.util import LRUCache

from quipu.atomic_file import move_durably, remove_files
from quipu.errors import Busy, Corrupt, InvalidInput, Unavailable

_RETRY_S = 0.02
# Views map the file, which makes a first question a fifth faster; writers do not, or all they touch counts as theirs.
_MAPPED_BYTES = 2_147_418_112

# Two values that every index has from the start.
_INDEX_VALUES = "SELECT count(*) FROM meta WHERE key IN ('schema', 'tokenizer')"

_CLOCK: ColumnElement[float] = (func.julianday("now", type_=Double) - 2440587.5) * 86400.0  # 1970-01-01: 2440587.5
_MAX_COMPILED = 1_000  # statements: more than there are in this package


class SharedDialect(SQLiteDialect_pysqlite):
    """SQLite's SQL. All are equal, so what is compiled for one database serves every other one of this process."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedDialect)

    def __hash__(self) -> int:
        return hash(SharedDialect)


registry.register("sqlite.shared", __name__, SharedDialect.__name__)


class SqliteBackend:
    """One file. Readers see snapshots and never wait; a second writer waits up to `busy_timeout_s`.

    A file `is_draft` that nobody else knows yet: it has no log, and is lost if it is not completed.
    """

    def __init__(self, path: Path, *, busy_timeout_s: float, is_draft: bool = False) -> None:
        self._path = path
        self._wait_s = busy_timeout_s
        self._file: tuple[int, int] | None = None  # device and inode of the file that the first connection opened
        self._engine = _engine(path, busy_timeout_s, self._check_in_place, is_draft=is_draft)
        self._views = _engine(path, busy_timeout_s, self._check_in_place, mapped_bytes=_MAPPED_BYTES)

    def reading(self) -> AbstractContextManager[Connection]:
        """Return a connection inside a read-only snapshot."""
        return self._snapshot(self._engine)

    def viewing(self) -> AbstractContextManager[Connection]:
        """Return a connection inside a read-only snapshot that is asked many things: it maps the file."""
        return self._snapshot(self._views)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Return a connection inside the write transaction."""
        with self._connection(self._engine) as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                self._check_in_place()
                yield connection
                self._check_in_place()
            except BaseException:
                with suppress(OperationalError):  # a full disk has rolled back already
                    connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")

    def insert(self, table: Table) -> Any:
        """Return SQLite's INSERT."""
        return sqlite_insert(table)

    def unique_key(self, table: Table) -> Sequence[Any]:
        """Return the primary key."""
        return list(table.primary_key)

    def clock_s(self) -> ColumnElement[float]:
        """Return the time of this machine: only its processes open the file."""
        return _CLOCK

    def n_bytes(self, connection: Connection) -> int:
        """Return 0: the file is in the folder of the index."""
        return 0

    def restrict(self, connection: Connection, table: TableClause, rows: Select[Any]) -> None:
        """Fill a temporary table."""
        connection.exec_driver_sql(f"CREATE TEMP TABLE IF NOT EXISTS {table.name} (rid INTEGER PRIMARY KEY)")
        connection.exec_driver_sql(f"DELETE FROM temp.{table.name}")
        connection.execute(insert(table).from_select(["rid"], rows))

    def create_tables(self, connection: Connection, metadata: MetaData) -> None:
        """Make the tables."""
        for statement in _table_statements(metadata):
            connection.exec_driver_sql(statement)

    def empty_log(self) -> bool:
        """Copy the write-ahead log into the file and truncate it; return False if a reader or writer blocks this."""
        with self._connection(self._engine) as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout = 0")
            try:
                (is_blocked, *_) = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            finally:
                connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(self._wait_s * 1000)}")
        return not is_blocked

    def damage(self, connection: Connection, *, is_quick: bool = False) -> list[str]:
        """Return what SQLite's own check finds wrong with the file."""
        lines = connection.exec_driver_sql(f"PRAGMA {'quick' if is_quick else 'integrity'}_check(20)").scalars()
        return [f"the database file: {line}" for line in lines if line != "ok"]

    def copy_to(self, connection: Connection, file: Path) -> None:
        """Write what a snapshot sees into a new database file."""
        source: Any = connection.connection.driver_connection
        try:
            with closing(sqlite3.connect(file)) as copy:
                source.backup(copy)
        except sqlite3.Error as error:
            remedy = "Check that the folder can be written and has room for a second index."
            raise Unavailable(f"The index cannot be copied to {file} ({error}).", remedy=remedy) from error

    def close(self) -> None:
        """Release every connection."""
        self._views.dispose()
        self._engine.dispose()

    @contextmanager
    def _snapshot(self, engine: Engine) -> Iterator[Connection]:
        with self._connection(engine) as connection:
            connection.exec_driver_sql("BEGIN")
            try:
                yield connection
            finally:
                connection.exec_driver_sql("ROLLBACK")

    @contextmanager
    def _connection(self, engine: Engine) -> Iterator[Connection]:
        if self._file:
            self._check_in_place()  # before connecting, which would create a file that was deleted
        with self.guard(), engine.connect() as connection:
            yield connection

    def _check_in_place(self) -> None:
        """Raise Unavailable if the file was deleted or replaced since the first connection opened it.

        Connections of the pool keep the old file open, so writes would be lost and new connections would see another
        database. While a connection is open, the system gives its inode to no other file.
        """
        try:
            status = self._path.stat()
            file = status.st_dev, status.st_ino
        except (FileNotFoundError, NotADirectoryError):
            file = (-1, -1)
        self._file = self._file or file
        if file != self._file:
            raise Unavailable(
                f"{self._path} was deleted or replaced while it was open.",
                remedy="Nothing more is written to it; open the index again.",
            )

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Convert errors of the driver to errors of Quipu."""
        try:
            yield
        except UnicodeEncodeError as error:
            excerpt = str(error.object)[max(0, error.start - 40) : error.end + 40].strip('[]"')  # ids come as a list
            raise InvalidInput(
                f"{excerpt!r} holds a lone surrogate: bytes that are not UTF-8 text.",
                remedy="Write it as UTF-8.",
            ) from error
        except OperationalError as error:
            if "locked" in str(error.orig) or "busy" in str(error.orig):
                raise Busy(
                    f"Another process has been writing to {self._path} for more than {self._wait_s:g} s.",
                    remedy="Wait for it, stop it, or raise `busy_timeout_s`.",
                ) from error
            raise Unavailable(
                f"{self._path}: {error.orig}.",
                remedy="Check that the folder exists, can be written and has room; nothing committed is lost.",
            ) from error
        except UnicodeDecodeError as error:  # SQLite's message quotes bytes of a damaged schema
            raise self._damaged("its schema is no text") from error
        except DatabaseError as error:
            if "malformed" in str(error.orig) or "not a database" in str(error.orig):
                raise self._damaged(str(error.orig)) from error
            raise

    def _damaged(self, reason: str) -> Corrupt:
        return Corrupt(
            f"{self._path} is damaged or not a Quipu index ({reason}).",
            remedy="Restore it from a copy, or delete the folder and add the documents again.",
        )


def _engine(
    path: Path, wait_s: float, check_in_place: Callable[[], None], *, mapped_bytes: int = 0, is_draft: bool = False
) -> Engine:
    is_fixed = _cannot_change(path)
    query = {"immutable": "1", "uri": "true"} if is_fixed else {}
    engine = create_engine(
        # A path is no URL: "?" and "%20" are letters in it.
        URL.create("sqlite+shared", database=f"file:{quote(str(path))}" if is_fixed else str(path), query=query),
        connect_args={"check_same_thread": False, "timeout": wait_s, "isolation_level": None},
        pool_size=8,
        pool_use_lifo=True,  # the connection used last has its pages in memory
        max_overflow=-1,
        execution_options={"compiled_cache": _compiled_statements()},
    )

    @event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, _: object) -> None:
        if not is_fixed and not is_draft:
            _use_log(connection, wait_s)
        for pragma in (
            *(("journal_mode = OFF",) if is_draft else ()),
            f"synchronous = {'OFF' if is_draft else 'FULL'}",
            "wal_autocheckpoint = 8000",  # pages, 32 MB: pages that change again and again are copied back less often
            "journal_size_limit = 67108864",
            "temp_store = MEMORY",
            "secure_delete = ON",  # what is removed is overwritten, whatever SQLite was built with
            f"cache_size = {-4_096 if mapped_bytes else -8_192}",  # what is mapped needs none
            f"mmap_size = {mapped_bytes}",
            "case_sensitive_like = ON",
        ):
            connection.execute(f"PRAGMA {pragma}")
        check_in_place()

    return engine


@cache
def _compiled_statements() -> LRUCache[Any, Any]:
    """Return the statements that any engine has compiled, which takes longer than most take to run."""
    return LRUCache(_MAX_COMPILED)


@cache
def _table_statements(metadata: MetaData) -> tuple[str, ...]:
    """Return the statements that make the tables and their indexes."""
    statements: list[str] = []
    dialect = SharedDialect()
    engine = create_mock_engine("sqlite://", lambda sql, *_, **__: statements.append(str(sql.compile(dialect=dialect))))
    metadata.create_all(engine, checkfirst=False)
    return tuple(statements)


def _use_log(connection: sqlite3.Connection, wait_s: float) -> None:
    """Have the database write ahead to a log. Switching a new file does not wait for its lock, as all else does."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)


def _cannot_change(path: Path) -> bool:
    """Say whether the index lies where nobody here can write, with no log to be read back: then it needs no locks."""
    log = path.with_name(f"{path.name}-wal")
    return path.exists() and not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)


def is_index(file: Path) -> bool:
    """Say whether a file is the database of an index, without opening it for writing; False if it cannot be read.

    SQLite itself reads the file: closing it after other reads would release the locks that this process has on it
    (sqlite.org, How To Corrupt An SQLite Database File, 2.2). No file is written beside it. Without a log, no locks are
    needed.
    """
    try:
        if not file.is_file():  # opening a pipe would block
            return False
        has_log = file.with_name(f"{file.name}-wal").exists()
        address = f"{file.absolute().as_uri()}?{'mode=ro' if has_log else 'immutable=1'}"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return bool(connection.execute(_INDEX_VALUES).fetchone() == (2,))
    except (OSError, sqlite3.Error):
        return False


def replace_database(unfinished: Path, database: Path, *, busy_timeout_s: float) -> None:
    """Move a complete database to `database`, in place of an earlier one or of none.

    Processes that have the earlier file open get Unavailable from then on. Raises Busy while another process uses it.
    """
    with _unused(database, busy_timeout_s):
        move_durably(unfinished, database)
        _remove_logs(database)


def remove_database(database: Path) -> None:
    """Remove a database with its log, where there is one."""
    _remove_logs(database)
    remove_files([database])


@contextmanager
def _unused(database: Path, wait_s: float) -> Iterator[None]:
    """Keep others from writing to a database whose log is empty, so that its file can be replaced.

    A log that is not empty would be read as one of the new file. Raises Busy while another process reads or writes.
    """
    if not database.exists():
        yield
        return
    deadline = time.monotonic() + wait_s
    with closing(sqlite3.connect(database, timeout=wait_s, isolation_level=None)) as connection:
        while True:
            with suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.execute("BEGIN IMMEDIATE")
                if not _log_of(database).exists() or not _log_of(database).stat().st_size:
                    break
                connection.execute("ROLLBACK")
            if time.monotonic() > deadline:
                raise Busy(f"Another process uses {database}.", remedy="Stop it, or wait for it, and restore again.")
            time.sleep(_RETRY_S)
        yield


def _log_of(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def _remove_logs(database: Path) -> None:
    remove_files([_log_of(database), database.with_name(f"{database.name}-shm")])
