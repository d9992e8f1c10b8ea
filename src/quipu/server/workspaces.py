"""Workspaces: the indexes a server may open, each in a folder of its own, and those that are open now."""

import asyncio
import re
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from quipu.engine import Quipu
from quipu.errors import InvalidInput
from quipu.ports.providers import Embedder
from quipu.ports.store import SpendingLedger
from quipu.server.access import unknown_workspace
from quipu.settings import Settings
from quipu.stores.sqlite.server_state import FILE_NAME as STATE_FILE
from quipu.stores.sqlite.server_state import ServerState
from quipu.wiring import INDEX_FILE, SharedServices, open_embedder, open_engine
from quipu.wrap.meter import LocalLedger

ONLY_WORKSPACE = "default"  # the name of the index where a server serves one
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")


@dataclass(slots=True)
class _OpenWorkspace:
    """An open engine, the state that the server keeps beside it, its settings, and how many requests use it now."""

    engine: Quipu
    state: ServerState
    settings: Settings
    file: Path
    version: tuple[int, int]  # of the file: device and inode
    n_users: int = 0

    @property
    def is_in_place(self) -> bool:
        """Whether the file is still the one that was opened: another process may delete or replace it."""
        return _version(self.file) == self.version


class Workspaces:
    """The indexes of a server: the one in the folder `index`, or all below the folder `root`.

    An index is opened when it is first used; the least recently used one is closed. The one index is created if it does
    not exist, but only once: if somebody deletes it later, no empty one takes its place.
    `make_settings` returns the settings of the index in a folder, `make_ledger` what was spent of the budget of a
    workspace: it counts as long as the server runs, also where an index is closed and opened again. Built-in embedders
    are shared by all workspaces, because each takes tens of megabytes.
    """

    def __init__(
        self,
        *,
        index: Path | None = None,
        root: Path | None = None,
        max_open: int = 100,
        make_settings: Callable[[Path], Settings] = lambda path: Settings(index=path),
        make_ledger: Callable[[str], SpendingLedger] = lambda _: LocalLedger(),
    ) -> None:
        self._index = index
        self._root = root
        self._may_create = root is None
        self._max_open = max_open
        self._make_settings = make_settings
        self._make_ledger = make_ledger
        self._ledgers: dict[Path, SpendingLedger] = {}
        self._open: OrderedDict[str, _OpenWorkspace] = OrderedDict()
        self._opening = asyncio.Lock()
        self._embedders: dict[tuple[str, str], Embedder] = {}

    @property
    def folder(self) -> Path:
        """The folder that holds everything: the index, or the root of all indexes."""
        folder = self._root or self._index
        assert folder is not None
        return folder

    @property
    def may_change(self) -> bool:
        """Whether workspaces can be created and deleted: not where the server serves one index."""
        return self._root is not None

    def names(self) -> list[str]:
        """Return the names of all workspaces, sorted."""
        if self._root is None:
            return [ONLY_WORKSPACE]
        folders = self._root.iterdir() if self._root.is_dir() else ()
        return sorted(folder.name for folder in folders if _NAME.fullmatch(folder.name) and _has_index(folder))

    def exists(self, name: str) -> bool:
        """Return whether there is a workspace of that name."""
        path = self._path(name)
        return path is not None and (self._may_create or _has_index(path))

    def open_engines(self) -> list[tuple[str, Quipu]]:
        """Return the names and engines of the workspaces that are open now."""
        return [(name, workspace.engine) for name, workspace in self._open.items()]

    def without_paths(self, text: str) -> str:
        """Return a message without the folder of the workspaces: where it is concerns nobody outside."""
        return text.replace(f"{self.folder}/", "").replace(str(self.folder), "the index")

    @asynccontextmanager
    async def use(self, name: str) -> AsyncIterator[Quipu]:
        """Keep the engine of a workspace open during the block. Raises NotFound where there is no such workspace."""
        async with self._using(name) as workspace:
            yield workspace.engine

    @asynccontextmanager
    async def look_into(self, name: str) -> AsyncIterator[Quipu]:
        """Keep an engine open as `use`, but close it again if it was opened for this: most are not asked for soon."""
        was_open = name in self._open
        async with self._using(name) as workspace:
            yield workspace.engine
        if not was_open and self.may_change and not workspace.n_users and self._open.get(name) is workspace:
            await self._open.pop(name).engine.close()

    @asynccontextmanager
    async def _using(self, name: str) -> AsyncIterator[_OpenWorkspace]:
        workspace = await self._opened(name)
        try:
            yield workspace
        finally:
            workspace.n_users -= 1
            if not workspace.n_users and self._open.get(name) is not workspace:
                await workspace.engine.close()  # it was replaced meanwhile
            await self._close_unused()

    def settings(self, name: str) -> Settings:
        """Return the settings in force for a workspace. Raises NotFound where there is no such workspace."""
        if name in self._open:
            return self._open[name].settings
        path = self._path(name)
        if path is None or not self.exists(name):
            raise unknown_workspace(name)
        return self._make_settings(path)

    def stamps(self, name: str) -> tuple[tuple[int, int], ...]:
        """Return the time of the last change and the size of each file that a change of a workspace is written to."""
        path = self._path(name)
        names = [f"{file}{suffix}" for file in (INDEX_FILE, STATE_FILE) for suffix in ("", "-wal")]
        return tuple(_stamp(path / name) for name in names) if path is not None else ()

    async def state(self, name: str) -> ServerState:
        """Return what the server remembers about a workspace. Raises NotFound where there is no such workspace."""
        async with self._using(name) as workspace:
            return workspace.state

    async def create(self, name: str) -> None:
        """Create an empty workspace. Raises InvalidInput for a name that is taken or not allowed."""
        path = self._path(name)
        if not self.may_change:
            raise InvalidInput(
                "This server serves one index.", remedy="Start it for a folder of indexes: quipu serve --root DIR"
            )
        if path is None:
            raise InvalidInput(
                f"{name!r} cannot name a workspace.",
                remedy="Use 1 to 64 lower-case letters, digits, - and _; the first and the last a letter or digit.",
            )
        async with self._opening:
            if _has_index(path):
                raise InvalidInput(f"There is a workspace {name!r}.", remedy="Choose another name, or use this one.")
            await self._forget(name)  # one of the same name that another process deleted
            self._open[name] = await self._open_workspace(path, create=True)

    async def delete(self, name: str) -> None:
        """Delete a workspace with all its documents. Raises NotFound, and InvalidInput while requests use it."""
        if not self.may_change or not self.exists(name):
            raise unknown_workspace(name)
        async with self._opening:
            workspace = self._open.get(name)
            if workspace and workspace.n_users:
                raise InvalidInput(f"The workspace {name!r} is in use.", remedy="Wait for its jobs, or cancel them.")
            if workspace:
                del self._open[name]
                await workspace.engine.close()
            path = self._path(name)
            assert path is not None
            await asyncio.to_thread(shutil.rmtree, path)

    async def close(self) -> None:
        """Close every engine."""
        async with self._opening:
            for workspace in self._open.values():
                await workspace.engine.close()
            self._open.clear()

    def _path(self, name: str) -> Path | None:
        """Return the folder of a workspace, None for a name that no workspace can have."""
        if self._root is None:
            return self._index if name == ONLY_WORKSPACE else None
        return self._root / name if _NAME.fullmatch(name) else None

    async def _opened(self, name: str) -> _OpenWorkspace:
        workspace = self._open.get(name)
        if workspace is not None and not workspace.is_in_place:
            workspace = None
            await self._forget(name)
        if workspace is None:
            path = self._path(name)
            if path is None or not self.exists(name):
                raise unknown_workspace(name)
            async with self._opening:
                workspace = self._open.get(name)
                if workspace is None:
                    workspace = await self._open_workspace(path, create=self._may_create)
                    self._open[name] = workspace
                    self._may_create = False
        workspace.n_users += 1
        self._open.move_to_end(name)
        return workspace

    async def _forget(self, name: str) -> None:
        """Forget an open workspace whose index is gone; it is closed now, or when the last request has ended."""
        workspace = self._open.pop(name, None)
        if workspace is not None and not workspace.n_users:
            await workspace.engine.close()

    async def _open_workspace(self, path: Path, *, create: bool) -> _OpenWorkspace:
        settings = self._make_settings(path)
        if settings.budget and path not in self._ledgers:
            self._ledgers[path] = self._make_ledger(path.name)
        shared = SharedServices(await self._embedder(settings), self._ledgers.get(path))
        engine = await open_engine(settings, create=create, shared=shared)
        try:
            state, file = await asyncio.to_thread(ServerState, path), path / INDEX_FILE
            return _OpenWorkspace(engine, state, settings, file, _version(file))
        except BaseException:
            await engine.close()
            raise

    async def _embedder(self, settings: Settings) -> Embedder | None:
        """Return the embedder to share, None for one that holds connections of its own."""
        if settings.embedder == "openai":
            return None
        key = settings.embedder, settings.embedder_model or ""
        if key not in self._embedders:
            self._embedders[key] = await open_embedder(settings)
        return self._embedders[key]

    async def _close_unused(self) -> None:
        """Close the least recently used engines that nobody uses, until few enough are open."""
        surplus = len(self._open) - self._max_open
        for name in [name for name, workspace in self._open.items() if not workspace.n_users][: max(surplus, 0)]:
            await self._open.pop(name).engine.close()


def _version(file: Path) -> tuple[int, int]:
    """Return device and inode of a file, (0, 0) where there is none."""
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _has_index(folder: Path) -> bool:
    return (folder / INDEX_FILE).is_file()
