"""Local topology index: graphs in memory that follow the store; large ones are also saved as mapped files.

`graph-<revision>.arrays` starts with a line that holds the CRC-32 of the next line. The next line is the JSON header,
padded with spaces. The int64 arrays follow. A file gets its name when it is complete, and the newest readable file is
used, whichever process wrote it. A missing, damaged or foreign file is ignored, because the store holds all the facts.
"""

import asyncio
import contextlib
import json
import mmap
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import numpy as np

from quipu.atomic_file import remove_files, replace_atomically
from quipu.ports.derivation_view import ChangeSet, GraphRows, Ints, NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import Topology
from quipu.topology.graph import Graph, GraphTables, apply_changes, build_graph, merge_layers, restrict_graph
from quipu.topology.table import LayeredTable, RowTable

_T = TypeVar("_T")

_MAX_GRAPHS = 3  # graphs in memory; they share most of their arrays
_MAX_FILTERED_GRAPHS = 4
_THREAD_ROWS = 20_000  # sorting more rows takes over 10 ms, so a thread does it
_MAX_CHANGED = 0.25  # share of all numbers; above it, reading all rows is faster

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


@dataclass(frozen=True, slots=True)
class _GraphVersion:
    """A graph and its history nonce, which distinguishes equal revisions of different histories."""

    graph: Graph
    history_nonce: int | None


