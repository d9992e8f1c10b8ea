"""Files: a space's rows on disk, as immutable segment files under a manifest that is replaced by rename.

A segment file is three arrays one after the other: rows [n] int64, sketches [words, n] uint64, data [n, d] float16.
Rows and sketches are guarded by a checksum, data by the file's size. What is missing or damaged reads as absent: the
store has it all.
"""

import mmap
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quipu.atomic_file import remove_files, replace_atomically
from quipu.vectors.local.manifest import Manifest, SegmentFile, parse, render
from quipu.vectors.local.state import State, Sync
from quipu.vectors.local.table import Pages, Segment, Table

_ROWS_PER_WRITE = 8_192
_LARGE_BYTES = 64 << 20  # of data, which is then not kept resident


class SpaceFiles:
    """Reads and writes the files of one space, `<name>.json` and `<name>-<number>.segment`, in `directory`.

    Whoever writes must hold the directory's lock.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name

    def manifest(self) -> Manifest | None:
        """Return the manifest; None where it is missing, damaged or of another format."""
        try:
            return parse(self._manifest_path.read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def load(self, manifest: Manifest) -> State | None:
        """Return the state on disk, mapped; None where a file is missing or damaged."""
        try:
            return self._state(manifest)
        except (OSError, ValueError):
            return None

    def append(self, state: State, saved: Manifest | None) -> tuple[Manifest, State]:
        """Write what `saved`, the manifest `state` was mapped from, lacks; return the state, now mapped.

        Segments less than twice as long as what follows them are written again with it, so that there are few.
        Positions stay as they are: views of older revisions go on reading the same state.
        """
        kept = saved.segments if saved is not None else ()
        n_rows = len(state.table) - sum(segment.n_rows for segment in kept)
        while kept and kept[-1].n_rows < 2 * n_rows:
            n_rows += kept[-1].n_rows
            kept = kept[:-1]
        added = state.table.segments[len(kept) :]
        written = self._write_segment(added, np.ones(n_rows, dtype=bool)) if n_rows else ()
        manifest = self._replace_manifest(state, (*kept, *written), state.gone)
        segments = (*state.table.segments[: len(kept)], *(self._mapped(file, manifest.dimension) for file in written))
        table = Table(segments=segments, n_mapped=len(segments))
        return manifest, State(table=table, gone=state.gone, syncs=state.syncs)

    def rewrite(self, state: State) -> tuple[Manifest, State]:
        """Write the live rows alone, as one segment; return the state, now mapped and without its past."""
        mask = np.zeros(len(state.table), dtype=bool)
        mask[state.live()] = True
        manifest = self._replace_manifest(
            state, self._write_segment(state.table.segments, mask), np.empty(0, dtype=np.int64)
        )
        return manifest, self._state(manifest)

    def clear(self) -> None:
        """Remove the space's files."""
        self._manifest_path.unlink(missing_ok=True)
        self._remove_all_but(frozenset())

    @property
    def _manifest_path(self) -> Path:
        return self._directory / f"{self._name}.json"

    def _state(self, manifest: Manifest) -> State:
        segments = tuple(self._mapped(file, manifest.dimension) for file in manifest.segments)
        table = Table(segments=segments, n_mapped=len(segments))
        gone = np.array(manifest.gone, dtype=np.int64)
        sync = Sync(revision=manifest.revision, n_rows=len(table), n_gone=len(gone))
        return State(table=table, gone=gone, syncs=(sync,))

    def _mapped(self, file: SegmentFile, dimension: int) -> Segment:
        """Map a segment file. Raises ValueError where its size or checksum is wrong."""
        path = self._directory / file.name
        n, n_words = file.n_rows, -(-dimension // 64)
        index_bytes = n * 8 * (1 + n_words)
        with path.open("rb") as opened:
            mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        if zlib.crc32(memoryview(mapped)[:index_bytes]) != file.checksum:
            raise ValueError(f"{path} has another checksum")
        return Segment(
            rows=np.frombuffer(mapped, dtype=np.int64, count=n),
            sketches=np.frombuffer(mapped, dtype=np.uint64, count=n * n_words, offset=n * 8).reshape(n_words, n),
            data=np.frombuffer(mapped, dtype=np.float16, offset=index_bytes).reshape(n, dimension),
            pages=Pages(mapped, index_bytes) if len(mapped) - index_bytes > _LARGE_BYTES else None,
        )

    def _write_segment(self, segments: Sequence[Segment], mask: npt.NDArray[np.bool_]) -> tuple[SegmentFile]:
        """Write the rows of consecutive segments that `mask` [n] keeps as one file."""
        existing = self._directory.glob(f"{self._name}-{'[0-9]' * 8}.segment")
        number = 1 + max((int(path.stem[-8:]) for path in existing), default=0)
        path = self._directory / f"{self._name}-{number:08d}.segment"
        splits = np.cumsum([len(segment) for segment in segments])[:-1]
        kept = list(zip(segments, np.split(mask, splits), strict=True))
        checksum = 0
        with replace_atomically(path, _unfinished(path)) as file:
            for part in _rows_and_sketches(kept):
                checksum = zlib.crc32(part, checksum)
                file.write(part)
            for part in _data(kept):
                file.write(part)
        return (SegmentFile(name=path.name, n_rows=int(mask.sum()), checksum=checksum),)

    def _replace_manifest(
        self, state: State, segments: tuple[SegmentFile, ...], gone: npt.NDArray[np.int64]
    ) -> Manifest:
        manifest = Manifest(
            dimension=state.table.dimension,
            revision=state.revision,
            segments=segments,
            gone=tuple(gone.tolist()),
        )
        with replace_atomically(self._manifest_path, _unfinished(self._manifest_path)) as file:
            file.write(render(manifest).encode())
        self._remove_all_but(frozenset(segment.name for segment in segments))
        return manifest

    def _remove_all_but(self, names: frozenset[str]) -> None:
        """Remove segments no manifest names, also those a killed process left unfinished."""
        remove_files(path for path in self._directory.glob(f"{self._name}-*") if path.name not in names)


_Kept = tuple[Segment, npt.NDArray[np.bool_]]  # a segment, and which of its rows are written


def _rows_and_sketches(kept: Sequence[_Kept]) -> Iterator[bytes]:
    for segment, mask in kept:
        yield segment.rows[mask].tobytes()
    for word in range(len(kept[0][0].sketches)):
        for segment, mask in kept:
            yield segment.sketches[word][mask].tobytes()


def _data(kept: Sequence[_Kept]) -> Iterator[bytes]:
    for segment, mask in kept:
        for start in range(0, len(segment), _ROWS_PER_WRITE):
            rows = slice(start, start + _ROWS_PER_WRITE)
            yield segment.data[rows][mask[rows]].tobytes()
            segment.release()


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.name}.unfinished")  # one process writes at a time
