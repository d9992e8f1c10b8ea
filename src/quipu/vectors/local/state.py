"""State: what the process knows of one space, and from which revision on it knew it."""

import bisect
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from quipu.ports.store import VectorBlock
from quipu.vectors.local.table import Table, sketched

_MAX_SYNCS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """At `revision` the space consisted of the first `n_rows` rows without the first `n_gone` deleted ones."""

    revision: int
    n_rows: int
    n_gone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A table that only grows, the positions of its deleted rows in the order they became known, and the syncs.

    Views of different revisions share one state: each reads the prefix its own sync names.
    """

    table: Table
    gone: npt.NDArray[np.int64]
    syncs: tuple[Sync, ...]

    @property
    def revision(self) -> int:
        """The newest revision known."""
        return self.syncs[-1].revision

    @property
    def n_live(self) -> int:
        """Rows that are not deleted."""
        return len(self.table) - len(self.gone)

    def live(self) -> npt.NDArray[np.int64]:
        """Return the positions of the rows that are not deleted, rising."""
        mask = np.ones(len(self.table), dtype=bool)
        mask[self.gone] = False
        return np.flatnonzero(mask)

    def as_of(self, revision: int) -> "State | None":
        """Return the state at its last sync up to `revision`, sharing memory; None where all are later."""
        at = bisect.bisect_right(self.syncs, revision, key=lambda sync: sync.revision)
        if at == len(self.syncs):
            return self
        if at == 0:
            return None
        sync = self.syncs[at - 1]
        return State(table=self.table.first(sync.n_rows), gone=self.gone[: sync.n_gone], syncs=self.syncs[:at])

    def without(self, rows: npt.NDArray[np.int64]) -> "State":
        """Return the state with more rows deleted, not yet in any sync."""
        positions = np.setdiff1d(self.table.locate(rows), self.gone)
        return replace(self, gone=np.concatenate([self.gone, positions]))

    def last_live(self) -> npt.NDArray[np.int64]:
        """Return the position of the last row that is not deleted, as an array of one; empty where there is none."""
        latest = np.sort(self.gone)[::-1]
        n_trailing = np.count_nonzero(np.logical_and.accumulate(latest == len(self.table) - 1 - np.arange(len(latest))))
        end = len(self.table) - int(n_trailing)
        return np.arange(max(end - 1, 0), end)

    def grown(self, revision: int, block: VectorBlock) -> "State | None":
        """Return the state at `revision`, given the store's rows from the last live row on.

        That row is known already and must be the same: None where it is not, as after a backup was restored.
        """
        last_row = int(self.table.segments[-1].rows[-1]) if len(self.table) else -1
        n_known = int(np.searchsorted(block.rows, last_row, side="right"))
        if len(self.table) and not np.array_equal(block.data[:n_known], self.table.data_at(self.last_live())):
            return None
        added = VectorBlock(rows=block.rows[n_known:], data=block.data[n_known:])
        table = self.table.extended(sketched(added)) if len(added.rows) else self.table
        sync = Sync(revision=revision, n_rows=len(table), n_gone=len(self.gone))
        first, *later = self.syncs
        return State(table=table, gone=self.gone, syncs=(first, *later[2 - _MAX_SYNCS :], sync))


def fresh(revision: int, block: VectorBlock) -> State:
    """Return the state that consists of all of the store's rows at `revision`."""
    table = Table(segments=(sketched(block),)) if len(block.rows) else Table()
    sync = Sync(revision=revision, n_rows=len(table), n_gone=0)
    return State(table=table, gone=np.empty(0, dtype=np.int64), syncs=(sync,))
