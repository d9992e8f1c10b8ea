"""PostgreSQL: a schema for each index, one writer at a time under an advisory lock, readers in snapshots.

A round trip to the server may take a millisecond, which is longer than most statements run. So a statement whose result
nobody reads, such as an INSERT, is sent without waiting, in the pipeline mode of libpq; the next one that is read waits
for all of them, and raises the error if one has failed.
"""

import hashlib
import selectors
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Engine,
    MetaData,
    Select,
    Table,
    TableClause,
    Text,
    cast,
    create_engine,
    event,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from quipu.errors import Busy, InvalidInput, NotFound, QuipuError, Unavailable
from quipu.model.index_address import DatabaseAddress
from quipu.stores.postgres import PostgresState, read_state

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as missing:
    raise Unavailable("PostgreSQL needs psycopg.", remedy="pip install 'quipu-rag[postgres]'") from missing

CopyToFile = Callable[[Connection, Path], None]

_POOL_SIZE, _MAX_CONNECTIONS = 5, 20
# Of each session. Compiling a query takes longer than running ours. A writer whose machine is gone is given up, and
# with it its lock, after two minutes.
_SESSION = {
    "application_name": "quipu",
    "jit": "off",
    "timezone": "UTC",
    "tcp_keepalives_idle": "60",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "6",
}

_READ = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
# The lock comes first: each statement after it sees all that earlier writers have committed.
_WRITE = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    "SET LOCAL lock_timeout = {wait_ms}",
    "SELECT pg_advisory_xact_lock({lock})",
    "SET LOCAL lock_timeout = 0",
)
# How the statements begin whose result nobody reads; RETURNING and the option `preserve_rowcount` say that it is read.
_UNREAD = ("BEGIN", "CREATE", "DELETE", "END", "INSERT", "SELECT pg_advisory", "SET LOCAL", "UPDATE")
# After these psycopg forgets what it has prepared, and has the server forget it: at once only outside of a pipeline.
_FORGETTING = ("ALTER", "DROP", "ROLLBACK")

_N_BYTES = """
    SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
"""

# What may be longer than a row of a b-tree (2,704 bytes): such a column of a primary key gives way to its digest, and
# one that is unique alone is kept so by a hash index.
_LONG_PARTS = {
    "entity_surface": "surface",
    "entity_type": "type",
    "relation_keyword": "keyword",
    "reply_document": "document",
    "usage": "subject",
}
_LONG_UNIQUE = {"document": "id", "job": "document"}
_LONG_INDEXES = (
    "CREATE INDEX reply_document_document ON reply_document USING hash (document)",
    "DROP INDEX metadata_value_field",
    "CREATE INDEX metadata_value_field ON metadata_value (field)",
)

# By SQLSTATE, or its first two characters (PostgreSQL, Appendix A). "{message}" is what the server says.
_READ_ONLY = "Ask as this user, and write as one who may; a standby never can: docs/scaling.md."
_REMEDIES = {
    "42501": "Grant what docs/scaling.md lists, or connect as the owner of the index.",
    "25006": _READ_ONLY,
    "25001": _READ_ONLY,
    "0A000": _READ_ONLY,
    "3D000": "Create it: createdb NAME.",
    "28": "Check the user, ~/.pgpass or PGPASSWORD, and pg_hba.conf of the server.",
    "53": "Give the server room, memory or connections (max_connections); nothing committed is lost.",
    "40": "Try again; nothing was changed.",
    "57": "Try again when the server is back; nothing committed is lost.",
    "08": "Check that the server runs and the network is up; nothing committed is lost.",
}


