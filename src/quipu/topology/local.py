"""LocalTopologies: topologies in process, which follow the store and are kept in mapped files where they are large."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from quipu.atomic_file import remove_files
from quipu.model.query import Filter
from quipu.ports.derivation_view import ChangeSet, GraphRows
from quipu.ports.store import ReadView
from quipu.ports.topology import Topology
from quipu.topology import files
from quipu.topology.files import Saved
from quipu.topology.graph import Graph, advanced, graph_of, merged, restricted

_T = TypeVar("_T")

_MAX_KNOWN = 3  # graphs in memory, which share most of it
_MAX_RESTRICTED = 4
_THREAD_ROWS = 20_000  # arranging more takes about 10 ms
_MAX_CHANGED = 0.25  # of all chunks: to read more of them one by one takes longer than to read all


@dataclass(frozen=True, slots=True)
class _Sealed:
    """A graph, and the seal of its revision: what tells it from the same revision of another history."""

    graph: Graph
    seal: int | None


class LocalTopologies:
    """Opens topologies from arrays in `directory`, which are derived from the store and may be missing or stale.

    An index of fewer than `min_chunks` chunks has no file: it is read from the store in milliseconds. The file is
    written again when more than `max_unsaved` numbers, and a 64th of all, have changed since.
    """

    def __init__(self, directory: Path, *, min_chunks: int = 2_000, max_unsaved: int = 2_000) -> None:
        self._directory = directory
        self._min_chunks = min_chunks
        self._max_unsaved = max_unsaved
        self._lock = asyncio.Lock()  # over what is in memory: nothing is written under it, so that no question waits
        self._writing = asyncio.Lock()  # over the files
        self._known: dict[int, _Sealed] = {}
        self._restricted: dict[tuple[int, Filter], Graph] = {}
        self._intact: set[Path] = set()

    async def open(self, view: ReadView) -> Topology:
        """Return the view's topology."""
        async with self._lock:
            graph = (await self._at(view)).graph
            return graph if view.filter.is_empty() else await self._within(view, graph)

    async def catch_up(self, view: ReadView) -> None:
        """Bring the file up to the view where it is far behind; a small index has none.

        A file that does not hold what was written is written again. Raises OSError where the directory cannot be
        written.
        """
        async with self._writing:
            if await view.n_chunks() < self._min_chunks:
                await asyncio.to_thread(files.clear, self._directory)
                return
            saved = await self._intact_file(view)
            if saved is None or await self._is_behind(view, saved):
                await self._save(view)
            elif self._known:
                async with self._lock:
                    await self._at(view)

    async def _intact_file(self, view: ReadView) -> Saved | None:
        """Return the newest file, None where there is none that holds what was written; it is looked at once."""
        saved = await asyncio.to_thread(files.newest, self._directory, view.revision)
        if saved is None or saved.path in self._intact:
            return saved
        if await asyncio.to_thread(files.is_intact, saved):
            self._intact.add(saved.path)
            return saved
        await asyncio.to_thread(remove_files, [saved.path])
        async with self._lock:  # what is known may have been made from it
            self._known.clear()
            self._restricted.clear()
        return None

    async def _is_behind(self, view: ReadView, saved: Saved) -> bool:
        changed = await _changed(view, saved.header.revision, saved.header.seal)
        if changed is None:
            return True
        n_numbers = saved.graph.n_entities + saved.graph.n_chunks
        return _size(changed) > max(self._max_unsaved, n_numbers // 64)

    async def _save(self, view: ReadView) -> None:
        async with self._lock:
            sealed = await self._at(view)

        def write() -> Saved:
            return files.save(self._directory, merged(sealed.graph), sealed.seal)

        try:
            saved = await asyncio.to_thread(write)
        except FileNotFoundError:
            return  # another process writes, and has cleared away what was not finished
        self._intact.add(saved.path)
        async with self._lock:
            self._keep(_Sealed(saved.graph, sealed.seal))

    async def _at(self, view: ReadView) -> _Sealed:
        """Return the graph of the whole index at the view's revision: known, or made from an earlier one, or read."""
        found = self._known.get(view.revision)
        if found is None:
            earlier = max((revision for revision in self._known if revision < view.revision), default=None)
            base = self._known[earlier] if earlier is not None else await self._opened(view)
            found = await _brought_up(view, base) if base is not None else None
            self._keep(found := found or await _read(view))
        return found

    async def _opened(self, view: ReadView) -> _Sealed | None:
        saved = await asyncio.to_thread(files.newest, self._directory, view.revision)
        return _Sealed(saved.graph, saved.header.seal) if saved is not None else None

    def _keep(self, sealed: _Sealed) -> None:
        self._known[sealed.graph.revision] = sealed
        while len(self._known) > _MAX_KNOWN:
            del self._known[min(self._known)]

    async def _within(self, view: ReadView, graph: Graph) -> Graph:
        key = view.revision, view.filter
        if key not in self._restricted:
            allowed, aliases = await view.allowed_chunks(), await view.alias_rows()
            assert allowed is not None, "a view with a filter knows what it allows"
            is_heavy = len(allowed) * 20 > _THREAD_ROWS
            made = await _in_thread_if(is_heavy, lambda: restricted(graph, allowed, aliases))
            while len(self._restricted) >= _MAX_RESTRICTED:
                del self._restricted[next(iter(self._restricted))]
            self._restricted[key] = made
        return self._restricted[key]


async def _brought_up(view: ReadView, sealed: _Sealed) -> _Sealed | None:
    """Return the graph at the view's revision; None where the store no longer knows the way, or it is too long."""
    graph = sealed.graph
    changed = await _changed(view, graph.revision, sealed.seal)
    if changed is None or _size(changed) > _MAX_CHANGED * (graph.n_entities + graph.n_chunks) + _THREAD_ROWS:
        return None
    if not _size(changed):
        return _Sealed(replace(graph, revision=view.revision), await _history_nonce(view))
    rows, synonyms = await view.graph_rows(changed), await view.synonym_rows(changed.entities)
    is_heavy = _n_rows(rows) > _THREAD_ROWS
    later = await _in_thread_if(is_heavy, lambda: advanced(graph, view.revision, changed, rows, synonyms))
    return _Sealed(later, await _history_nonce(view))


async def _read(view: ReadView) -> _Sealed:
    rows, synonyms = await view.graph_rows(), await view.synonym_rows()
    graph = await _in_thread_if(_n_rows(rows) > _THREAD_ROWS, lambda: graph_of(view.revision, rows, synonyms))
    return _Sealed(graph, await _history_nonce(view))


async def _changed(view: ReadView, revision: int, seal: int | None) -> ChangeSet | None:
    """Return what changed since this revision of this history; None where the store does not know it."""
    changes = await view.changes_since(revision)
    return changes if changes is not None and changes.history_nonce == seal is not None else None


async def _history_nonce(view: ReadView) -> int | None:
    changes = await view.changes_since(view.revision)
    return changes.history_nonce if changes is not None else None


def _size(changed: ChangeSet) -> int:
    return len(changed.chunks) + len(changed.entities)


def _n_rows(rows: GraphRows) -> int:
    return len(rows.entities) + len(rows.sources)


async def _in_thread_if(is_heavy: bool, work: Callable[[], _T]) -> _T:
    return await asyncio.to_thread(work) if is_heavy else work()
