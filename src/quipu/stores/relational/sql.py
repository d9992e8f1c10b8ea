"""Small pieces the queries share: long IN lists, row numbers, packed values."""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    CursorResult,
    Delete,
    Dialect,
    Insert,
    Row,
    Select,
    Table,
    Tuple,
    Update,
    bindparam,
    func,
    insert,
    select,
)
from sqlalchemy.sql.compiler import SQLCompiler

from quipu.stores.relational.backend import Backend

T = TypeVar("T")

BLOCK = 500


def blocks(values: Iterable[T], size: int = BLOCK) -> Iterator[list[T]]:
    """Yield `values` in lists of at most `size`."""
    iterator = iter(values)
    while block := list(islice(iterator, size)):
        yield block


def select_in(connection: Connection, query: Select[Any], column: Any, values: Iterable[Any]) -> list[Row[Any]]:
    """Run `query` restricted to `column` in `values`, however many there are."""
    rows: list[Row[Any]] = []
    for members in member_sets(connection, column, values):
        rows.extend(connection.execute(query.where(column.in_(members))))
    return rows


def member_sets(connection: Connection, column: Any, values: Iterable[Any]) -> Iterator[Any]:
    """Yield what `column` may be a member of: all values at once on SQLite, in blocks elsewhere.

    There one JSON array stands in for a thousand parameters: a third of the time, the statement stays cached, and pairs
    are looked up in their index, where SQLite would scan for a list of row values.
    """
    if connection.dialect.name != "sqlite":
        yield from blocks(values)
        return
    if listed := list(values):
        each = func.json_each(json.dumps(listed, ensure_ascii=False)).table_valued("value").c.value
        is_pair = isinstance(column, Tuple)
        yield select(*(func.json_extract(each, f"$[{i}]") for i in range(2))) if is_pair else select(each)


def insert_rows(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert all rows, or do nothing where there are none."""
    execute_rows(connection, _insert_into(table), rows)


def execute_rows(connection: Connection, statement: Insert | Update, rows: Sequence[dict[str, Any]]) -> None:
    """Run `statement` once for each row, with the driver's own parameters: half the time of SQLAlchemy's, a row."""
    if rows:
        compiled = _compiled(connection.dialect, statement, tuple(rows[0]))
        in_order = itemgetter(*compiled.positiontup) if compiled.positiontup else None
        connection.exec_driver_sql(compiled.string, [in_order(row) for row in rows] if in_order else list(rows))


@lru_cache
def _insert_into(table: Table) -> Insert:
    return insert(table)


@lru_cache(maxsize=256)
def _compiled(dialect: Dialect, statement: Insert | Update, columns: tuple[str, ...]) -> SQLCompiler:
    compiled = statement.compile(dialect=dialect, column_keys=list(columns) if statement.is_insert else None)
    assert isinstance(compiled, SQLCompiler)
    return compiled


class ByValues:
    """A query, UPDATE or DELETE of the rows with `column` among some values, built once: building takes longest.

    Other parameters of the statement are named by `bindparam`.
    """

    def __init__(self, statement: Select[Any] | Update | Delete, column: Any) -> None:
        each = func.json_each(bindparam("values")).table_valued("value").c.value
        is_pair = isinstance(column, Tuple)
        members = select(*(func.json_extract(each, f"$[{i}]") for i in range(2))) if is_pair else select(each)
        self._by_array = statement.where(column.in_(members))
        self._by_list = statement.where(column.in_(bindparam("values", expanding=True)))

    def rows(
        self, connection: Connection, values: Iterable[Any], **parameters: object
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """Return the rows of `values`, however many there are, in no order."""
        results = self._run(connection, values, parameters)
        return [row for result in results for row in result] if len(results) != 1 else results[0].all()

    def tuples(self, connection: Connection, values: Iterable[Any]) -> list[tuple[Any, ...]]:
        """Return the rows as the driver gives them, of columns that need no conversion."""
        return [row for result in self._run(connection, values, {}) for row in driver_rows(result)]

    def run(self, connection: Connection, values: Iterable[Any], **parameters: object) -> None:
        """Run an UPDATE or DELETE for `values`, however many there are."""
        self._run(connection, values, parameters)

    def _run(
        self, connection: Connection, values: Iterable[Any], parameters: Mapping[str, object]
    ) -> list[CursorResult[Any]]:
        listed = list(values)
        if not listed:
            return []
        if connection.dialect.name == "sqlite":
            array = json.dumps(listed, ensure_ascii=False)
            return [connection.execute(self._by_array, {"values": array, **parameters})]
        return [connection.execute(self._by_list, {"values": block, **parameters}) for block in blocks(listed)]


def driver_rows(result: CursorResult[Any]) -> list[tuple[Any, ...]]:
    """Return the driver's own rows, of columns that need no conversion: wrapping each takes as long as reading it."""
    with closing(result):
        return list(result.cursor.fetchall())


class Upsert:
    """An INSERT that leaves rows already there as they are, or adds to counts of theirs; built once."""

    def __init__(self, table: Table, *, counts: Sequence[str] = ()) -> None:
        self._table = table
        self._counts = counts
        self._by_kind: dict[type[Backend], Insert] = {}

    def run(self, connection: Connection, backend: Backend, rows: Sequence[dict[str, Any]]) -> None:
        """Insert all rows, or do nothing where there are none."""
        execute_rows(connection, self._statement(backend), rows)

    def _statement(self, backend: Backend) -> Insert:
        kind = type(backend)
        if kind not in self._by_kind:
            statement = backend.insert(self._table)
            totals = {name: self._table.c[name] + statement.excluded[name] for name in self._counts}
            self._by_kind[kind] = (
                statement.on_conflict_do_update(index_elements=self._table.primary_key, set_=totals)
                if totals
                else statement.on_conflict_do_nothing()
            )
        return self._by_kind[kind]


def next_rid(connection: Connection, table: Table) -> int:
    """Return the row number after the last; safe because one transaction writes at a time."""
    return (connection.scalar(_last_rid(table)) or 0) + 1


@lru_cache
def _last_rid(table: Table) -> Select[Any]:
    return select(func.max(table.c.rid))


def to_json(value: object) -> str:
    """Return canonical JSON: sorted keys, no spaces, text as it is."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def texts_from_json(value: str) -> tuple[str, ...]:
    """Return the texts of a JSON array."""
    return tuple(json.loads(value)) if value != "[]" else ()


def deflate(text: str) -> bytes:
    """Pack a text."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)


def inflate(data: bytes) -> str:
    """Unpack a text."""
    return zlib.decompress(data).decode("utf-8", "surrogatepass")
