"""Sparse matrices in NumPy: compressed rows, products with vectors, and matrices with some rows replaced.

They implement `quipu.ports.topology.AdjacencyMatrix`. SciPy's product of a large graph is up to a third faster, but
SciPy adds 143 MB to an installation and 0.2 s of CPU time to every start (docs/adr/0031).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from quipu.ports.topology import Floats, Ints, Neighbours

MAX_BLOCK_LENGTH = 64  # longest rows that are summed in blocks; must be below 255
MIN_ENTRIES = 50_000  # a matrix with fewer entries is summed row by row, which is faster there
_ENTRIES_PER_BLOCK = 65_536  # keeps what is summed in the processor's cache


def concatenated_ranges(starts: Ints, lengths: Ints) -> Ints:
    """Return the numbers of all ranges [start, start + length), one range after the other."""
    ends = np.cumsum(lengths)
    n = int(ends[-1]) if len(ends) else 0
    return np.arange(n, dtype=np.int64) + np.repeat(starts - ends + lengths, lengths)


@dataclass(frozen=True, kw_only=True)
class SparseMatrix:
    """Compressed rows: row i has `columns[starts[i] : starts[i + 1]]`, ascending, with their `weights`, or 1 each.

    `starts` is [n_rows + 1] or shorter: rows beyond it are empty.
    """

    starts: Ints
    columns: Ints
    weights: Floats | None
    shape: tuple[int, int]

    @property
    def n_entries(self) -> int:
        return len(self.columns)

    def neighbours(self, rows: Ints) -> Neighbours:
        first, n = self._ranges(rows)
        entries = concatenated_ranges(first, n)
        return Neighbours(
            positions=np.repeat(np.arange(len(rows), dtype=np.int64), n),
            columns=self.columns[entries],
            weights=np.ones(len(entries)) if self.weights is None else self.weights[entries],
        )

    def multiply(self, vector: Floats) -> Floats:
        if len(self.columns) >= MIN_ENTRIES:
            return self._layout.multiply(vector, self.shape[0])
        terms = vector[self.columns]
        return self._summed(terms if self.weights is None else terms * self.weights)

    def row_sums(self) -> Floats:
        return self._row_sums.copy()

    def unweighted(self) -> "SparseMatrix":
        return self if self.weights is None else self._unweighted

    def _ranges(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return where each row starts and how many entries it has."""
        last = len(self.starts) - 1
        first = self.starts[np.minimum(rows, last)]
        return first, self.starts[np.minimum(rows + 1, last)] - first

    def _summed(self, values: Floats) -> Floats:
        """Return the sum of the entries' values [n_entries] in each row."""
        sums = np.zeros(self.shape[0])
        filled = np.flatnonzero(np.diff(self.starts))
        if len(filled):
            sums[filled] = np.add.reduceat(values, self.starts[filled])
        return sums

    @cached_property
    def _layout(self) -> "RowLayout":
        return row_layout(self.starts, self.columns, self.weights)

    @cached_property
    def _unweighted(self) -> "SparseMatrix":
        return replace(self, weights=None)  # cached, so that its layout is computed once

    @cached_property
    def _row_sums(self) -> Floats:
        if self.weights is not None:
            return self._summed(self.weights)
        sums = np.zeros(self.shape[0])
        sums[: len(self.starts) - 1] = np.diff(self.starts)
        return sums


def sparse_matrix(rows: Ints, columns: Ints, weights: Floats | None, shape: tuple[int, int]) -> SparseMatrix:
    """Return the matrix with these entries, which are distinct and may come in any order."""
    order = np.lexsort((columns, rows))
    starts = np.zeros(shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=starts[1:])
    ordered_weights = None if weights is None else weights[order]
    return SparseMatrix(starts=starts, columns=columns[order], weights=ordered_weights, shape=shape)


