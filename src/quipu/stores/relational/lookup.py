"""Lookup: a read by a list of values that knows what a filter allows; its statements are built once, when first used.

Rows are best unpacked as tuples: to name a row's columns takes longer than to read it, which counts among thousands.
"""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Row, Select

from quipu.stores.relational.filters import is_allowed
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import ByValues, Ints, as_texts, from_texts


class Lookup:
    """A query of the rows with `column` among some values; under a filter, those that the chunk at `said_in` says."""

    def __init__(self, query: Select[Any], column: Any, *, said_in: ColumnElement[Any] | None = None) -> None:
        self._query = query
        self._column = column
        self._said_in = said_in

    def rows(self, snapshot: Snapshot, values: Collection[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of `values`, however many there are, as plain tuples in no order."""
        return (self._filtered if self._restricts(snapshot) else self._plain).tuples(snapshot.connection, values)

    def records(self, snapshot: Snapshot, values: Collection[Any]) -> Sequence[Row[*tuple[Any, ...]]]:
        """Return the rows with their columns by name."""
        return (self._filtered if self._restricts(snapshot) else self._plain).rows(snapshot.connection, values)

    def ints(self, snapshot: Snapshot, values: Collection[Any]) -> tuple[Ints, ...]:
        """Return the columns of a query of whole numbers, each [n], the rows in no order."""
        by_values = self._filtered_texts if self._restricts(snapshot) else self._plain_texts
        return from_texts(by_values.tuples(snapshot.connection, values), len(self._query.selected_columns))

    def _restricts(self, snapshot: Snapshot) -> bool:
        return snapshot.is_filtered and self._said_in is not None

    @cached_property
    def _plain(self) -> ByValues:
        return ByValues(self._query, self._column)

    @cached_property
    def _filtered(self) -> ByValues:
        return ByValues(self._query.where(is_allowed(self._said_in)), self._column)

    @cached_property
    def _plain_texts(self) -> ByValues:
        return ByValues(as_texts(self._query), self._column)

    @cached_property
    def _filtered_texts(self) -> ByValues:
        return ByValues(as_texts(self._query.where(is_allowed(self._said_in))), self._column)
