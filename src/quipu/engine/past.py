"""The past: earlier versions of documents, their purge, and the index as it was at a date.

What held at a date is, for most dates, the live index under an `as_of` filter. Where an earlier version held, it is a
copy of the index in which the later changes are taken back: every strategy and every look-up works on it as on any
index, and nothing of it can show in the live one.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from quipu.engine.components import Components
from quipu.engine.refresh import refresh_without_chat
from quipu.model.document import EarlierVersion, PurgeResult
from quipu.model.ids import digest
from quipu.model.query import Filter
from quipu.model.validity import as_moment
from quipu.ports.history import EditStore, HistoryStore, Rewind
from quipu.ports.store import ReadView, Store
from quipu.ports.topology import TopologyIndex
from quipu.ports.vector_index import VectorIndex
from quipu.text.formatting import format_count

MAX_COPIES = 2  # that are kept for the next question; each takes as much room as the index


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedIndex:
    """A copy of an index in a folder of its own, with the indexes beside it."""

    store: Store
    history: HistoryStore
    edits: EditStore
    vectors: VectorIndex
    topology: TopologyIndex


@dataclass(slots=True, eq=False)
class _OpenCopy:
    folder: Path
    components: Components
    n_users: int = 0

    async def close(self) -> None:
        await self.components.store.close()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


@dataclass(slots=True)
class PastIndexes:
    """Copies of an index at dates, made when they are needed and deleted when the index changes or is closed.

    `copy` writes the index into a new folder and opens it. Copies are below `folder`, one set for each process.
    """

    folder: Path
    history: HistoryStore
    copy: Callable[[Path], Awaitable[CopiedIndex]]
    copies: dict[str, _OpenCopy] = field(default_factory=dict)
    _retired: list[_OpenCopy] = field(default_factory=list)  # still read by a question, the last user closes it
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def at(self, as_of: str, components: Components) -> AsyncIterator[tuple[Components, str]]:
        """Return the components of an index that, under an `as_of` filter, shows what held then, and a note on it."""
        rewind = await self.history.rewind_to(as_of)
        if rewind.is_empty:
            yield components, f"as of {as_of}: of the documents, those that held then"
            return
        async with self._making:
            copied = await self._copy_of(as_of, rewind, components)
            copied.n_users += 1
        try:
            restored, n_later = format_count(len(rewind.restore), "earlier version"), len(rewind.remove)
            removed = f" and without {format_count(n_later, 'later document')}" if n_later else ""
            yield copied.components, f"as of {as_of}: with {restored}{removed}"
        finally:
            copied.n_users -= 1
            if copied in self._retired and not copied.n_users:
                self._retired.remove(copied)
                await copied.close()

    async def close(self) -> None:
        """Delete the copies of this process: those in use when their questions end."""
        copies, self.copies = self.copies, {}
        self._retired += [copied for copied in copies.values() if copied.n_users]
        for copied in copies.values():
            if not copied.n_users:
                await copied.close()

    async def drop(self) -> None:
        """Delete the copies of all processes; a question that reads one in another process fails."""
        await self.close()
        await asyncio.to_thread(_delete_folders, self.folder, {copied.folder for copied in self._retired})

    async def _copy_of(self, as_of: str, rewind: Rewind, components: Components) -> _OpenCopy:
        async with components.store.view() as view:
            revision = view.revision
        name = f"{revision}-{digest(repr(rewind))[:12]}-{os.getpid()}"
        copied = self.copies.pop(name, None)
        if copied is None or not copied.folder.is_dir():
            copied = await self._make(self.folder / name, as_of, components)
        self.copies[name] = copied  # last: the most recently used
        await self._close_old(f"{revision}-")
        return copied

    async def _make(self, folder: Path, as_of: str, components: Components) -> _OpenCopy:
        async with AsyncExitStack() as undo:
            undo.push_async_callback(asyncio.to_thread, shutil.rmtree, folder, ignore_errors=True)
            index = await self.copy(folder)
            undo.push_async_callback(index.store.close)
            await index.history.rewind(await index.history.rewind_to(as_of))
            past = replace(
                components,
                path=folder,
                store=index.store,
                vectors=index.vectors,
                topology=index.topology,
                models=components.models.without_keeping_replies(),
                conversations=None,
                edits=index.edits,
                past=None,
            )
            await refresh_without_chat(past)
            undo.pop_all()
        return _OpenCopy(folder, past)

    async def _close_old(self, current: str) -> None:
        """Close copies that nobody uses: all of earlier revisions, and all but the last few of this one."""
        idle = [name for name, copied in self.copies.items() if not copied.n_users]
        outdated = [name for name in idle if not name.startswith(current)]
        recent = [name for name in idle if name.startswith(current)]
        for name in (*outdated, *recent[:-MAX_COPIES]):
            await self.copies.pop(name).close()


def _delete_folders(parent: Path, in_use: Collection[Path]) -> None:
    for folder in parent.iterdir() if parent.is_dir() else ():
        if folder not in in_use:
            shutil.rmtree(folder, ignore_errors=True)


class Past:
    """The methods of an engine about earlier versions and the past."""

    _components: Components
    _store: Store

    async def earlier_versions(
        self, ids: Sequence[str] | None = None, *, k: int | None = None, after: str = ""
    ) -> list[EarlierVersion]:
        """Return the earlier versions that the index keeps, of these documents or of all: the setting `history`.

        With `k`, a page of so many; `after` is the `cursor` of the last version of the page before.
        """
        history = self._history
        return await history.versions(ids, k=k, after=after) if history else []

    async def purge(self, *, before: str = "", dry_run: bool = False) -> PurgeResult:
        """Delete earlier versions, cached replies that no live document needs, and other leftovers, from every file.

        With `before`, only versions that ended before this date. With `dry_run`, nothing is deleted, and the result
        holds the versions that would be. Raises InvalidInput for what is no date.
        """
        before = as_moment(before) if before else ""
        versions = tuple(await self._history.versions(before=before)) if self._history else ()
        if dry_run:
            return PurgeResult(versions=versions)
        if self._history and versions:
            await self._history.drop(before=before)
        await self._components.drop_past()
        return PurgeResult(versions=versions, n_rows=await self._store.purge())

    @property
    def _history(self) -> HistoryStore | None:
        return self._components.past.history if self._components.past else None

    @asynccontextmanager
    async def _view(self, as_of: str = "") -> AsyncIterator[ReadView]:
        """Return a view of what held at a date; by default of the index as it is. Raises InvalidInput for no date."""
        async with self._components.view_at(Filter(as_of=as_of)) as (_, view):
            yield view
