"""Links as arrays: sparse matrices read by rows, whole or with some rows replaced; see ports.topology.Links."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from quipu.algo.gathering import MIN_LINKS, Layout, laid_out, places
from quipu.ports.topology import Floats, Ints, Neighbours


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Compressed rows: row i has `columns[starts[i] : starts[i + 1]]`, rising, with their `weights`, or 1 each.

    `starts` is [n_rows + 1] or shorter: rows beyond it are empty.
    """

    starts: Ints
    columns: Ints
    weights: Floats | None
    shape: tuple[int, int]

    @property
    def n_links(self) -> int:
        return len(self.columns)

    def of(self, numbers: Ints) -> Neighbours:
        first, n = self._ranges(numbers)
        at = places(first, n)
        return Neighbours(
            of=np.repeat(np.arange(len(numbers), dtype=np.int64), n),
            to=self.columns[at],
            weights=np.ones(len(at)) if self.weights is None else self.weights[at],
        )

    def gather(self, weights: Floats) -> Floats:
        if len(self.columns) >= MIN_LINKS:
            return self._layout.gather(weights, self.shape[0])
        found = weights[self.columns]
        return self._summed(found if self.weights is None else found * self.weights)

    def sums(self) -> Floats:
        return self._sums.copy()

    def ones(self) -> "Matrix":
        return self if self.weights is None else self._ones

    def _ranges(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return where each row starts, and how many links it has."""
        last = len(self.starts) - 1
        first = self.starts[np.minimum(numbers, last)]
        return first, self.starts[np.minimum(numbers + 1, last)] - first

    def _summed(self, values: Floats) -> Floats:
        """Return the sum of a value for each link, [n_links], in each row."""
        sums = np.zeros(self.shape[0])
        filled = np.flatnonzero(np.diff(self.starts))
        if len(filled):
            sums[filled] = np.add.reduceat(values, self.starts[filled])
        return sums

    @cached_property
    def _layout(self) -> Layout:
        return laid_out(self.starts, self.columns, self.weights)

    @cached_property
    def _ones(self) -> "Matrix":
        return replace(self, weights=None)  # made once, as its layout is

    @cached_property
    def _sums(self) -> Floats:
        if self.weights is not None:
            return self._summed(self.weights)
        sums = np.zeros(self.shape[0])
        sums[: len(self.starts) - 1] = np.diff(self.starts)
        return sums


@dataclass(frozen=True, kw_only=True)
class Patched:
    """A matrix some of whose `rows` (rising) are other ones now: row i of `patch` is row `rows[i]` in full."""

    matrix: Matrix
    rows: Ints
    patch: Matrix
    shape: tuple[int, int]

    @cached_property
    def n_links(self) -> int:
        """How many weights are not zero."""
        _, replaced = self.matrix._ranges(self.rows)
        return self.matrix.n_links - int(replaced.sum()) + self.patch.n_links

    def of(self, numbers: Ints) -> Neighbours:
        at = np.searchsorted(self.rows, numbers)
        is_patched = self.rows.take(at, mode="clip") == numbers if len(self.rows) else np.zeros(len(numbers), bool)
        sides = []
        for matrix, mask, asked in ((self.matrix, ~is_patched, numbers), (self.patch, is_patched, at)):
            found = matrix.of(asked[mask])
            sides.append(replace(found, of=np.flatnonzero(mask)[found.of]))
        of, to, weights = (np.concatenate([getattr(side, name) for side in sides]) for name in ("of", "to", "weights"))
        order = np.argsort(of, kind="stable")
        return Neighbours(of=of[order], to=to[order], weights=weights[order])

    def gather(self, weights: Floats) -> Floats:
        return self._spread(self.matrix.gather(weights), self.patch.gather(weights))

    def sums(self) -> Floats:
        return self._spread(self.matrix.sums(), self.patch.sums())

    def ones(self) -> "Patched":
        return replace(self, matrix=self.matrix.ones(), patch=self.patch.ones())

    def _spread(self, sums: Floats, patched: Floats) -> Floats:
        spread = np.zeros(self.shape[0])
        n = min(len(sums), len(spread))
        spread[:n] = sums[:n]
        spread[self.rows] = patched
        return spread


def matrix_of(rows: Ints, columns: Ints, weights: Floats | None, shape: tuple[int, int]) -> Matrix:
    """Return the matrix with these links, which may come in any order but must be distinct."""
    order = np.lexsort((columns, rows))
    starts = np.zeros(shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=starts[1:])
    return Matrix(
        starts=starts, columns=columns[order], weights=None if weights is None else weights[order], shape=shape
    )
