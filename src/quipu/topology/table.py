"""Immutable tables of integers in compressed row form: a base, often mapped from a file, and a patch of new rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quipu.algo.sparse_matrix import PatchedMatrix, SparseMatrix, concatenated_ranges
from quipu.ports.topology import Floats, Ints

NO_NUMBERS: Ints = np.empty(0, dtype=np.int64)
_MIN_PATCH_ENTRIES = 1_000
_EMPTY_MATRIX = SparseMatrix(starts=np.zeros(1, dtype=np.int64), columns=NO_NUMBERS, weights=None, shape=(0, 0))
WeightFunction = Callable[
    [Sequence[Ints]], Floats | None
]  # value arrays, each [n] -> weights [n], or None if all are 1


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of some rows: `rows` [n], `columns` [n], and one array [n] for each of the `values`."""

    rows: Ints
    columns: Ints
    values: tuple[Ints, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, mask: npt.NDArray[np.bool_]) -> "Entries":
        """Return the entries where `mask` [n] is True."""
        return Entries(self.rows[mask], self.columns[mask], tuple(value[mask] for value in self.values))

    def concatenate(self, other: "Entries") -> "Entries":
        """Return these entries followed by `other`."""
        values = zip(self.values, other.values, strict=True)
        return Entries(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.columns, other.columns]),
            tuple(np.concatenate(pair) for pair in values),
        )

    def transposed(self) -> "Entries":
        """Return the entries with rows and columns exchanged."""
        return Entries(self.columns, self.rows, self.values)


@dataclass(frozen=True)
class RowTable:
    """Row i has the ascending `columns[starts[i] : starts[i + 1]]` and that range of `values`; `starts` is [n + 1]."""

    starts: Ints
    columns: Ints
    values: tuple[Ints, ...]
    _matrices: dict[tuple[WeightFunction, tuple[int, int]], SparseMatrix] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> Ints:
        """The number of entries of each row, [n]."""
        return np.diff(self.starts)

    @cached_property
    def n_columns(self) -> int:
        """One more than the largest column."""
        return int(self.columns.max(initial=-1)) + 1

    def entries(self, rows: Ints) -> Entries:
        """Return the entries of these rows in their order; `rows` of the result are positions in the argument."""
        existing = np.minimum(rows, len(self))
        first = self.starts[existing]
        n = self.starts[np.minimum(existing + 1, len(self))] - first
        at = concatenated_ranges(first, n)
        return Entries(np.repeat(np.arange(len(rows)), n), self.columns[at], tuple(value[at] for value in self.values))

    def matrix(self, weigh: WeightFunction, shape: tuple[int, int]) -> SparseMatrix:
        """Return the table as a matrix with the weights `weigh(values)`; each matrix is built once and cached."""
        matrix = self._matrices.get((weigh, shape))
        if matrix is None:
            matrix = SparseMatrix(starts=self.starts, columns=self.columns, weights=weigh(self.values), shape=shape)
            self._matrices[weigh, shape] = matrix
        return matrix


def build_table(entries: Entries, n_rows: int | None = None) -> RowTable:
    """Return a table of `entries` in any order. It has `n_rows` rows, by default up to the last one with an entry."""
    n = int(entries.rows.max(initial=-1)) + 1 if n_rows is None else n_rows
    width = int(entries.columns.max(initial=0)) + 1
    order = np.argsort(entries.rows * width + entries.columns, kind="stable")  # fast if the entries are mostly sorted
    starts = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(entries.rows, minlength=n), out=starts[1:])
    return RowTable(starts, entries.columns[order], tuple(value[order] for value in entries.values))


