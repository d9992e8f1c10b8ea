"""SQL: what a database must provide (Backend), and how statements run on it."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager, suppress
from functools import lru_cache, partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from sqlalchemy import (
    ARRAY,
    JSON,
    ColumnElement,
    Connection,
    CursorResult,
    Delete,
    Dialect,
    Insert,
    MetaData,
    Row,
    RowMapping,
    Select,
    Table,
    TableClause,
    Text,
    Tuple,
    Update,
    bindparam,
    cast,
    func,
    insert,
    literal,
    literal_column,
    select,
    text,
    union_all,
)
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import NullType

from quipu.model.document import Metadata
from quipu.stores.relational import schema as s

T = TypeVar("T")
Ints = npt.NDArray[np.int64]

BLOCK = 500
_ROWS_AT_ONCE = 2_000  # given to a statement

_META = "quipu.meta"  # in the notes of a connection: the single values of the index, while nobody else can write
_WRITE_META = text(
    "INSERT INTO meta (key, value) VALUES (:name, :new) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_NO_INTS: Ints = np.empty(0, dtype=np.int64)
_COMMA: Any = literal_column("','")  # a parameter would be compiled anew for every call


class Backend(Protocol):
    """What databases do differently: connections, locks, inserts. The rest of this package works with all of them."""

    def reading(self) -> AbstractContextManager[Connection]:
        """Return a connection inside a read-only snapshot."""

    def viewing(self) -> AbstractContextManager[Connection]:
        """Return a connection inside a read-only snapshot, prepared for a view with many reads."""

    def writing(self) -> AbstractContextManager[Connection]:
        """Return a connection inside the only write transaction; raises Busy after the configured wait."""

    def clock_s(self) -> ColumnElement[float]:
        """Return the time by the clock of the database, in seconds since 1970: it is the same for all machines."""

    def n_bytes(self, connection: Connection) -> int:
        """Return the size of the tables, 0 where they are in a file of the index."""

    def insert(self, table: Table) -> Any:
        """Return an INSERT of this dialect, with a method `on_conflict_do_update`."""

    def unique_key(self, table: Table) -> Sequence[Any]:
        """Return the columns and expressions by which the database keeps the rows of `table` apart."""

    def restrict(self, connection: Connection, table: TableClause, rows: Select[Any]) -> None:
        """Fill `table`, which lists what a filtered snapshot may see, in place of all before."""

    def create_tables(self, connection: Connection, metadata: MetaData) -> None:
        """Make the tables of a new index."""

    def empty_log(self) -> bool:
        """Delete earlier transactions from the write-ahead log; return False if somebody uses it. Never waits."""

    def guard(self) -> AbstractContextManager[None]:
        """Convert the driver's errors into Busy, Corrupt, Unavailable and InvalidInput."""

    def damage(self, connection: Connection, *, is_quick: bool = False) -> list[str]:
        """Return the errors that the database finds in its own files; `is_quick` leaves its indexes out."""

    def copy_to(self, connection: Connection, file: Path) -> None:
        """Write what a snapshot sees into a new SQLite file."""

    def close(self) -> None:
        """Close every connection."""


class Transaction(Protocol):
    """Runs work inside a transaction."""

    def __call__(self, work: Callable[[Connection], T], /) -> Awaitable[T]:
        """Return what the work returns."""


@asynccontextmanager
async def in_thread(context: AbstractContextManager[Connection], use: Callable[[Connection], T]) -> AsyncIterator[T]:
    """Enter and leave a context in threads, and yield what `use` makes of its connection; errors pass through it."""
    try:
        yield await finish_in_thread(lambda: use(context.__enter__()))
    except BaseException as error:
        await finish_in_thread(partial(context.__exit__, type(error), error, error.__traceback__))
        raise
    await finish_in_thread(partial(context.__exit__, None, None, None))


