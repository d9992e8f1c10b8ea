"""Tables of whole numbers by row, immutable: a base, perhaps mapped from a file, and rows that are other ones since."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quipu.algo.sparse_matrix import PatchedMatrix, SparseMatrix, concatenated_ranges
from quipu.ports.topology import Floats, Ints

NONE: Ints = np.empty(0, dtype=np.int64)
_FEW = 1_000
_NOTHING = SparseMatrix(starts=np.zeros(1, dtype=np.int64), columns=NONE, weights=None, shape=(0, 0))
Weigh = Callable[[Sequence[Ints]], Floats | None]  # of the values, each [n]: [n], or None for 1 each


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of some rows: `rows` and `columns` [n], and `values`, each [n]."""

    rows: Ints
    columns: Ints
    values: tuple[Ints, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, mask: npt.NDArray[np.bool_]) -> "Entries":
        """Return the entries the mask [n] keeps."""
        return Entries(self.rows[mask], self.columns[mask], tuple(value[mask] for value in self.values))

    def and_(self, other: "Entries") -> "Entries":
        """Return these entries and others."""
        values = zip(self.values, other.values, strict=True)
        return Entries(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.columns, other.columns]),
            tuple(np.concatenate(pair) for pair in values),
        )

    def turned(self) -> "Entries":
        """Return the entries with rows for columns."""
        return Entries(self.columns, self.rows, self.values)


@dataclass(frozen=True)
class Table:
    """Row i has `columns[starts[i] : starts[i + 1]]`, rising, and the same places of `values`; `starts` is [n + 1]."""

    starts: Ints
    columns: Ints
    values: tuple[Ints, ...]
    _matrices: dict[tuple[Weigh, tuple[int, int]], SparseMatrix] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> Ints:
        """How many entries each row has."""
        return np.diff(self.starts)

    @cached_property
    def n_columns(self) -> int:
        """Columns are below this."""
        return int(self.columns.max(initial=-1)) + 1

    def entries(self, rows: Ints) -> Entries:
        """Return the entries of these rows, in their order; `rows` of the result are places among them."""
        here = np.minimum(rows, len(self))
        first = self.starts[here]
        n = self.starts[np.minimum(here + 1, len(self))] - first
        at = concatenated_ranges(first, n)
        return Entries(np.repeat(np.arange(len(rows)), n), self.columns[at], tuple(value[at] for value in self.values))

    def matrix(self, weigh: Weigh, shape: tuple[int, int]) -> SparseMatrix:
        """Return the table as a matrix, made once: the weights are those `weigh` makes of the values."""
        known = self._matrices.get((weigh, shape))
        if known is None:
            known = SparseMatrix(starts=self.starts, columns=self.columns, weights=weigh(self.values), shape=shape)
            self._matrices[weigh, shape] = known
        return known


def table_of(entries: Entries, n_rows: int | None = None) -> Table:
    """Return a table of entries in any order; rows end with the last that is not empty, or at `n_rows`."""
    n = int(entries.rows.max(initial=-1)) + 1 if n_rows is None else n_rows
    width = int(entries.columns.max(initial=0)) + 1
    order = np.argsort(entries.rows * width + entries.columns, kind="stable")  # fast where much is in order already
    starts = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(entries.rows, minlength=n), out=starts[1:])
    return Table(starts, entries.columns[order], tuple(value[order] for value in entries.values))


@dataclass(frozen=True)
class Layered:
    """A base table, some of whose `rows` (rising) are other ones now: row i of `patch` is row `rows[i]` in full."""

    base: Table
    rows: Ints = field(default_factory=lambda: NONE)
    patch: Table | None = None

    @cached_property
    def n_rows(self) -> int:
        """Numbers of rows that are not empty are below this."""
        return max(len(self.base), int(self.rows[-1]) + 1 if len(self.rows) else 0)

    @property
    def n_entries(self) -> int:
        """How many entries base and patch hold, replaced ones included."""
        return len(self.base.columns) + (len(self.patch.columns) if self.patch is not None else 0)

    def entries(self, rows: Ints) -> Entries:
        """Return the entries of these rows, each row once, as they are now, in no order of rows."""
        if self.patch is None:
            found = self.base.entries(rows)
            return Entries(rows[found.rows], found.columns, found.values)
        at = np.searchsorted(self.rows, rows)
        is_patched = self.rows.take(at, mode="clip") == rows
        plain, patched = rows[~is_patched], rows[is_patched]
        old, new = self.base.entries(plain), self.patch.entries(at[is_patched])
        return Entries(plain[old.rows], old.columns, old.values).and_(
            Entries(patched[new.rows], new.columns, new.values)
        )

    def everything(self) -> Entries:
        """Return all entries."""
        return self.entries(np.arange(self.n_rows))

    def replaced(self, rows: Ints, entries: Entries) -> "Layered":
        """Return the table with these `rows` (rising) holding these entries alone."""
        if not len(rows):
            return self
        new = table_of(Entries(np.searchsorted(rows, entries.rows), entries.columns, entries.values), len(rows))
        if self.patch is None:
            return Layered(self.base, rows, new)._compact()
        is_kept = ~np.isin(self.rows, rows)
        kept = self.rows[is_kept]
        together = np.union1d(kept, rows)
        sources = [
            _Rows(np.searchsorted(together, kept), self.patch, np.flatnonzero(is_kept)),
            _Rows(np.searchsorted(together, rows), new, np.arange(len(rows))),
        ]
        return Layered(self.base, together, _laid_out(sources, len(together)))._compact()

    def merged(self) -> Table:
        """Return the table as one, without empty rows at its end: the same however it came about."""
        is_plain = np.ones(self.n_rows, dtype=bool)
        is_plain[self.rows] = False
        is_plain[len(self.base) :] = False
        plain = np.flatnonzero(is_plain)
        sources = [_Rows(plain, self.base, plain)]
        if self.patch is not None:
            sources.append(_Rows(self.rows, self.patch, np.arange(len(self.rows))))
        table = _laid_out(sources, self.n_rows)
        n_rows = int(np.flatnonzero(table.lengths)[-1]) + 1 if len(table.columns) else 0
        return Table(table.starts[: n_rows + 1], table.columns, table.values)

    def links(self, weigh: Weigh, shape: tuple[int, int]) -> SparseMatrix | PatchedMatrix:
        """Return the table as a matrix, with the weights that `weigh` makes of its values."""
        # Of its own shape, whatever there is beyond it by now: so it is made once for all revisions.
        whole = self.base.matrix(weigh, (len(self.base), self.base.n_columns))
        if self.patch is None:
            return (
                whole if whole.shape == shape else PatchedMatrix(matrix=whole, rows=NONE, patch=_NOTHING, shape=shape)
            )
        patch = self.patch.matrix(weigh, (len(self.rows), self.patch.n_columns))
        return PatchedMatrix(matrix=whole, rows=self.rows, patch=patch, shape=shape)

    def _compact(self) -> "Layered":
        """Return this as a base alone where the patch is a fair share of it: reading would take twice as long."""
        if self.patch is None or len(self.patch.columns) <= len(self.base.columns) // 2 + _FEW:
            return self
        return Layered(self.merged())


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows `sources` of a table, to stand at rows `targets` of another."""

    targets: Ints
    table: Table
    sources: Ints


def _laid_out(parts: Sequence[_Rows], n_rows: int) -> Table:
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
    return Table(starts, columns, values)
