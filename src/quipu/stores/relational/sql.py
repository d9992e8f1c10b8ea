"""Small pieces the queries share: long IN lists, row numbers, packed values."""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Delete, Row, Select, Table, Tuple, func, insert, select

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


def delete_in(connection: Connection, statement: Delete, column: Any, values: Iterable[Any]) -> None:
    """Run a DELETE restricted to `column` in `values`, however many there are."""
    for members in member_sets(connection, column, values):
        connection.execute(statement.where(column.in_(members)))


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
    if rows:
        connection.execute(insert(table), rows)


def next_rid(connection: Connection, table: Table) -> int:
    """Return the row number after the last; safe because one transaction writes at a time."""
    last = connection.scalar(select(func.max(table.c.rid)))
    return (last or 0) + 1


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