async def finish_in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread and wait for its end, even when the caller is cancelled meanwhile.

    So no thread goes on using a connection that its caller has released.
    """
    task = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        raise


def read_meta(connection: Connection, key: str) -> str | None:
    """Return a single value of the index, None if it was never written."""
    values: dict[str, str] | None = connection.info.get(_META)
    return values.get(key) if values is not None else connection.scalar(meta_value(key))


@lru_cache
def meta_value(key: str) -> Select[Any]:
    """Return the query of a single value of the index."""
    return select(s.meta.c.value).where(s.meta.c.key == key)


_GROWING = s.document, s.chunk, s.edit, s.entity, s.relation, s.name  # by each commit of documents
_META_AND_LAST_ROWS = union_all(
    select(s.meta.c.key, s.meta.c.value),
    *(select(literal(table.name), cast(func.coalesce(func.max(table.c.rid), 0), Text)) for table in _GROWING),
)


@contextmanager
def remembered_meta(connection: Connection) -> Iterator[None]:
    """Read the single values of the index, and last rows, once for a write transaction, which alone changes them."""
    notes = connection.info  # a connection that is lost has none any more
    notes[_META] = dict(map(tuple, connection.execute(_META_AND_LAST_ROWS)))
    try:
        yield
    finally:
        notes.pop(_META, None)


def read_number(connection: Connection, key: str) -> int:
    """Return a single number of the index, 0 if it was never written."""
    return int(read_meta(connection, key) or 0)


def read_numbers(connection: Connection, *keys: str) -> tuple[int, ...]:
    """Return several numbers of the index with one query, 0 for each that was never written."""
    values = connection.execute(select(*(meta_value(key).scalar_subquery() for key in keys))).one()
    return tuple(int(value or 0) for value in values)


def write_meta(connection: Connection, key: str, value: str | int) -> None:
    """Write a single value of the index."""
    connection.execute(_WRITE_META, {"name": key, "new": str(value)})
    if _META in connection.info:
        connection.info[_META][key] = str(value)


def n_changed(connection: Connection, statement: Update | Delete) -> int:
    """Run a statement and return how many rows it changed; otherwise a server need not be waited for."""
    return connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount


def next_rid(connection: Connection, table: Table) -> int:
    """Return the row number after the last one; safe because there is one write transaction at a time."""
    last = connection.info.get(_META, {}).pop(table.name, None)  # once: then rows are inserted
    return int(last or connection.scalar(select(func.max(table.c.rid))) or 0) + 1


def blocks(values: Iterable[T], size: int = BLOCK) -> Iterator[list[T]]:
    """Yield `values` in lists of at most `size`."""
    iterator = iter(values)
    while block := list(islice(iterator, size)):
        yield block


def member_sets(connection: Connection, column: Any, values: Iterable[Any]) -> Iterator[Any]:
    """Yield an operand for `column.in_(...)` with all values, none if there are no values."""
    if listed := list(values):
        operand = bindparam("values", _packed(connection, column, listed), unique=True, type_=NullType())
        yield _members(connection.dialect, column, operand)


def _members(dialect: Dialect, column: Any, array: Any) -> Select[Any]:
    """Return the members of an array, which is one parameter where a list would be a thousand: a third of the time.

    Pairs are looked up in their index, while SQLite would scan the table for a list of row values.
    """
    columns = list(column.clauses) if isinstance(column, Tuple) else [column]
    if dialect.name == "sqlite":
        value = func.json_each(array).table_valued("value").c.value
        return select(*(func.json_extract(value, f"$[{i}]") for i in range(2))) if len(columns) > 1 else select(value)
    types = [column.type.dialect_impl(dialect) for column in columns]
    if len(columns) == 1:
        return select(func.unnest(cast(array, ARRAY(types[0]))))
    pairs = func.json_array_elements(cast(array, JSON)).table_valued("value").c.value
    return select(*(cast(pairs.op("->>")(i), kind) for i, kind in enumerate(types)))


def _packed(connection: Connection, column: Any, values: list[Any]) -> Any:
    """Return values as the array that `_members` takes: JSON, except for the array of single values on PostgreSQL."""
    if connection.dialect.name == "sqlite" or isinstance(column, Tuple):
        return json.dumps(values, ensure_ascii=False)
    return values


class ByValues:
    """A SELECT, UPDATE or DELETE of the rows whose `column` is among some values.

    The statement is built once, because building takes longest. Its other parameters are named by `bindparam`.
    """

    def __init__(self, statement: Select[Any] | Update | Delete, column: Any) -> None:
        self._statement = statement
        self._column = column
        self._by_dialect: dict[str, Select[Any] | Update | Delete] = {}

    def rows(
        self, connection: Connection, values: Iterable[Any], **parameters: object
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """Return the rows of `values`, however many there are, in no order."""
        result = self._execute(connection, values, parameters)
        return result.all() if result else []

    def tuples(self, connection: Connection, values: Iterable[Any], **parameters: object) -> list[tuple[Any, ...]]:
        """Return the driver's own tuples, for columns that need no conversion."""
        result = self._execute(connection, values, parameters)
        return driver_rows(result) if result else []

    def run(self, connection: Connection, values: Iterable[Any], **parameters: object) -> None:
        """Run an UPDATE or DELETE for `values`, however many there are."""
        self._execute(connection, values, parameters)

    def _execute(
        self, connection: Connection, values: Iterable[Any], parameters: Mapping[str, object]
    ) -> CursorResult[Any] | None:
        listed = list(values)
        if not listed:
            return None
        array = _packed(connection, self._column, listed)
        return connection.execute(self._of(connection.dialect), {"values": array, **parameters})

    def _of(self, dialect: Dialect) -> Select[Any] | Update | Delete:
        if dialect.name not in self._by_dialect:
            members = _members(dialect, self._column, bindparam("values", type_=NullType()))
            self._by_dialect[dialect.name] = self._statement.where(self._column.in_(members))
        return self._by_dialect[dialect.name]


