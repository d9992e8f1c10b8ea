"""Segment files: the vectors of a space on disk, as immutable files named by a manifest that is replaced atomically.

A segment file is three arrays one after the other: rows [n] int64, sketches [words, n] uint64, data [n, d] float16. A
checksum protects rows and sketches, and the file's size protects the data. A missing or damaged file reads as absent,
because the store has everything.
"""

import json
import mmap
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quipu.atomic_file import remove_files, replace_atomically
from quipu.vectors.local.segments import MappedPages, Segment, SpaceState, SyncPoint, VectorTable

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


_FORMAT = 1
_SEGMENT_NAME = re.compile(r"[a-z]+-\d{8}\.segment")
_ROWS_PER_WRITE = 8_192
_LARGE_BYTES = 64 << 20  # vectors of a larger segment are not kept resident


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile:
    """A segment's file name, its number of rows, and the CRC-32 of its rows and sketches."""

    name: str
    n_rows: int
    checksum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The segments of a space at `revision`, and the positions of deleted rows in the order of their deletion."""

    dimension: int
    revision: int
    segments: tuple[SegmentFile, ...]
    deleted: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """Rows on disk, deleted ones included."""
        return sum(segment.n_rows for segment in self.segments)


def render_manifest(manifest: Manifest) -> str:
    """Return the text of a manifest: its CRC-32 on the first line, JSON on the second."""
    fields = {"format": _FORMAT, **asdict(manifest)}
    fields["gone"] = fields.pop("deleted")  # the name in the file format
    body = json.dumps(fields, ensure_ascii=True, separators=(",", ":"))
    return f"{zlib.crc32(body.encode())}\n{body}\n"


def parse_manifest(text: str) -> Manifest:
    """Return the manifest that `render_manifest` wrote. Raises ValueError for any other text."""
    checksum, body, end = text.split("\n")
    if int(checksum) != zlib.crc32(body.encode()) or end:
        raise ValueError("the checksum does not match")
    fields = json.loads(body)
    if fields.pop("format") != _FORMAT:
        raise ValueError("another format")
    segments = tuple(SegmentFile(**segment) for segment in fields.pop("segments"))
    if not all(_SEGMENT_NAME.fullmatch(segment.name) for segment in segments):
        raise ValueError("a name that is not a segment's")
    return Manifest(segments=segments, deleted=tuple(fields.pop("gone")), **fields)


class SpaceFiles:
    """Reads and writes the files of one space, `<name>.json` and `<name>-<number>.segment`, in `directory`.

    A writer must hold the lock of the directory.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name

    def manifest(self) -> Manifest | None:
        """Return the manifest, or None where it is missing, damaged or of another format."""
        try:
            return parse_manifest(self._manifest_path.read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def load(self, manifest: Manifest) -> SpaceState | None:
        """Return the state on disk, mapped, or None where a file is missing or damaged."""
        try:
            return self._state(manifest)
        except (OSError, ValueError):
            return None

    def append(self, state: SpaceState, saved: Manifest | None) -> tuple[Manifest, SpaceState]:
        """Write the rows that are not in the files of `saved`, the manifest of `state`; return the state, now mapped.

        A segment that is less than twice as long as the rows after it is written again together with them, so that
        segments stay few. Positions do not change, so views of older revisions can use the new state.
        """
        unchanged = saved.segments if saved is not None else ()
        n_rows = len(state.table) - sum(segment.n_rows for segment in unchanged)
        while unchanged and unchanged[-1].n_rows < 2 * n_rows:
            n_rows += unchanged[-1].n_rows
            unchanged = unchanged[:-1]
        added = state.table.segments[len(unchanged) :]
        written = self._write_segment(added, np.ones(n_rows, dtype=bool)) if n_rows else ()
        manifest = self._replace_manifest(state, (*unchanged, *written), state.deleted)
        segments = (
            *state.table.segments[: len(unchanged)],
            *(self._mapped(file, manifest.dimension) for file in written),
        )
        table = VectorTable(segments=segments, n_mapped=len(segments))
        return manifest, SpaceState(table=table, deleted=state.deleted, syncs=state.syncs)

    def rewrite(self, state: SpaceState) -> tuple[Manifest, SpaceState]:
        """Write only the live rows, as one segment; return the state, now mapped and without older revisions."""
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

    def _state(self, manifest: Manifest) -> SpaceState:
        segments = tuple(self._mapped(file, manifest.dimension) for file in manifest.segments)
        table = VectorTable(segments=segments, n_mapped=len(segments))
        deleted = np.array(manifest.deleted, dtype=np.int64)
        sync = SyncPoint(revision=manifest.revision, n_rows=len(table), n_deleted=len(deleted))
        return SpaceState(table=table, deleted=deleted, syncs=(sync,))

    def _mapped(self, file: SegmentFile, dimension: int) -> Segment:
        """Map a segment file. Raises ValueError if its size or checksum is wrong."""
        path = self._directory / file.name
        n, n_words = file.n_rows, -(-dimension // 64)
        index_bytes = n * 8 * (1 + n_words)
        with path.open("rb") as opened:
            mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        if zlib.crc32(memoryview(mapped)[:index_bytes]) != file.checksum:
            raise ValueError(f"the checksum of {path} does not match")
        return Segment(
            rows=np.frombuffer(mapped, dtype=np.int64, count=n),
            sketches=np.frombuffer(mapped, dtype=np.uint64, count=n * n_words, offset=n * 8).reshape(n_words, n),
            vectors=np.frombuffer(mapped, dtype=np.float16, offset=index_bytes).reshape(n, dimension),
            pages=MappedPages(mapped, index_bytes) if len(mapped) - index_bytes > _LARGE_BYTES else None,
        )

    def _write_segment(self, segments: Sequence[Segment], mask: npt.NDArray[np.bool_]) -> tuple[SegmentFile]:
        """Write the rows of consecutive segments for which `mask` [n] is true, as one file."""
        existing = self._directory.glob(f"{self._name}-{'[0-9]' * 8}.segment")
        number = 1 + max((int(path.stem[-8:]) for path in existing), default=0)
        path = self._directory / f"{self._name}-{number:08d}.segment"
        splits = np.cumsum([len(segment) for segment in segments])[:-1]
        parts = list(zip(segments, np.split(mask, splits), strict=True))
        checksum = 0
        with replace_atomically(path, _unfinished(path)) as file:
            for block in _rows_and_sketches(parts):
                checksum = zlib.crc32(block, checksum)
                file.write(block)
            for block in _vectors(parts):
                file.write(block)
        return (SegmentFile(name=path.name, n_rows=int(mask.sum()), checksum=checksum),)

    def _replace_manifest(
        self, state: SpaceState, segments: tuple[SegmentFile, ...], deleted: npt.NDArray[np.int64]
    ) -> Manifest:
        manifest = Manifest(
            dimension=state.table.dimension,
            revision=state.revision,
            segments=segments,
            deleted=tuple(deleted.tolist()),
        )
        with replace_atomically(self._manifest_path, _unfinished(self._manifest_path)) as file:
            file.write(render_manifest(manifest).encode())
        self._remove_all_but(frozenset(segment.name for segment in segments))
        return manifest

    def _remove_all_but(self, names: frozenset[str]) -> None:
        """Remove segment files that no manifest names, and those that a killed process left unfinished."""
        remove_files(path for path in self._directory.glob(f"{self._name}-*") if path.name not in names)


_MaskedSegment = tuple[Segment, npt.NDArray[np.bool_]]  # the mask says which rows are written


def _rows_and_sketches(parts: Sequence[_MaskedSegment]) -> Iterator[bytes]:
    for segment, mask in parts:
        yield segment.rows[mask].tobytes()
    for word in range(len(parts[0][0].sketches)):
        for segment, mask in parts:
            yield segment.sketches[word][mask].tobytes()


def _vectors(parts: Sequence[_MaskedSegment]) -> Iterator[bytes]:
    for segment, mask in parts:
        for start in range(0, len(segment), _ROWS_PER_WRITE):
            rows = slice(start, start + _ROWS_PER_WRITE)
            yield segment.vectors[rows][mask[rows]].tobytes()
            segment.release()


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.name}.unfinished")  # one process writes at a time


@contextmanager
def try_lock_exclusively(path: Path) -> Iterator[bool]:
    """Hold the lock on `path` during the block, or yield False at once where another process holds it.

    The operating system releases the lock when its process ends in any way.
    """
    with path.open("ab") as file:
        try:
            _try_lock(file.fileno())
        except OSError:
            yield False
            return
        yield True
