"""Lookup: a read by a list of values whose statement is built once; building one costs ten times what running it does.

Rows are best unpacked as tuples: to name a row's columns takes longer than to read it, which counts among thousands.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Connection, Executable, Select, Tuple, bindparam, func, select

from quipu.stores.relational.columns import Ints, as_texts, from_texts
from quipu.stores.relational.filters import is_allowed
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import blocks

Rows = Sequence[tuple[Any, ...]]
_Statements = tuple[Executable, Executable]


class Lookup:
    """A query of the rows with `column` among some values; under a filter, those that the chunk at `said_in` says."""

    def __init__(self, query: Select[Any], column: Any, *, said_in: ColumnElement[Any] | None = None) -> None:
        self._query = query
        self._column = column
        self._said_in = said_in

    def rows(self, snapshot: Snapshot, values: Collection[Any]) -> Rows:
        """Return the rows of `values`, however many there are, in no order."""
        is_filtered = snapshot.is_filtered and self._said_in is not None
        return _run(snapshot, self._filtered if is_filtered else self._plain, values)

    def ints(self, snapshot: Snapshot, values: Collection[Any]) -> tuple[Ints, ...]:
        """Return the columns of a query of whole numbers, each [n], the rows in no order."""
        is_filtered = snapshot.is_filtered and self._said_in is not None
        texts = _run(snapshot, self._filtered_texts if is_filtered else self._plain_texts, values)
        return from_texts(texts, len(self._query.selected_columns))

    @cached_property
    def _plain(self) -> _Statements:
        return _by_values(self._query, self._column)

    @cached_property
    def _filtered(self) -> _Statements:
        return _by_values(self._query.where(is_allowed(self._said_in)), self._column)

    @cached_property
    def _plain_texts(self) -> _Statements:
        return _by_values(as_texts(self._query), self._column)

    @cached_property
    def _filtered_texts(self) -> _Statements:
        return _by_values(as_texts(self._query.where(is_allowed(self._said_in))), self._column)


def _by_values(query: Select[Any], column: Any) -> _Statements:
    """Return the query by one JSON array (see `sql.member_sets`) and by a list of parameters."""
    each = func.json_each(bindparam("values")).table_valued("value").c.value
    is_pair = isinstance(column, Tuple)
    members = select(*(func.json_extract(each, f"$[{i}]") for i in range(2))) if is_pair else select(each)
    return query.where(column.in_(members)), query.where(column.in_(bindparam("values", expanding=True)))


def _run(snapshot: Snapshot, statements: _Statements, values: Collection[Any]) -> Rows:
    if not values:
        return ()
    connection = snapshot.connection
    as_array, as_list = statements
    if connection.dialect.name == "sqlite":
        return fetch(connection, as_array, {"values": json.dumps(list(values), ensure_ascii=False)})
    return [row for block in blocks(values) for row in fetch(connection, as_list, {"values": block})]


def fetch(connection: Connection, statement: Executable, parameters: Mapping[str, Any]) -> Rows:
    """Return the driver's own rows, of columns that need no conversion: wrapping each takes as long as reading it."""
    with closing(connection.execute(statement, parameters)) as result:
        rows: Rows = result.cursor.fetchall()
    return rows
