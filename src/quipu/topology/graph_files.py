"""Graph files: a graph on disk, one immutable memory-mapped file for each revision.

`graph-<revision>.arrays` starts with a line that holds the CRC-32 of the next line. The next line is the JSON header,
padded with spaces. The int64 arrays follow. A file gets its name when it is complete, and the newest readable file is
used, whichever process wrote it. A missing, damaged or foreign file is ignored, because the store holds all the facts.
"""

import contextlib
import json
import mmap
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from uuid import uuid4

import numpy as np

from quipu.atomic_file import remove_files, replace_atomically
from quipu.topology.graph import Graph, GraphTables
from quipu.topology.table import LayeredTable, RowTable

_FORMAT = 1
_ALIGNMENT = 64
_BYTES = 8
_CHECKSUM_BYTES = 11  # ten digits and a newline
_MAX_CHECKED_BYTES = 8 << 20  # smaller files are checked when opened, in a few milliseconds
_NAMES = tuple(table.name for table in fields(GraphTables))
_N_VALUES = {
    "occurrences": 1,
    "occurrences_by_chunk": 3,
    "relation_mentions": 2,
    "relations": 2,
    "chunk_positions": 1,
    "synonyms": 1,
}
_JSON_KEYS = {"history_nonce": "seal"}  # keys of the file format that differ from the field names


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFileHeader:
    """The header of a file: revision, history nonce, array lengths of each table, and the CRC-32 of the arrays."""

    revision: int
    history_nonce: int | None
    n_rows: tuple[int, ...]
    n_entries: tuple[int, ...]
    checksum: int

    def lengths(self) -> list[list[int]]:
        """Return the lengths of the arrays of each table."""
        sizes = zip(_NAMES, self.n_rows, self.n_entries, strict=True)
        return [[n_rows + 1, *[n_entries] * (1 + _N_VALUES[name])] for name, n_rows, n_entries in sizes]


@dataclass(frozen=True, slots=True)
class SavedGraph:
    """A graph that is mapped from the file at `path`."""

    path: Path
    header: GraphFileHeader
    graph: Graph


def load_newest(directory: Path, revision: int) -> SavedGraph | None:
    """Map the newest readable file whose revision is at most `revision`; None if there is none."""
    for path in sorted(directory.glob("graph-*.arrays"), reverse=True):
        with contextlib.suppress(OSError, ValueError):
            if _revision_of(path) <= revision:
                return load(path)
    return None


def load(path: Path) -> SavedGraph:
    """Map a file. Raises OSError if it cannot be read, ValueError if it is damaged."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    header, start = _decode_header(mapped)
    if len(mapped) != start + _BYTES * sum(map(sum, header.lengths())):
        raise ValueError(f"{path} has the wrong size")
    if len(mapped) <= _MAX_CHECKED_BYTES and zlib.crc32(memoryview(mapped)[start:]) != header.checksum:
        raise ValueError(f"the checksum of {path} does not match")
    tables = {}
    for name, lengths in zip(_NAMES, header.lengths(), strict=True):
        arrays = []
        for n in lengths:
            arrays.append(np.frombuffer(mapped, dtype="<i8", count=n, offset=start))
            start += n * _BYTES
        tables[name] = LayeredTable(RowTable(arrays[0], arrays[1], tuple(arrays[2:])))
    return SavedGraph(path, header, Graph(header.revision, GraphTables(**tables)))


def is_intact(saved: SavedGraph) -> bool:
    """Return whether the checksum of a file is right; the whole file is read."""
    try:
        with saved.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            _, start = _decode_header(mapped)
            with memoryview(mapped) as whole, whole[start:] as arrays:
                return zlib.crc32(arrays) == saved.header.checksum
    except (OSError, ValueError):
        return False


def save(directory: Path, graph: Graph, history_nonce: int | None) -> SavedGraph:
    """Write and map a graph without patches, and remove files of earlier revisions. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    tables = [getattr(graph.tables, name).base for name in _NAMES]
    checksum = 0
    for array in _arrays(tables):
        checksum = zlib.crc32(array, checksum)
    header = GraphFileHeader(
        revision=graph.revision,
        history_nonce=history_nonce,
        n_rows=tuple(map(len, tables)),
        n_entries=tuple(len(table.columns) for table in tables),
        checksum=checksum,
    )
    path = directory / f"graph-{graph.revision:012d}.arrays"
    remove_files(directory.glob("*.unfinished"))
    # Another process may write the same revision, so unfinished files have unique names.
    with replace_atomically(path, path.with_name(f"{path.stem}-{uuid4().hex}.unfinished")) as file:
        file.write(_encode_header(header))
        for array in _arrays(tables):
            file.write(array)
    clear(directory, before=graph.revision)
    return load(path)


def clear(directory: Path, *, before: int | None = None) -> None:
    """Remove all files, or only those of revisions below `before`."""
    for path in directory.glob("graph-*.arrays"):
        if before is None or _revision_of(path) < before:
            remove_files([path])


def _arrays(tables: list[RowTable]) -> Iterator[memoryview]:
    for table in tables:
        for array in (table.starts, table.columns, *table.values):
            yield np.ascontiguousarray(array, dtype="<i8").data


def _revision_of(path: Path) -> int:
    digits = path.stem.removeprefix("graph-")
    return int(digits) if digits.isdecimal() else -1


def _encode_header(header: GraphFileHeader) -> bytes:
    content = {_JSON_KEYS.get(name, name): getattr(header, name) for name in GraphFileHeader.__slots__}
    body = json.dumps({"format": _FORMAT, **content}, separators=(",", ":"))
    padded = body + " " * (-(_CHECKSUM_BYTES + len(body) + 1) % _ALIGNMENT)
    return f"{zlib.crc32(padded.encode()):0{_CHECKSUM_BYTES - 1}d}\n{padded}\n".encode()


def _decode_header(mapped: mmap.mmap) -> tuple[GraphFileHeader, int]:
    """Return the header and the start of the arrays. Raises ValueError if the header is damaged."""
    checksum, body = mapped.readline(), mapped.readline()
    if not body.endswith(b"\n") or int(checksum) != zlib.crc32(body[:-1]):
        raise ValueError("the checksum of the header does not match")
    content = json.loads(body)
    if content.pop("format") != _FORMAT:
        raise ValueError("the file has another format")
    n_rows, n_entries = tuple(content.pop("n_rows")), tuple(content.pop("n_entries"))
    history_nonce = content.pop(_JSON_KEYS["history_nonce"])
    return GraphFileHeader(n_rows=n_rows, n_entries=n_entries, history_nonce=history_nonce, **content), len(
        checksum
    ) + len(body)
