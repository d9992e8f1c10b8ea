"""Local topology index: graphs in memory that follow the store; large ones are also saved as mapped files."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from quipu.atomic_file import remove_files
from quipu.ports.derivation_view import ChangeSet, GraphRows, Ints, NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import Topology
from quipu.topology import graph_files
from quipu.topology.graph import Graph, apply_changes, build_graph, merge_layers, restrict_graph
from quipu.topology.graph_files import SavedGraph

_T = TypeVar("_T")

_MAX_GRAPHS = 3  # graphs in memory; they share most of their arrays
_MAX_FILTERED_GRAPHS = 4
_THREAD_ROWS = 20_000  # sorting more rows takes over 10 ms, so a thread does it
_MAX_CHANGED = 0.25  # share of all numbers; above it, reading all rows is faster


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
                await asyncio.to_thread(graph_files.clear, self._directory)
                return
            saved = await self._intact_file(view)
            if saved is None or await self._is_behind(view, saved):
                await self._save(view)
            elif self._versions:
                async with self._lock:
                    await self._graph_version(view)

    async def _intact_file(self, view: ReadView) -> SavedGraph | None:
        """Return the newest file if its checksum is right, else None. A file is checked once and removed if bad."""
        saved = await asyncio.to_thread(graph_files.load_newest, self._directory, view.revision)
        if saved is None or saved.path in self._intact_paths:
            return saved
        if await asyncio.to_thread(graph_files.is_intact, saved):
            self._intact_paths.add(saved.path)
            return saved
        await asyncio.to_thread(remove_files, [saved.path])
        async with self._lock:  # graphs in memory may use its arrays
            self._versions.clear()
            self._filtered.clear()
        return None

    async def _is_behind(self, view: ReadView, saved: SavedGraph) -> bool:
        changed = await _changes_since(view, saved.header.revision, saved.header.history_nonce)
        if changed is None:
            return True
        n_numbers = saved.graph.n_entities + saved.graph.n_chunks
        return _n_changes(changed) > max(self._max_unsaved, n_numbers // 64)

    async def _save(self, view: ReadView) -> None:
        async with self._lock:
            version = await self._graph_version(view)

        def write() -> SavedGraph:
            return graph_files.save(self._directory, merge_layers(version.graph), version.history_nonce)

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
        if version is None:
            earlier = max((revision for revision in self._versions if revision < view.revision), default=None)
            base = self._versions[earlier] if earlier is not None else await self._load_file(view)
            version = await _update_graph(view, base) if base is not None else None
            self._remember(version := version or await _read_graph(view))
        return version

    async def _load_file(self, view: ReadView) -> _GraphVersion | None:
        saved = await asyncio.to_thread(graph_files.load_newest, self._directory, view.revision)
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
