"""Table: the rows of a space as segments, each in memory or mapped from a file."""

import mmap
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from quipu.algo.similarity import QuerySketch, distances, exact_scores, near_pairs, pack_signs
from quipu.ports.store import VectorBlock


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a mapped file from byte `start` on."""

    file: mmap.mmap
    start: int

    def release(self) -> None:
        """Give the pages back to the system, which reads them again when they are used; costs about a millisecond.

        Without this, every search of a large file keeps more of it resident: a page fault maps sixteen pages.
        """
        first = -(-self.start // mmap.PAGESIZE) * mmap.PAGESIZE
        if sys.platform != "win32" and first < len(self.file):
            self.file.madvise(mmap.MADV_DONTNEED, first, len(self.file) - first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A run of rows: `rows` [n] int64, rising; `sketches` [words, n] uint64; `data` [n, d] float16.

    `pages` are those of data that is mapped from a large file.
    """

    rows: npt.NDArray[np.int64]
    sketches: npt.NDArray[np.uint64]
    data: npt.NDArray[np.float16]
    pages: Pages | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, n: int) -> "Segment":
        """Return the first `n` rows, sharing memory."""
        return replace(self, rows=self.rows[:n], sketches=self.sketches[:, :n], data=self.data[:n])

    def release(self) -> None:
        """Keep no pages of a large file resident."""
        if self.pages is not None:
            self.pages.release()


def sketched(block: VectorBlock) -> Segment:
    """Return a block of vectors as a segment in memory."""
    data = np.ascontiguousarray(block.data)
    return Segment(rows=block.rows, sketches=pack_signs(data), data=data)


def joined(left: Segment, right: Segment) -> Segment:
    """Return the rows of both, copied to memory."""
    return Segment(
        rows=np.concatenate([left.rows, right.rows]),
        sketches=np.concatenate([left.sketches, right.sketches], axis=1),
        data=np.concatenate([left.data, right.data]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Segments one after the other, rows rising throughout; a position counts rows from the start.

    The first `n_mapped` segments are mapped from files.
    """

    segments: tuple[Segment, ...] = ()
    n_mapped: int = 0

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    @property
    def dimension(self) -> int:
        """Length of the vectors, 0 where there are none."""
        return self.segments[0].data.shape[1] if self.segments else 0

    def first(self, n: int) -> "Table":
        """Return the first `n` rows, sharing memory."""
        if n == len(self):
            return self
        starts = self._starts()
        kept = [segment.first(n - start) for start, segment in zip(starts, self.segments, strict=True) if start < n]
        return Table(segments=tuple(kept), n_mapped=min(self.n_mapped, len(kept)))

    def extended(self, segment: Segment) -> "Table":
        """Return the table with a segment added; positions stay as they are.

        Segments in memory are joined so that each is at most half as long as the one before: they stay few, and a row
        is copied a logarithmic number of times.
        """
        segments = [*self.segments, segment]
        while len(segments) - self.n_mapped > 1 and len(segments[-2]) < 2 * len(segments[-1]):
            segments[-2:] = [joined(segments[-2], segments[-1])]
        return Table(segments=tuple(segments), n_mapped=self.n_mapped)

    def locate(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the positions of the given rows, in their order; rows that are not here are left out."""
        found = [np.empty(0, dtype=np.int64)]
        for start, segment in zip(self._starts(), self.segments, strict=True):
            places = np.searchsorted(segment.rows, rows)
            here = segment.rows.take(places, mode="clip") == rows if len(segment) else np.zeros(len(rows), dtype=bool)
            found.append(start + places[here])
        return np.concatenate(found)

    def rows_at(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the row numbers at rising positions."""
        return np.concatenate(
            [np.empty(0, dtype=np.int64), *(segment.rows[places] for segment, places in self._split(positions))]
        )

    def data_at(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float16]:
        """Return the vectors at rising positions, [n, d]."""
        return np.concatenate(
            [
                np.empty((0, self.dimension), dtype=np.float16),
                *(segment.data[places] for segment, places in self._split(positions)),
            ]
        )

    def distances(self, query: QuerySketch) -> npt.NDArray[np.uint16]:
        """Return the sketch distance of every row."""
        return np.concatenate([distances(segment.sketches, query) for segment in self.segments])

    def scores(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return the exact score of every row."""
        return np.concatenate([exact_scores(segment.data, query) for segment in self.segments])

    def scores_at(self, positions: npt.NDArray[np.int64], query: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return the exact scores of the rows at rising positions."""
        scored = [np.empty(0, dtype=np.float64)]
        for segment, places in self._split(positions):
            scored.append(exact_scores(segment.data, query, places))
            segment.release()
        return np.concatenate(scored)

    def near_pairs(
        self, queries: npt.NDArray[np.float16], least: float
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return positions, and places in `queries` [q, d], of pairs whose score may be at least `least`."""
        found = [np.empty((2, 0), dtype=np.int64)]
        for start, segment in zip(self._starts(), self.segments, strict=True):
            places, of = near_pairs(segment.data, queries, least)
            found.append(np.stack([places + start, of]))
            segment.release()
        positions, of = np.concatenate(found, axis=1)
        return positions, of

    def _starts(self) -> list[int]:
        starts = [0]
        for segment in self.segments:
            starts.append(starts[-1] + len(segment))
        return starts[:-1]

    def _split(self, positions: npt.NDArray[np.int64]) -> Iterator[tuple[Segment, npt.NDArray[np.int64]]]:
        """Yield each segment that holds some of the rising positions, with their places in it."""
        starts = self._starts()
        cuts = [*np.searchsorted(positions, starts).tolist(), len(positions)]
        for i, segment in enumerate(self.segments):
            if cuts[i] < cuts[i + 1]:
                yield segment, positions[cuts[i] : cuts[i + 1]] - starts[i]