class ForValues:
    """A scalar subquery that is run for each of some texts; `subquery` makes it of the text's SQL expression."""

    def __init__(self, subquery: Callable[[Any], Any]) -> None:
        of_json = func.json_each(bindparam("values")).table_valued("value").c.value
        texts = cast(bindparam("values", type_=NullType()), ARRAY(Text))
        of_array = func.unnest(texts).table_valued("value").render_derived().c.value
        self._by_json, self._by_array = (select(value, subquery(value)) for value in (of_json, of_array))

    def pairs(self, connection: Connection, values: Iterable[Any]) -> list[tuple[Any, Any]]:
        """Return each value with the result of the subquery for it."""
        listed = list(values)
        if connection.dialect.name == "sqlite":
            array = json.dumps(listed, ensure_ascii=False)
            return driver_rows(connection.execute(self._by_json, {"values": array}))
        return driver_rows(connection.execute(self._by_array, {"values": listed}))


def driver_rows(result: CursorResult[Any]) -> list[tuple[Any, ...]]:
    """Return the driver's own rows, for columns that need no conversion: wrapping a row costs as much as reading it."""
    with closing(result):
        return list(result.cursor.fetchall())


def insert_rows(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    """Insert all rows, if any, with their checksums if the table has them."""
    checked = ({**row, "checksum": checksum(table, row)} for row in rows) if table in s.CHECKED else rows
    execute_rows(connection, _insert_into(table), checked)


def checksum(table: Table, row: Mapping[str, Any] | RowMapping) -> int:
    """Return the CRC-32 of a row of a table in `schema.CHECKED`."""
    values = _checked_values(table)(row)
    return zlib.crc32("\x1f".join([str(zlib.crc32(v)) if type(v) is bytes else str(v) for v in values]).encode())


@lru_cache
def _checked_values(table: Table) -> Callable[[Any], Any]:
    return itemgetter(*s.CHECKED[table])


def execute_rows(connection: Connection, statement: Insert | Update | Delete, rows: Iterable[dict[str, Any]]) -> None:
    """Run `statement` once for each row with the driver's own parameters, in half of SQLAlchemy's time.

    Only one batch of rows is in memory at a time.
    """
    for batch in blocks(rows, _ROWS_AT_ONCE):
        compiled = _compiled(connection.dialect, statement, tuple(batch[0]))
        in_order = itemgetter(*compiled.positiontup) if compiled.positiontup else None
        connection.exec_driver_sql(compiled.string, [in_order(row) for row in batch] if in_order else batch)


@lru_cache
def _insert_into(table: Table) -> Insert:
    return insert(table)


@lru_cache(maxsize=256)
def _compiled(dialect: Dialect, statement: Insert | Update | Delete, columns: tuple[str, ...]) -> SQLCompiler:
    compiled = statement.compile(dialect=dialect, column_keys=list(columns) if statement.is_insert else None)
    assert isinstance(compiled, SQLCompiler)
    return compiled


class Upsert:
    """An INSERT that keeps existing rows, or adds to their `counts`; the statement is built once."""

    def __init__(self, table: Table, *, counts: Sequence[str] = ()) -> None:
        self._table = table
        self._counts = counts
        self._by_backend: dict[type[Backend], Insert] = {}

    def run(self, connection: Connection, backend: Backend, rows: Iterable[dict[str, Any]]) -> None:
        """Insert all rows, if any."""
        execute_rows(connection, self._statement(backend), rows)

    def _statement(self, backend: Backend) -> Insert:
        kind = type(backend)
        if kind not in self._by_backend:
            statement = backend.insert(self._table)
            totals = {name: self._table.c[name] + statement.excluded[name] for name in self._counts}
            self._by_backend[kind] = (
                statement.on_conflict_do_update(index_elements=backend.unique_key(self._table), set_=totals)
                if totals
                else statement.on_conflict_do_nothing()
            )
        return self._by_backend[kind]


def as_texts(query: Select[Any]) -> Select[Any]:
    """Return a query of one row with each integer column of `query` as a text, "1,5,3": three times as fast to read."""
    texts: Iterable[Any] = (func.aggregate_strings(cast(column, Text), _COMMA) for column in query.selected_columns)
    return query.with_only_columns(*texts, maintain_column_froms=True)


def from_texts(rows: Iterable[Sequence[str | None]], n_columns: int) -> tuple[Ints, ...]:
    """Return the numbers of each column as an array, from the rows of an `as_texts` query."""
    parts = [[np.fromstring(text or "", np.int64, sep=",") for text in row] for row in rows if row[0]]
    if not parts:
        return (_NO_INTS,) * n_columns
    return tuple(parts[0]) if len(parts) == 1 else tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def to_json(value: object) -> str:
    """Return canonical JSON: sorted keys, no spaces, text unescaped."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


_decoder = json.JSONDecoder()


def texts_from_json(value: str) -> tuple[str, ...]:
    """Return the texts of a JSON array."""
    return tuple(_decoder.raw_decode(value)[0]) if value != "[]" else ()


def metadata_from_json(text: str) -> Metadata:
    """Return metadata from a JSON object; arrays become tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(text).items()}