class PostgresBackend:
    """One schema of a database. Readers never wait; a second writer waits up to `busy_timeout_s`."""

    def __init__(
        self, address: DatabaseAddress, *, busy_timeout_s: float, copy_to_file: CopyToFile | None = None
    ) -> None:
        self._copy_to_file = copy_to_file
        self._address = address
        self._wait_s = busy_timeout_s
        self._schema = f"quipu_{address.workspace}"
        lock = int.from_bytes(hashlib.sha256(self._schema.encode()).digest()[:8], signed=True)
        wait_ms = max(1, round(busy_timeout_s * 1000))
        self._begin_write = [statement.format(wait_ms=wait_ms, lock=lock) for statement in _WRITE]
        self._engine = _engine(address, self._schema, busy_timeout_s)

    def reading(self) -> AbstractContextManager[Connection]:
        """Return a connection inside a read-only snapshot."""
        return self._transaction(_READ, "END")

    def viewing(self) -> AbstractContextManager[Connection]:
        """Return a connection inside a read-only snapshot."""
        return self._transaction(_READ, "END")

    def writing(self) -> AbstractContextManager[Connection]:
        """Return a connection inside the write transaction."""
        return self._transaction(self._begin_write, "COMMIT")

    def insert(self, table: Table) -> Any:
        """Return PostgreSQL's INSERT."""
        return postgres_insert(table)

    def unique_key(self, table: Table) -> Sequence[Any]:
        """Return the primary key, with a digest in place of what may be long."""
        long = _LONG_PARTS.get(table.name)
        return [func.md5(column) if column.name == long else column for column in table.primary_key]

    def clock_s(self) -> ColumnElement[float]:
        """Return the time of the server."""
        return cast(func.extract("epoch", func.clock_timestamp()), Double)

    def n_bytes(self, connection: Connection) -> int:
        """Return the size of all tables of the schema, with their indexes."""
        return int(connection.exec_driver_sql(_N_BYTES).scalar_one())

    def restrict(self, connection: Connection, table: TableClause, rows: Select[Any]) -> None:
        """Set a variable of the transaction to an array of the rows."""
        array = cast(func.array(rows.scalar_subquery()), Text)
        connection.execute(select(func.set_config(f"quipu.{table.name}", array, True)))

    def create_tables(self, connection: Connection, metadata: MetaData) -> None:
        """Make the schema, unless it was made for us, and the tables."""
        exists = connection.exec_driver_sql("SELECT current_schema() IS NOT NULL").scalar_one()
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding != "UTF8":
            raise InvalidInput(
                f"The database holds text as {encoding}, and an index needs UTF8.",
                remedy="createdb --encoding UTF8 --template template0 NAME",
            )
        if not exists:
            connection.exec_driver_sql(f'CREATE SCHEMA "{self._schema}"')
        metadata.create_all(connection, checkfirst=False)
        for table, column in _LONG_UNIQUE.items():
            connection.exec_driver_sql(
                f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_key, "
                f"ADD CONSTRAINT {table}_{column}_key EXCLUDE USING hash ({column} WITH =)"
            )
        for table, long in _LONG_PARTS.items():
            names = [column.name for column in metadata.tables[table].primary_key]
            key = ", ".join(f"md5({name})" if name == long else name for name in names)
            connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey")
            connection.exec_driver_sql(f"CREATE UNIQUE INDEX {table}_pkey ON {table} ({key})")
        for statement in _LONG_INDEXES:
            connection.exec_driver_sql(statement)

    def empty_log(self) -> bool:
        """Do nothing: the log is the server's."""
        return True

    def damage(self, connection: Connection, *, is_quick: bool = False) -> list[str]:
        """Return nothing: PostgreSQL checks its pages itself, where data checksums are on."""
        return []

    def state(self) -> PostgresState:
        """Return what the server is, and what it lets this user do."""
        with self.guard(), self._engine.connect() as connection:
            return read_state(connection, self._schema)

    def copy_to(self, connection: Connection, file: Path) -> None:
        """Write what a snapshot sees into a new database file, by the function that this was made with."""
        if self._copy_to_file is None:
            raise Unavailable(f"{self._name} was opened without a way to copy it to a file.")
        self._copy_to_file(connection, file)

    def close(self) -> None:
        """Release every connection."""
        self._engine.dispose()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Convert errors of the driver to errors of Quipu."""
        try:
            yield
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"{error.object[max(0, error.start - 40) : error.end + 40]!r} holds a lone surrogate: bytes that are "
                "not UTF-8 text.",
                remedy="Write it as UTF-8.",
            ) from error
        except PoolTimeout as error:
            raise Unavailable(
                f"All {_MAX_CONNECTIONS} connections to {self._name} have been in use for {self._wait_s:g} s.",
                remedy="Ask less at once.",
            ) from error
        except DBAPIError as error:
            raise self._converted(error) from error

    @property
    def _name(self) -> str:
        """The workspace and the address without parameters, for messages."""
        return f"the workspace {self._address.workspace!r} of {self._address.uri.partition('?')[0]}"

    def _converted(self, error: DBAPIError) -> QuipuError:
        state = getattr(error.orig, "sqlstate", None) or ""
        reason = str(error.orig).strip().partition("\n")[0].rstrip(".")
        if state == "55P03":
            return Busy(
                f"Another process has been writing to {self._name} for more than {self._wait_s:g} s.",
                remedy="Wait for it, stop it, or raise `busy_timeout_s`.",
            )
        if state.startswith("22") or isinstance(error.orig, psycopg.DataError):
            return InvalidInput(f"PostgreSQL cannot store a value: {reason}.", remedy="Leave it out.")
        if state in ("3F000", "42P01"):
            return NotFound(f"There is no index in {self._name}.", remedy="Add documents first: quipu add PATH")
        remedy = _REMEDIES.get(state) or _REMEDIES.get(state[:2])
        if remedy is None and not isinstance(error, OperationalError | InterfaceError):
            raise error
        return Unavailable(f"{self._name}: {reason}.", remedy=remedy or _REMEDIES["08"])

    @contextmanager
    def _transaction(self, begin: Sequence[str], end: str) -> Iterator[Connection]:
        with self.guard(), self._engine.connect() as connection:
            connection.dialect.default_schema_name = self._schema  # it was asked for before the schema existed
            try:
                for statement in begin:
                    connection.exec_driver_sql(statement)
                yield connection
                connection.exec_driver_sql(end)
            except BaseException:
                _roll_back(connection)
                raise


class _Pipelined(psycopg.Connection[Any]):
    """A connection with the pipeline in which statements have been sent that nobody has waited for, if any."""

    _unread: AbstractContextManager[psycopg.Pipeline] | None = None

    def begin_unread(self) -> None:
        """Send what follows without waiting."""
        if self._unread is None:
            self._unread = self.pipeline()
            self._unread.__enter__()

    def finish_unread(self) -> None:
        """Wait for all that was sent; raises the error of the first statement that failed."""
        unread, self._unread = self._unread, None
        if unread is not None:
            unread.__exit__(None, None, None)

    def close(self) -> None:
        """Close the connection, after what was sent."""
        with suppress(psycopg.Error):
            self.finish_unread()
        super().close()


def _execute(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    """Run a statement, and wait for the server if its result is read."""
    connection: _Pipelined = cursor.connection
    is_read = context.execution_options.get("preserve_rowcount") or "RETURNING" in statement
    is_unread = statement.startswith(_UNREAD) and not is_read
    if is_unread:
        connection.begin_unread()
    elif isinstance(cursor, psycopg.ServerCursor) or statement.startswith(_FORGETTING):
        connection.finish_unread()  # libpq has no such cursors in a pipeline
    cursor.execute(statement, parameters)
    if not is_unread:
        connection.finish_unread()
    return True


def _execute_many(cursor: Any, statement: str, rows: Any, _: object) -> bool:
    """Run a statement that returns nothing for each row."""
    cursor.connection.begin_unread()
    cursor.executemany(statement, rows)
    return True


def driver_cursor(connection: Connection) -> Any:
    """Return a cursor of psycopg, for COPY, after all that was sent: libpq has no COPY in a pipeline."""
    driver: Any = connection.connection.driver_connection
    driver.finish_unread()
    return driver.cursor()


def _roll_back(connection: Connection) -> None:
    """End a transaction that failed, whatever was sent before; the connection may be gone.

    Where a statement has failed, the server has skipped those that were sent after it, and psycopg may take them for
    prepared: such a connection is not used again.
    """
    try:
        driver: Any = connection.connection.driver_connection
        with suppress(psycopg.Error):
            driver.finish_unread()
        is_sound = driver.info.transaction_status is psycopg.pq.TransactionStatus.INTRANS
        connection.exec_driver_sql("ROLLBACK")
    except (SQLAlchemyError, psycopg.Error):
        is_sound = False
    if not is_sound:
        connection.invalidate()


def _check_alive(driver: Any, *_: object) -> None:
    """Let the pool replace a connection from which something can be read unasked: the server has closed it."""
    with selectors.DefaultSelector() as selector:
        try:
            selector.register(driver.fileno(), selectors.EVENT_READ)
        except psycopg.Error as error:
            raise DisconnectionError from error
        if selector.select(0):
            raise DisconnectionError


def _engine(address: DatabaseAddress, schema: str, wait_s: float) -> Engine:
    engine = create_engine(
        "postgresql+psycopg://",
        creator=_connector(address, schema),
        isolation_level="AUTOCOMMIT",  # transactions are begun by hand
        pool_size=_POOL_SIZE,
        max_overflow=_MAX_CONNECTIONS - _POOL_SIZE,
        pool_timeout=max(wait_s, 1.0),
        pool_use_lifo=True,
        pool_reset_on_return=None,  # each transaction has ended, and to end it again would wait for the server
        skip_autocommit_rollback=True,
    )
    event.listen(engine, "do_execute", _execute)
    event.listen(engine, "do_executemany", _execute_many)
    event.listen(engine, "checkout", _check_alive)
    return engine


def _connector(address: DatabaseAddress, schema: str) -> Callable[[], "_Pipelined"]:
    try:
        parameters = conninfo_to_dict(address.uri)
    except psycopg.ProgrammingError as error:
        raise InvalidInput(
            f"The address of the index cannot be read: {str(error).strip()}.",
            remedy="Write postgresql://USER@HOST:PORT/DATABASE?workspace=NAME.",
        ) from None
    # Given at the start of a session: what is set later is unseen by the inspection of the schema.
    session = {**_SESSION, "search_path": f'"{schema}"'}
    options = " ".join([str(parameters.get("options", "")), *(f"-c {name}={text}" for name, text in session.items())])
    conninfo = make_conninfo(address.uri, options=options.strip())
    return lambda: _Pipelined.connect(conninfo, autocommit=True)
