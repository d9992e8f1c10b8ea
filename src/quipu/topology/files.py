"""Files: a graph on disk, one immutable file a revision, which is mapped and not read.

`graph-<revision>.arrays` is a line with the CRC-32 of the next, a line of JSON that says what follows, padded with
spaces, and the arrays, int64, one after the other. It takes its name when it is complete: the newest that can be read
counts, whoever wrote it. What is missing, damaged or of another index reads as absent: the store has it all.
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
from quipu.topology.graph import Graph, Tables
from quipu.topology.table import Layered, Table

_FORMAT = 1
_ALIGNMENT = 64
_BYTES = 8
_CHECKSUM_BYTES = 11  # ten digits and the end of the line
_CHECKED_BYTES = 8 << 20  # fewer are checked when they are opened: it takes a few milliseconds
_NAMES = tuple(each.name for each in fields(Tables))
_N_VALUES = {"appearances": 1, "namings": 3, "statements": 2, "relations": 2, "places": 1, "synonyms": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a file holds: the revision, its seal, how long the arrays of each table are, and their CRC-32."""

    revision: int
    seal: int | None
    n_rows: tuple[int, ...]
    n_entries: tuple[int, ...]
    checksum: int

    def lengths(self) -> list[list[int]]:
        """Return the lengths of the arrays of each table."""
        sizes = zip(_NAMES, self.n_rows, self.n_entries, strict=True)
        return [[n_rows + 1, *[n_entries] * (1 + _N_VALUES[name])] for name, n_rows, n_entries in sizes]


@dataclass(frozen=True, slots=True)
class Saved:
    """A graph as a file holds it: `path` maps to `graph`."""

    path: Path
    header: Header
    graph: Graph


def newest(directory: Path, revision: int) -> Saved | None:
    """Map the newest file of a revision up to this one; None where there is none that can be read."""
    for path in sorted(directory.glob("graph-*.arrays"), reverse=True):
        with contextlib.suppress(OSError, ValueError):
            if _revision_of(path) <= revision:
                return load(path)
    return None


def load(path: Path) -> Saved:
    """Map a file. Raises OSError where it cannot be read, ValueError where it is damaged."""
    with path.open("rb") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    header, start = _header(mapped)
    if len(mapped) != start + _BYTES * sum(map(sum, header.lengths())):
        raise ValueError(f"{path} has another size")
    if len(mapped) <= _CHECKED_BYTES and zlib.crc32(memoryview(mapped)[start:]) != header.checksum:
        raise ValueError(f"{path} has another checksum")
    tables = {}
    for name, lengths in zip(_NAMES, header.lengths(), strict=True):
        arrays = []
        for n in lengths:
            arrays.append(np.frombuffer(mapped, dtype="<i8", count=n, offset=start))
            start += n * _BYTES
        tables[name] = Layered(Table(arrays[0], arrays[1], tuple(arrays[2:])))
    return Saved(path, header, Graph(header.revision, Tables(**tables)))


def is_intact(saved: Saved) -> bool:
    """Say whether a file still holds what was written; it is read whole."""
    try:
        with saved.path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            _, start = _header(mapped)
            with memoryview(mapped) as whole, whole[start:] as arrays:
                return zlib.crc32(arrays) == saved.header.checksum
    except (OSError, ValueError):
        return False


def save(directory: Path, graph: Graph, seal: int | None) -> Saved:
    """Write a merged graph and map it; files of earlier revisions go. Raises OSError where nothing can be written."""
    directory.mkdir(parents=True, exist_ok=True)
    tables = [getattr(graph.tables, name).base for name in _NAMES]
    checksum = 0
    for array in _arrays(tables):
        checksum = zlib.crc32(array, checksum)
    header = Header(
        revision=graph.revision,
        seal=seal,
        n_rows=tuple(map(len, tables)),
        n_entries=tuple(len(table.columns) for table in tables),
        checksum=checksum,
    )
    path = directory / f"graph-{graph.revision:012d}.arrays"
    remove_files(directory.glob("*.unfinished"))
    # Another process may write the same revision: each has a name of its own until it is done.
    with replace_atomically(path, path.with_name(f"{path.stem}-{uuid4().hex}.unfinished")) as file:
        file.write(_rendered(header))
        for array in _arrays(tables):
            file.write(array)
    clear(directory, before=graph.revision)
    return load(path)


def clear(directory: Path, *, before: int | None = None) -> None:
    """Remove the files, or those of revisions before one."""
    for path in directory.glob("graph-*.arrays"):
        if before is None or _revision_of(path) < before:
            remove_files([path])


def _arrays(tables: list[Table]) -> Iterator[memoryview]:
    for table in tables:
        for array in (table.starts, table.columns, *table.values):
            yield np.ascontiguousarray(array, dtype="<i8").data


def _revision_of(path: Path) -> int:
    digits = path.stem.removeprefix("graph-")
    return int(digits) if digits.isdecimal() else -1


def _rendered(header: Header) -> bytes:
    content = {name: getattr(header, name) for name in Header.__slots__}
    body = json.dumps({"format": _FORMAT, **content}, separators=(",", ":"))
    padded = body + " " * (-(_CHECKSUM_BYTES + len(body) + 1) % _ALIGNMENT)
    return f"{zlib.crc32(padded.encode()):0{_CHECKSUM_BYTES - 1}d}\n{padded}\n".encode()


def _header(mapped: mmap.mmap) -> tuple[Header, int]:
    """Return the header, and where the arrays begin. Raises ValueError where it is damaged."""
    checksum, body = mapped.readline(), mapped.readline()
    if not body.endswith(b"\n") or int(checksum) != zlib.crc32(body[:-1]):
        raise ValueError("the checksum of the header does not match")
    content = json.loads(body)
    if content.pop("format") != _FORMAT:
        raise ValueError("another format")
    n_rows, n_entries = tuple(content.pop("n_rows")), tuple(content.pop("n_entries"))
    return Header(n_rows=n_rows, n_entries=n_entries, **content), len(checksum) + len(body)