class LocalTopologyIndex:
    """Opens topologies. Files in `directory` are a cache of the store, so they may be missing or stale.

    An index of fewer than `min_chunks` chunks has no file, because reading it from the store takes milliseconds. The
    file is written again when more than `max_unsaved` numbers, and more than 1/64 of all numbers, have changed.
    """

    def __init__(self, directory: Path, *, min_chunks: int = 2_000, max_unsaved: int = 2_000) -> None:
        self._directory = directory
        self._min_chunks = min_chunks
        self._max_unsaved = max_unsaved
        self._lock = asyncio.Lock()  # guards the graphs in memory; not held during a write, so no question waits
        self._writing = asyncio.Lock()  # guards the files
        self._versions: dict[int, _GraphVersion] = {}
        self._filtered: dict[tuple[int, bytes], Graph] = {}
        self._intact_paths: set[Path] = set()

    async def open(self, view: ReadView) -> Topology:
        """Return the view's topology."""
        async with self._lock:
            graph = (await self._graph_version(view)).graph
            allowed = await view.allowed_numbers(NodeKind.CHUNK)
            return graph if allowed is None else await self._restrict(view, graph, allowed)

    async def catch_up(self, view: ReadView) -> None:
        """Write the file again if it is damaged or far behind the view; a small index has no file.

        Raises OSError if the directory cannot be written.
        """
        async with self._writing:
            if (await view.counts("chunks")).chunks < self._min_chunks:
                await asyncio.to_thread(remove_graphs, self._directory)
                return
            saved = await self._intact_file(view)
            if saved is None or await self._is_behind(view, saved):
                await self._save(view)
            elif self._versions:
                async with self._lock:
                    await self._graph_version(view)

    async def _intact_file(self, view: ReadView) -> "SavedGraph | None":
        """Return the newest file if its checksum is right, else None. A file is checked once and removed if bad."""
        saved = await asyncio.to_thread(load_newest_graph, self._directory, view.revision)
        if saved is None or saved.path in self._intact_paths:
            return saved
        if await asyncio.to_thread(is_intact, saved):
            self._intact_paths.add(saved.path)
            return saved
        await asyncio.to_thread(remove_files, [saved.path])
        async with self._lock:  # graphs in memory may use its arrays
            self._versions.clear()
            self._filtered.clear()
        return None

    async def _is_behind(self, view: ReadView, saved: "SavedGraph") -> bool:
        changed = await _changes_since(view, saved.header.revision, saved.header.history_nonce)
        if changed is None:
            return True
        n_numbers = saved.graph.n_entities + saved.graph.n_chunks
        return _n_changes(changed) > max(self._max_unsaved, n_numbers // 64)

    async def _save(self, view: ReadView) -> None:
        async with self._lock:
            version = await self._graph_version(view)

        def write() -> SavedGraph:
            return save_graph(self._directory, merge_layers(version.graph), version.history_nonce)

        try:
            saved = await asyncio.to_thread(write)
        except FileNotFoundError:
            return  # another process is writing and has removed the unfinished file
        self._intact_paths.add(saved.path)
        async with self._lock:
            self._remember(_GraphVersion(saved.graph, version.history_nonce))

    async def _graph_version(self, view: ReadView) -> _GraphVersion:
        """Return the whole graph at the view's revision: from memory, by updating an earlier one, or from the store."""
        version = self._versions.get(view.revision)
        if version is not None and version.history_nonce != await _history_nonce(view):
            self._versions.clear()  # a restored backup has reached the same revision by another history
            self._filtered.clear()
            version = None
        if version is None:
            earlier = max((revision for revision in self._versions if revision < view.revision), default=None)
            base = self._versions[earlier] if earlier is not None else await self._load_file(view)
            version = await _update_graph(view, base) if base is not None else None
            self._remember(version := version or await _read_graph(view))
        return version

    async def _load_file(self, view: ReadView) -> _GraphVersion | None:
        saved = await asyncio.to_thread(load_newest_graph, self._directory, view.revision)
        return _GraphVersion(saved.graph, saved.header.history_nonce) if saved is not None else None

    def _remember(self, version: _GraphVersion) -> None:
        self._versions[version.graph.revision] = version
        while len(self._versions) > _MAX_GRAPHS:
            del self._versions[min(self._versions)]

    async def _restrict(self, view: ReadView, graph: Graph, allowed: Ints) -> Graph:
        """Return the graph of the allowed chunks alone. Filters that allow the same chunks share it."""
        key = view.revision, allowed.tobytes()
        if key not in self._filtered:
            aliases = await view.alias_rows()
            is_heavy = len(allowed) * 20 > _THREAD_ROWS
            filtered = await _in_thread_if(is_heavy, lambda: restrict_graph(graph, allowed, aliases))
            while len(self._filtered) >= _MAX_FILTERED_GRAPHS:
                del self._filtered[next(iter(self._filtered))]
            self._filtered[key] = filtered
        return self._filtered[key]


async def _update_graph(view: ReadView, version: _GraphVersion) -> _GraphVersion | None:
    """Return `version` updated to the view's revision; None if the changes are unknown or too many."""
    graph = version.graph
    changed = await _changes_since(view, graph.revision, version.history_nonce)
    if changed is None or _n_changes(changed) > _MAX_CHANGED * (graph.n_entities + graph.n_chunks) + _THREAD_ROWS:
        return None
    if not _n_changes(changed):
        return _GraphVersion(replace(graph, revision=view.revision), await _history_nonce(view))
    rows = await view.graph_rows(changed)
    is_heavy = _n_rows(rows) > _THREAD_ROWS
    later = await _in_thread_if(is_heavy, lambda: apply_changes(graph, view.revision, changed, rows))
    return _GraphVersion(later, await _history_nonce(view))


async def _read_graph(view: ReadView) -> _GraphVersion:
    rows = await view.graph_rows()
    graph = await _in_thread_if(_n_rows(rows) > _THREAD_ROWS, lambda: build_graph(view.revision, rows))
    return _GraphVersion(graph, await _history_nonce(view))


async def _changes_since(view: ReadView, revision: int, history_nonce: int | None) -> ChangeSet | None:
    """Return the changes since this revision of this history; None if the store does not know them."""
    changes = await view.changes_since(revision)
    return changes if changes is not None and changes.history_nonce == history_nonce is not None else None


async def _history_nonce(view: ReadView) -> int | None:
    changes = await view.changes_since(view.revision)
    return changes.history_nonce if changes is not None else None


def _n_changes(changed: ChangeSet) -> int:
    return len(changed.chunks) + len(changed.entities)


def _n_rows(rows: GraphRows) -> int:
    return len(rows.entities) + len(rows.sources)


async def _in_thread_if(is_heavy: bool, work: Callable[[], _T]) -> _T:
    return await asyncio.to_thread(work) if is_heavy else work()


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


def load_newest_graph(directory: Path, revision: int) -> SavedGraph | None:
    """Map the newest readable file whose revision is at most `revision`; None if there is none."""
    for path in sorted(directory.glob("graph-*.arrays"), reverse=True):
        with contextlib.suppress(OSError, ValueError):
            if _revision_of(path) <= revision:
                return map_graph(path)
    return None


def map_graph(path: Path) -> SavedGraph:
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


def is_intact(saved: "SavedGraph") -> bool:
    """Return whether the checksum of a file is right; the whole file is read."""
    try:
        with saved.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            _, start = _decode_header(mapped)
            with memoryview(mapped) as whole, whole[start:] as arrays:
                return zlib.crc32(arrays) == saved.header.checksum
    except (OSError, ValueError):
        return False


def save_graph(directory: Path, graph: Graph, history_nonce: int | None) -> SavedGraph:
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
    remove_graphs(directory, before=graph.revision)
    return map_graph(path)


def remove_graphs(directory: Path, *, before: int | None = None) -> None:
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