@dataclass(frozen=True, kw_only=True)
class PatchedMatrix:
    """A matrix with some `rows` (ascending) replaced: row i of `patch` is the new row `rows[i]`, in full."""

    matrix: SparseMatrix
    rows: Ints
    patch: SparseMatrix
    shape: tuple[int, int]

    @cached_property
    def n_entries(self) -> int:
        """How many weights are not zero."""
        _, replaced = self.matrix._ranges(self.rows)
        return self.matrix.n_entries - int(replaced.sum()) + self.patch.n_entries

    def neighbours(self, rows: Ints) -> Neighbours:
        patch_rows = np.searchsorted(self.rows, rows)
        is_patched = self.rows.take(patch_rows, mode="clip") == rows if len(self.rows) else np.zeros(len(rows), bool)
        parts = []
        for matrix, mask, own_rows in ((self.matrix, ~is_patched, rows), (self.patch, is_patched, patch_rows)):
            part = matrix.neighbours(own_rows[mask])
            parts.append(replace(part, positions=np.flatnonzero(mask)[part.positions]))
        merged = Neighbours.concatenate(parts)
        order = np.argsort(merged.positions, kind="stable")
        return Neighbours(
            positions=merged.positions[order], columns=merged.columns[order], weights=merged.weights[order]
        )

    def multiply(self, vector: Floats) -> Floats:
        return self._with_patch(self.matrix.multiply(vector), self.patch.multiply(vector))

    def row_sums(self) -> Floats:
        return self._with_patch(self.matrix.row_sums(), self.patch.row_sums())

    def unweighted(self) -> "PatchedMatrix":
        return replace(self, matrix=self.matrix.unweighted(), patch=self.patch.unweighted())

    def _with_patch(self, values: Floats, patch_values: Floats) -> Floats:
        result = np.zeros(self.shape[0])
        n = min(len(values), len(result))
        result[:n] = values[:n]
        result[self.rows] = patch_values
        return result


@dataclass(frozen=True, slots=True)
class _RowBlock:
    """`n_rows` rows of equal `length`, stored column by column from entry `start`; the first is row `row` by length."""

    start: int
    length: int
    n_rows: int
    row: int


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The entries of a matrix with its rows sorted by length, so that equal rows are summed as whole vectors.

    That takes half the time of summing row by row. `rows` [n] gives the order of the rows; `columns` and `weights` [m]
    follow it. Rows longer than MAX_BLOCK_LENGTH are few, and are summed one by one from entry `long_start`.
    """

    rows: Ints
    columns: Ints
    weights: Floats | None
    blocks: Sequence[_RowBlock]
    long_start: int
    long_row: int
    long_starts: Ints

    def multiply(self, vector: Floats, n_rows: int) -> Floats:
        """Return the matrix times `vector`, [n_rows]."""
        by_length = np.zeros(len(self.rows))
        buffer = np.empty(_ENTRIES_PER_BLOCK)
        for block in self.blocks:
            terms = self._terms(vector, slice(block.start, block.start + block.length * block.n_rows), buffer)
            sums = by_length[block.row : block.row + block.n_rows]
            np.add.reduce(terms.reshape(block.length, block.n_rows), axis=0, out=sums)
        if len(self.long_starts):
            terms = self._terms(vector, slice(self.long_start, len(self.columns)), None)
            by_length[self.long_row :] = np.add.reduceat(terms, self.long_starts)
        product = np.zeros(n_rows)
        product[self.rows] = by_length
        return product

    def _terms(self, vector: Floats, entries: slice, buffer: Floats | None) -> Floats:
        """Return weight times vector element of some entries, in `buffer` if there is one."""
        columns = self.columns[entries]
        out = None if buffer is None else buffer[: len(columns)]
        terms = vector.take(columns, out=out, mode="clip")  # twice as fast as with bounds checks
        if self.weights is not None:
            terms *= self.weights[entries]
        return terms


def row_layout(starts: Ints, columns: Ints, weights: Floats | None) -> RowLayout:
    """Return the layout of compressed rows; see SparseMatrix for the arguments."""
    lengths = np.diff(starts)
    capped = np.minimum(lengths, MAX_BLOCK_LENGTH + 1).astype(np.uint8)  # NumPy sorts these by counting
    rows = np.argsort(capped, kind="stable")
    n_by_length = np.bincount(capped, minlength=MAX_BLOCK_LENGTH + 2).tolist()
    blocks: list[_RowBlock] = []
    orders: list[Ints] = []
    row, start = n_by_length[0], 0
    for length in range(1, MAX_BLOCK_LENGTH + 1):
        end = row + n_by_length[length]
        while row < end:
            n_rows = min(end - row, _ENTRIES_PER_BLOCK // length)
            first = starts[rows[row : row + n_rows]]
            orders.append((first + np.arange(length)[:, np.newaxis]).ravel())
            blocks.append(_RowBlock(start, length, n_rows, row))
            row, start = row + n_rows, start + length * n_rows
    long_rows = rows[row:]
    long_lengths = lengths[long_rows]
    order = np.concatenate([*orders, concatenated_ranges(starts[long_rows], long_lengths)])
    return RowLayout(
        rows=rows,
        columns=columns.take(order, mode="clip"),
        weights=None if weights is None else weights.take(order, mode="clip"),
        blocks=blocks,
        long_start=start,
        long_row=row,
        long_starts=np.cumsum(long_lengths) - long_lengths,
    )