@dataclass(frozen=True)
class LayeredTable:
    """A base table in which some rows are replaced: row i of `patch` replaces row `rows[i]` (ascending) completely."""

    base: RowTable
    rows: Ints = field(default_factory=lambda: NO_NUMBERS)
    patch: RowTable | None = None

    @cached_property
    def n_rows(self) -> int:
        """One more than the number of the last row that may have entries."""
        return max(len(self.base), int(self.rows[-1]) + 1 if len(self.rows) else 0)

    @property
    def n_entries(self) -> int:
        """The number of entries in base and patch, including replaced ones."""
        return len(self.base.columns) + (len(self.patch.columns) if self.patch is not None else 0)

    def entries(self, rows: Ints) -> Entries:
        """Return the current entries of these distinct rows, in any order."""
        if self.patch is None:
            entries = self.base.entries(rows)
            return Entries(rows[entries.rows], entries.columns, entries.values)
        at = np.searchsorted(self.rows, rows)
        is_patched = self.rows.take(at, mode="clip") == rows
        plain, patched = rows[~is_patched], rows[is_patched]
        old, new = self.base.entries(plain), self.patch.entries(at[is_patched])
        return Entries(plain[old.rows], old.columns, old.values).concatenate(
            Entries(patched[new.rows], new.columns, new.values)
        )

    def all_entries(self) -> Entries:
        """Return all entries."""
        return self.entries(np.arange(self.n_rows))

    def replaced(self, rows: Ints, entries: Entries) -> "LayeredTable":
        """Return the table in which these `rows` (ascending) hold exactly these `entries`."""
        if not len(rows):
            return self
        new = build_table(Entries(np.searchsorted(rows, entries.rows), entries.columns, entries.values), len(rows))
        if self.patch is None:
            return LayeredTable(self.base, rows, new)._compact()
        is_unchanged = ~np.isin(self.rows, rows)
        unchanged = self.rows[is_unchanged]
        patch_rows = np.union1d(unchanged, rows)
        sources = [
            _RowCopy(np.searchsorted(patch_rows, unchanged), self.patch, np.flatnonzero(is_unchanged)),
            _RowCopy(np.searchsorted(patch_rows, rows), new, np.arange(len(rows))),
        ]
        return LayeredTable(self.base, patch_rows, _copy_rows(sources, len(patch_rows)))._compact()

    def merge_layers(self) -> RowTable:
        """Return base and patch as one table without empty rows at its end, independent of the history of changes."""
        is_plain = np.ones(self.n_rows, dtype=bool)
        is_plain[self.rows] = False
        is_plain[len(self.base) :] = False
        plain = np.flatnonzero(is_plain)
        sources = [_RowCopy(plain, self.base, plain)]
        if self.patch is not None:
            sources.append(_RowCopy(self.rows, self.patch, np.arange(len(self.rows))))
        table = _copy_rows(sources, self.n_rows)
        n_rows = int(np.flatnonzero(table.lengths)[-1]) + 1 if len(table.columns) else 0
        return RowTable(table.starts[: n_rows + 1], table.columns, table.values)

    def links(self, weigh: WeightFunction, shape: tuple[int, int]) -> SparseMatrix | PatchedMatrix:
        """Return the table as a matrix with the weights `weigh(values)`."""
        # The base has its own shape, not `shape`, so that its matrix is built once for all revisions.
        whole = self.base.matrix(weigh, (len(self.base), self.base.n_columns))
        if self.patch is None:
            return (
                whole
                if whole.shape == shape
                else PatchedMatrix(matrix=whole, rows=NO_NUMBERS, patch=_EMPTY_MATRIX, shape=shape)
            )
        patch = self.patch.matrix(weigh, (len(self.rows), self.patch.n_columns))
        return PatchedMatrix(matrix=whole, rows=self.rows, patch=patch, shape=shape)

    def _compact(self) -> "LayeredTable":
        """Merge the patch into the base if it is large: otherwise reading would take twice as long."""
        if self.patch is None or len(self.patch.columns) <= len(self.base.columns) // 2 + _MIN_PATCH_ENTRIES:
            return self
        return LayeredTable(self.merge_layers())


@dataclass(frozen=True, slots=True)
class _RowCopy:
    """Rows `sources` of `table`, which are copied to the rows `targets` of another table."""

    targets: Ints
    table: RowTable
    sources: Ints


def _copy_rows(parts: Sequence[_RowCopy], n_rows: int) -> RowTable:
    lengths = np.zeros(n_rows, dtype=np.int64)
    for part in parts:
        lengths[part.targets] = part.table.lengths[part.sources]
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    columns = np.empty(starts[-1], dtype=np.int64)
    values = tuple(np.empty_like(columns) for _ in parts[0].table.values)
    for part in parts:
        n = part.table.lengths[part.sources]
        to, of = concatenated_ranges(starts[part.targets], n), concatenated_ranges(part.table.starts[part.sources], n)
        columns[to] = part.table.columns[of]
        for target, source in zip(values, part.table.values, strict=True):
            target[to] = source[of]
    return RowTable(starts, columns, values)
