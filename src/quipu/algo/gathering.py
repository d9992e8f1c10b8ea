"""Gathering: a sparse matrix times a vector, in NumPy alone.

Rows of equal length are laid side by side, first links first: the sums of all of them are then a few sums of vectors,
which takes half the time of summing row by row. Longer rows, of which there are few, are summed one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quipu.ports.topology import Floats, Ints

MAX_LENGTH = 64  # of rows that are laid side by side, below 255
MIN_LINKS = 50_000  # fewer are summed row by row in less time
_LINKS_AT_ONCE = 65_536  # what they add stays in a processor's cache


def places(starts: Ints, lengths: Ints) -> Ints:
    """Return the numbers of all ranges [start, start + length), one after the other."""
    ends = np.cumsum(lengths)
    n = int(ends[-1]) if len(ends) else 0
    return np.arange(n, dtype=np.int64) + np.repeat(starts - ends + lengths, lengths)


@dataclass(frozen=True, slots=True)
class _Side:
    """`n_rows` rows of `length` links, side by side from link `start` on; the first is row `row` by length."""

    start: int
    length: int
    n_rows: int
    row: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The links of a matrix by the length of rows: `rows` [n] are in that order, `columns` and `weights` [m] too."""

    rows: Ints
    columns: Ints
    weights: Floats | None
    sides: Sequence[_Side]
    long_start: int  # the first link of a row that is longer than MAX_LENGTH
    long_row: int
    long_starts: Ints

    def gather(self, weights: Floats, n_rows: int) -> Floats:
        """Return the matrix times `weights`, [n_rows]."""
        by_length = np.zeros(len(self.rows))
        room = np.empty(_LINKS_AT_ONCE)
        for side in self.sides:
            links = self._found(weights, slice(side.start, side.start + side.length * side.n_rows), room)
            sums = by_length[side.row : side.row + side.n_rows]
            np.add.reduce(links.reshape(side.length, side.n_rows), axis=0, out=sums)
        if len(self.long_starts):
            links = self._found(weights, slice(self.long_start, len(self.columns)), None)
            by_length[self.long_row :] = np.add.reduceat(links, self.long_starts)
        sums = np.zeros(n_rows)
        sums[self.rows] = by_length
        return sums

    def _found(self, weights: Floats, links: slice, room: Floats | None) -> Floats:
        """Return what some links add, in `room` where there is any."""
        columns = self.columns[links]
        out = None if room is None else room[: len(columns)]
        found = weights.take(columns, out=out, mode="clip")  # twice as fast as to check each
        if self.weights is not None:
            found *= self.weights[links]
        return found


def laid_out(starts: Ints, columns: Ints, weights: Floats | None) -> Layout:
    """Return the layout of compressed rows, see `quipu.algo.links.Matrix`."""
    lengths = np.diff(starts)
    sorts = np.minimum(lengths, MAX_LENGTH + 1).astype(np.uint8)  # which are sorted by counting
    rows = np.argsort(sorts, kind="stable")
    n_by_length = np.bincount(sorts, minlength=MAX_LENGTH + 2).tolist()
    sides: list[_Side] = []
    parts: list[Ints] = []
    row, start = n_by_length[0], 0
    for length in range(1, MAX_LENGTH + 1):
        end = row + n_by_length[length]
        while row < end:
            n_rows = min(end - row, _LINKS_AT_ONCE // length)
            first = starts[rows[row : row + n_rows]]
            parts.append((first + np.arange(length)[:, np.newaxis]).ravel())
            sides.append(_Side(start, length, n_rows, row))
            row, start = row + n_rows, start + length * n_rows
    long_rows = rows[row:]
    n = lengths[long_rows]
    order = np.concatenate([*parts, places(starts[long_rows], n)])
    return Layout(
        rows=rows,
        columns=columns.take(order, mode="clip"),
        weights=None if weights is None else weights.take(order, mode="clip"),
        sides=sides,
        long_start=start,
        long_row=row,
        long_starts=np.cumsum(n) - n,
    )
