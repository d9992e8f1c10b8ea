"""Segments: the vectors of one space in memory or mapped from files, their state at each revision, and search in it.

A search is exact for few rows, and goes through sign sketches for many.
"""

import bisect
import mmap
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from quipu.algo.similarity import (
    QuerySketch,
    distances,
    exact_scores,
    largest_with_ties,
    near_pairs,
    pack_signs,
    sketch_query,
    smallest_with_ties,
    widen,
)
from quipu.ports.store import VectorBlock

_MAX_SYNCS = 64
_MIN_CANDIDATES = 400
_CANDIDATES_PER_RESULT = 32  # recall is 99 % for 10 to 120 results, measured on sentences
_ROWS_PER_CANDIDATE = 500
_FARTHEST = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True)
class MappedPages:
    """The memory pages of a mapped file from byte `start`."""

    file: mmap.mmap
    start: int

    def release(self) -> None:
        """Give the pages back to the operating system, which reads them again on use; this takes about a millisecond.

        Otherwise every search keeps more of a large file resident, because a page fault maps sixteen pages.
        """
        first = -(-self.start // mmap.PAGESIZE) * mmap.PAGESIZE
        if sys.platform != "win32" and first < len(self.file):
            self.file.madvise(mmap.MADV_DONTNEED, first, len(self.file) - first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A run of rows: `rows` [n] int64, ascending; `sketches` [words, n] uint64; `vectors` [n, d] float16.

    `pages` is set where `vectors` is mapped from a large file.
    """

    rows: npt.NDArray[np.int64]
    sketches: npt.NDArray[np.uint64]
    vectors: npt.NDArray[np.float16]
    pages: MappedPages | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, n: int) -> "Segment":
        """Return the first `n` rows, sharing memory."""
        return replace(self, rows=self.rows[:n], sketches=self.sketches[:, :n], vectors=self.vectors[:n])

    def release(self) -> None:
        """Release the pages of a large file."""
        if self.pages is not None:
            self.pages.release()


def segment_of(block: VectorBlock) -> Segment:
    """Return a block of vectors as a segment in memory."""
    vectors = np.ascontiguousarray(block.vectors)
    return Segment(rows=block.rows, sketches=pack_signs(vectors), vectors=vectors)


def concatenated_segments(left: Segment, right: Segment) -> Segment:
    """Return the rows of both, copied to memory."""
    return Segment(
        rows=np.concatenate([left.rows, right.rows]),
        sketches=np.concatenate([left.sketches, right.sketches], axis=1),
        vectors=np.concatenate([left.vectors, right.vectors]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTable:
    """Segments one after the other, rows ascending over all of them. A position counts rows from the start.

    The first `n_mapped` segments are mapped from files.
    """

    segments: tuple[Segment, ...] = ()
    n_mapped: int = 0

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    @property
    def dimension(self) -> int:
        """Length of the vectors, 0 where there are none."""
        return self.segments[0].vectors.shape[1] if self.segments else 0

    def first(self, n: int) -> "VectorTable":
        """Return the first `n` rows, sharing memory."""
        if n == len(self):
            return self
        starts = self._starts()
        first = [segment.first(n - start) for start, segment in zip(starts, self.segments, strict=True) if start < n]
        return VectorTable(segments=tuple(first), n_mapped=min(self.n_mapped, len(first)))

    def extended(self, segment: Segment) -> "VectorTable":
        """Return the table with a segment added; positions do not change.

        Segments in memory are concatenated so that each is at most half as long as the one before it. So they stay
        few, and a row is copied a logarithmic number of times.
        """
        segments = [*self.segments, segment]
        while len(segments) - self.n_mapped > 1 and len(segments[-2]) < 2 * len(segments[-1]):
            segments[-2:] = [concatenated_segments(segments[-2], segments[-1])]
        return VectorTable(segments=tuple(segments), n_mapped=self.n_mapped)

    def locate(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the positions of the given rows, in their order; unknown rows are left out."""
        positions = [np.empty(0, dtype=np.int64)]
        for start, segment in zip(self._starts(), self.segments, strict=True):
            index = np.searchsorted(segment.rows, rows)
            is_in = segment.rows.take(index, mode="clip") == rows if len(segment) else np.zeros(len(rows), dtype=bool)
            positions.append(start + index[is_in])
        return np.concatenate(positions)

    def rows_at(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the row numbers at ascending positions."""
        return np.concatenate(
            [np.empty(0, dtype=np.int64), *(segment.rows[index] for segment, index in self._split(positions))]
        )

    def data_at(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float16]:
        """Return the vectors at ascending positions, [n, d]."""
        return np.concatenate(
            [
                np.empty((0, self.dimension), dtype=np.float16),
                *(segment.vectors[index] for segment, index in self._split(positions)),
            ]
        )

    def distances(self, query: QuerySketch) -> npt.NDArray[np.uint16]:
        """Return the sketch distance of every row."""
        return np.concatenate([distances(segment.sketches, query) for segment in self.segments])

    def scores(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return the exact score of every row."""
        return np.concatenate([exact_scores(segment.vectors, query) for segment in self.segments])

    def scores_at(self, positions: npt.NDArray[np.int64], query: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return the exact scores of the rows at ascending positions."""
        scored = [np.empty(0, dtype=np.float64)]
        for segment, index in self._split(positions):
            scored.append(exact_scores(segment.vectors, query, index))
            segment.release()
        return np.concatenate(scored)

    def near_pairs(
        self, queries: npt.NDArray[np.float16], min_score: float
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the positions, and the rows of `queries` [q, d], of pairs that may score `min_score` or more."""
        pairs = [np.empty((2, 0), dtype=np.int64)]
        for start, segment in zip(self._starts(), self.segments, strict=True):
            index, query_rows = near_pairs(segment.vectors, queries, min_score)
            pairs.append(np.stack([index + start, query_rows]))
            segment.release()
        positions, query_rows = np.concatenate(pairs, axis=1)
        return positions, query_rows

    def _starts(self) -> list[int]:
        starts = [0]
        for segment in self.segments:
            starts.append(starts[-1] + len(segment))
        return starts[:-1]

    def _split(self, positions: npt.NDArray[np.int64]) -> Iterator[tuple[Segment, npt.NDArray[np.int64]]]:
        """Yield each segment that has some of the ascending positions, with their index in it."""
        starts = self._starts()
        cuts = [*np.searchsorted(positions, starts).tolist(), len(positions)]
        for i, segment in enumerate(self.segments):
            if cuts[i] < cuts[i + 1]:
                yield segment, positions[cuts[i] : cuts[i + 1]] - starts[i]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPoint:
    """At `revision`, the space had the first `n_rows` rows without the first `n_deleted` deleted ones."""

    revision: int
    n_rows: int
    n_deleted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceState:
    """A table that only grows, the positions of deleted rows in the order of their deletion, and the sync points.

    Views of different revisions share one state: each reads the prefix that its own sync point gives.
    """

    table: VectorTable
    deleted: npt.NDArray[np.int64]
    syncs: tuple[SyncPoint, ...]

    @property
    def revision(self) -> int:
        """The newest revision."""
        return self.syncs[-1].revision

    @property
    def n_live(self) -> int:
        """The number of rows that are not deleted."""
        return len(self.table) - len(self.deleted)

    def live(self) -> npt.NDArray[np.int64]:
        """Return the positions of the rows that are not deleted, ascending."""
        mask = np.ones(len(self.table), dtype=bool)
        mask[self.deleted] = False
        return np.flatnonzero(mask)

    def as_of(self, revision: int) -> "SpaceState | None":
        """Return the state at its last sync point up to `revision`, sharing memory; None where all are later."""
        index = bisect.bisect_right(self.syncs, revision, key=lambda sync: sync.revision)
        if index == len(self.syncs):
            return self
        if index == 0:
            return None
        sync = self.syncs[index - 1]
        return SpaceState(
            table=self.table.first(sync.n_rows), deleted=self.deleted[: sync.n_deleted], syncs=self.syncs[:index]
        )

    def without(self, rows: npt.NDArray[np.int64]) -> "SpaceState":
        """Return the state with more rows deleted; no sync point has them yet."""
        positions = np.setdiff1d(self.table.locate(rows), self.deleted)
        return replace(self, deleted=np.concatenate([self.deleted, positions]))

    def last_live(self) -> npt.NDArray[np.int64]:
        """Return an array with the position of the last row that is not deleted; empty where there is none."""
        latest = np.sort(self.deleted)[::-1]
        n_trailing = np.count_nonzero(np.logical_and.accumulate(latest == len(self.table) - 1 - np.arange(len(latest))))
        end = len(self.table) - int(n_trailing)
        return np.arange(max(end - 1, 0), end)

    def grown(self, revision: int, block: VectorBlock) -> "SpaceState | None":
        """Return the state at `revision`, given the store's rows from the last live row.

        That row must equal the one in the table. Returns None where it does not, for example after a backup was
        restored.
        """
        last_row = int(self.table.segments[-1].rows[-1]) if len(self.table) else -1
        n_known = int(np.searchsorted(block.rows, last_row, side="right"))
        if len(self.table) and not np.array_equal(block.vectors[:n_known], self.table.data_at(self.last_live())):
            return None
        added = VectorBlock(rows=block.rows[n_known:], vectors=block.vectors[n_known:])
        table = self.table.extended(segment_of(added)) if len(added.rows) else self.table
        sync = SyncPoint(revision=revision, n_rows=len(table), n_deleted=len(self.deleted))
        first, *later = self.syncs
        return SpaceState(table=table, deleted=self.deleted, syncs=(first, *later[2 - _MAX_SYNCS :], sync))


def initial_state(revision: int, block: VectorBlock) -> SpaceState:
    """Return the state that has all of the store's rows at `revision`."""
    table = VectorTable(segments=(segment_of(block),)) if len(block.rows) else VectorTable()
    sync = SyncPoint(revision=revision, n_rows=len(table), n_deleted=0)
    return SpaceState(table=table, deleted=np.empty(0, dtype=np.int64), syncs=(sync,))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """The rows that a search may return: all live rows of `state`, or those at the `allowed` positions (ascending)."""

    state: SpaceState
    allowed: npt.NDArray[np.int64] | None

    def __len__(self) -> int:
        return self.state.n_live if self.allowed is None else len(self.allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRows:
    """Rows, ascending, with their scores. `is_exhausted` says that a deeper search would return no more."""

    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    is_exhausted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDepth:
    """How far to search: for the best `n` rows, and ties with the last, that score at least `min_score`.

    A scope of up to `exact_below` rows is scored completely.
    """

    n: int
    min_score: float
    exact_below: int


def rank(scope: SearchScope, query: npt.NDArray[np.float32], depth: SearchDepth) -> RankedRows:
    """Return the best rows of a scope that is not empty. The result does not depend on the order of its rows."""
    table = scope.state.table
    if len(scope) > depth.exact_below:
        positions = _candidates(scope, query, depth.n)
        scores = table.scores_at(positions, query)
    elif scope.allowed is None:
        positions = scope.state.live()
        scores = table.scores(query)[positions]
    else:
        positions = scope.allowed
        scores = table.scores_at(positions, query)
    best = largest_with_ties(scores, depth.n)
    good = best[scores[best] >= depth.min_score]
    return RankedRows(
        rows=table.rows_at(positions[good]),
        scores=scores[good],
        is_exhausted=len(good) < len(best) or depth.n >= len(scope),
    )


def score_all(
    scope: SearchScope, query: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the rows of a scope, ascending, and the score of each."""
    table = scope.state.table
    if scope.allowed is None:
        positions = scope.state.live()
        return table.rows_at(positions), table.scores(query)[positions]
    return table.rows_at(scope.allowed), table.scores_at(scope.allowed, query)


def rank_pairs(scope: SearchScope, rows: npt.NDArray[np.int64], min_score: float) -> list[tuple[int, int, float]]:
    """Return (row, other row, score) for one of `rows` and any row of the scope that score at least `min_score`.

    A row is paired with itself too. Where both rows are in `rows`, the pair is returned in both directions. A matrix
    product selects the candidates, and exact scores decide.
    """
    table = scope.state.table
    query_positions = table.locate(rows)
    queries = table.data_at(query_positions)
    positions, query_rows = table.near_pairs(queries, min_score)
    is_in_scope = np.isin(positions, scope.state.live() if scope.allowed is None else scope.allowed)
    positions, query_rows = positions[is_in_scope], query_rows[is_in_scope]
    pairs: list[tuple[int, int, float]] = []
    for i in np.unique(query_rows).tolist():
        near = np.sort(positions[query_rows == i])
        scores = table.scores_at(near, widen(queries[i : i + 1])[0])
        row = int(table.rows_at(query_positions[i : i + 1])[0])
        candidates = zip(table.rows_at(near).tolist(), scores.tolist(), strict=True)
        pairs += [(row, other, score) for other, score in candidates if score >= min_score]
    return pairs


def _candidates(scope: SearchScope, query: npt.NDArray[np.float32], n_results: int) -> npt.NDArray[np.int64]:
    """Return the positions of the rows with the nearest sketches, enough to include the best rows."""
    distances = scope.state.table.distances(sketch_query(query))
    n_candidates = max(_MIN_CANDIDATES, n_results * _CANDIDATES_PER_RESULT, len(scope) // _ROWS_PER_CANDIDATE)
    if scope.allowed is not None:
        return scope.allowed[smallest_with_ties(distances[scope.allowed], n_candidates)]
    if n_candidates >= len(scope):
        return scope.state.live()
    distances[scope.state.deleted] = _FARTHEST
    return smallest_with_ties(distances, n_candidates)
