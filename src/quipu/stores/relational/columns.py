"""Columns: whole numbers read as arrays, a text of all of them a column: a third of the time of a row each."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Select, Text, cast, func, literal_column

Ints = npt.NDArray[np.int64]

# A literal, not a parameter: those of aggregate functions are written into the statement anew every time.
_COMMA: Any = literal_column("','")
_NONE: Ints = np.empty(0, dtype=np.int64)


def as_texts(query: Select[Any]) -> Select[Any]:
    """Return a query of one row, in which each column of `query` is one text."""
    texts: Iterable[Any] = (func.aggregate_strings(cast(column, Text), _COMMA) for column in query.selected_columns)
    return query.with_only_columns(*texts, maintain_column_froms=True)


def from_texts(rows: Iterable[Sequence[str | None]], n_columns: int) -> tuple[Ints, ...]:
    """Return the numbers of each column, from the rows that an `as_texts` query gave."""
    parts = [[np.fromstring(text or "", np.int64, sep=",") for text in row] for row in rows if row[0]]
    if not parts:
        return (_NONE,) * n_columns
    return tuple(parts[0]) if len(parts) == 1 else tuple(np.concatenate(column) for column in zip(*parts, strict=True))
