"""Mirroring: the index is kept equal to a folder, and files that did not change are not even read.

What the mirror knows of each file is in a file beside the index. It is a cache: without it, every file is read again,
and nothing is removed that it did not bring.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from quipu.engine.components import Components
from quipu.engine.ingestion import IngestRun
from quipu.errors import InvalidInput, NotFound, Unavailable
from quipu.ingest.documents import ChangeStatus, change_status, reading_identity
from quipu.ingest.sources import SIDECAR_SUFFIX, FoundSource, find_sources
from quipu.model.delta import Delta
from quipu.model.document import Document, DocumentStatus, SourceDocument
from quipu.model.event import EventSink, ignore_event
from quipu.model.ids import digest_bytes
from quipu.model.results import AddResult, MirrorResult, RemoveResult
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

STATE_FILE = "mirrors.json"
IGNORE_FILE = ".quipuignore"
MANY_REMOVALS = 10  # more of them, if they are most of the folder, are removed only on demand
_WATCH_MS = 1_000
_RACY_NS = 2_000_000_000  # a file may change again within the resolution of its time: it is not trusted so soon


@dataclass(frozen=True, slots=True)
class SeenFile:
    """What is known of a mirrored file: its size and times ("": not to be trusted), and the digest of its content."""

    stamp: str
    digest: str


@dataclass(slots=True)
class MirrorState:
    """The files that mirrors of an index have brought, by folder and document id."""

    path: Path
    files: dict[str, dict[str, SeenFile]] = field(default_factory=dict)
    reading: dict[str, str] = field(default_factory=dict)  # how documents were read, by folder

    @classmethod
    def load(cls, path: Path) -> "MirrorState":
        """Read the state; an empty one where the file is missing or damaged."""
        state = cls(path)
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            for folder, mirror in json.loads(path.read_text(encoding="utf-8")).items():
                state.files[folder] = {name: SeenFile(*values) for name, values in mirror["files"].items()}
                state.reading[folder] = str(mirror["reading"])
        return state

    def save(self) -> None:
        """Write the state, completely or not at all."""
        mirrors = {
            folder: {
                "reading": self.reading.get(folder, ""),
                "files": {name: [seen.stamp, seen.digest] for name, seen in sorted(files.items())},
            }
            for folder, files in sorted(self.files.items())
        }
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        new.write_text(json.dumps(mirrors, ensure_ascii=False), encoding="utf-8")
        new.replace(self.path)


class _FolderFiles:
    """A FileChoice: which files of a folder are seen, and which of them are read."""

    def __init__(self, folder: Path, to_read: Collection[str] = ()) -> None:
        self._folder = folder
        self._to_read = to_read
        self._specs: dict[Path, tuple[tuple[Path, GitIgnoreSpec], ...]] = {}
        self._sidecars: dict[Path, frozenset[str]] = {}
        self.stamps: dict[str, str] = {}

    def ignores(self, path: Path) -> bool:
        """Return whether the ignore files of the folders above a path say so; the last one that decides wins."""
        is_ignored = False
        for folder, spec in self._specs_above(path.parent):
            name = path.relative_to(folder).as_posix() + ("/" if path.is_dir() else "")
            decision = spec.check_file(name).include
            is_ignored = is_ignored if decision is None else decision
        return is_ignored

    def wants(self, file: Path, document_id: str) -> bool:
        """Note a file, and return whether it is to be read."""
        folder = file.parent
        if folder not in self._sidecars:
            with os.scandir(folder) as entries:
                names = frozenset(entry.name for entry in entries if entry.name.endswith(SIDECAR_SUFFIX))
            self._sidecars[folder] = names
        self.stamps[document_id] = _stamp(file, self._sidecars[folder])
        return document_id in self._to_read

    def _specs_above(self, folder: Path) -> "tuple[tuple[Path, GitIgnoreSpec], ...]":
        """Return the ignore files that hold in a folder, its own last, each with the folder that it is in."""
        if folder not in self._specs:
            specs = () if folder == self._folder else self._specs_above(folder.parent)
            with suppress(FileNotFoundError, NotADirectoryError):
                lines = (folder / IGNORE_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
                from pathspec import GitIgnoreSpec

                specs = (*specs, (folder, GitIgnoreSpec.from_lines(lines)))
            self._specs[folder] = specs
        return self._specs[folder]


def _stamp(file: Path, sidecars: Collection[str]) -> str:
    """Return size, times and number of a file and its sidecars; "" if it changed a moment ago, or cannot be seen.

    `sidecars` are the names of those in its folder.
    """
    parts: list[str] = []
    own = [name for stem in (file.stem, file.name) if (name := stem + SIDECAR_SUFFIX) in sidecars]
    for path in (file, *map(file.with_name, own)):
        try:
            status = path.stat()
        except OSError:
            if path is file:
                return ""
            continue
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) < _RACY_NS:
            return ""
        parts.append(f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}")
    return "; ".join(parts)


@dataclass(frozen=True, kw_only=True)
class FolderMirror:
    """A folder, what the last mirror of it saw, and what is there now. `changed` files must be read."""

    components: Components
    folder: Path
    root: Path
    state: MirrorState
    known: Mapping[str, SeenFile]
    stamps: Mapping[str, str]
    live: Mapping[str, Document]

    @classmethod
    def look(cls, components: Components, folder: Path, root: Path, live: Mapping[str, Document]) -> "FolderMirror":
        """Look at a folder, without reading its files; `live` are the documents of the index. Raises NotFound."""
        if not folder.is_dir():
            raise NotFound(f"There is no folder {folder}.", remedy="Give the path of a folder.")
        folder = folder.resolve()
        state = MirrorState.load(components.path / STATE_FILE)
        known = state.files.get(str(folder), {})
        if state.reading.get(str(folder)) != reading_identity(components.ingest_config):
            known = {name: SeenFile("", seen.digest) for name, seen in known.items()}
        empty = cls(components=components, folder=folder, root=root, state=state, known=known, stamps={}, live=live)
        files = _FolderFiles(folder)
        for _ in empty._sources(files):
            pass  # no file is read, because none is wanted
        return replace(empty, stamps=files.stamps)

    @cached_property
    def changed(self) -> frozenset[str]:
        """The files that are new, or may have changed since they were read."""
        return frozenset(name for name, stamp in self.stamps.items() if not self._is_unchanged(name, stamp))

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """The documents whose files are gone."""
        return tuple(sorted(name for name in self.known if name not in self.stamps and name in self.live))

    def _is_unchanged(self, name: str, stamp: str) -> bool:
        known, document = self.known.get(name), self.live.get(name)
        is_read = document is not None and document.status is DocumentStatus.READY
        return bool(known is not None and stamp and known.stamp == stamp and is_read)

    def sources(self, digests: dict[str, str]) -> Iterator[FoundSource]:
        """Yield the files that must be read, and note the digest of each document."""
        if not self.changed:
            return  # so that the folder is not walked again
        for source in self._sources(_FolderFiles(self.folder, self.changed)):
            if isinstance(source, SourceDocument):
                digests[source.id] = digest_bytes(source.content)
            yield source

    def plan(self) -> MirrorResult:
        """Read the changed files, and return what a mirror would do."""
        digests: dict[str, str] = {}
        config = self.components.ingest_config
        sources = [source for source in self.sources(digests) if isinstance(source, SourceDocument)]
        is_same = {
            source.id: change_status(self.live.get(source.id), source, config) is ChangeStatus.UNCHANGED
            for source in sources
        }
        changed = tuple(sorted(name for name, same in is_same.items() if name in self.live and not same))
        return replace(self.result(digests, None), changed=changed)

    def result(self, digests: Mapping[str, str], added: AddResult | None) -> MirrorResult:
        """Return what a mirror did, or would do; `digests` are those of the files that were read."""
        new = tuple(sorted(self.changed - self.live.keys()))
        name_by_digest = {digests[name]: name for name in reversed(new) if name in digests}
        moved = ((name, name_by_digest.get(self.known[name].digest, "")) for name in self.missing)
        return MirrorResult(
            folder=str(self.folder),
            n_unchanged=len(self.stamps) - len(self.changed),
            new=new,
            changed=tuple(sorted(self.changed & self.live.keys())),
            removed=self.missing,
            renamed=tuple((old, name) for old, name in moved if name),
            added=added,
        )

    def check_removals(self) -> None:
        """Raise InvalidInput where most documents would be removed, and their files were not just moved."""
        if self._removes_too_many(len(self.missing)):
            n_removed = len(self.missing) - len(self.plan().renamed)
            if self._removes_too_many(n_removed):
                removed = f"{format_count(n_removed, 'document')} of {len(self.known):,}"
                raise InvalidInput(
                    f"{removed} would be removed: their files are gone.",
                    remedy="Check that the folder is mounted and complete; then allow removals (--allow-removals).",
                )

    def _removes_too_many(self, n_removed: int) -> bool:
        is_all = n_removed > 0 and not self.stamps
        return is_all or (n_removed > MANY_REMOVALS and 2 * n_removed > len(self.known))

    def note(self, digests: Mapping[str, str] | None) -> None:
        """Keep which files the folder has: before the work (None), and with their digests after it."""
        files = {name: SeenFile(stamp, self._digest(name, digests)) for name, stamp in self.stamps.items()}
        if digests is None:
            files = {**self.known, **{name: SeenFile("", seen.digest) for name, seen in files.items()}}
        else:
            unread = self.changed - digests.keys()  # they could not be read
            files |= {name: SeenFile("", "") for name in unread & files.keys()}
        self.state.files[str(self.folder)] = files
        self.state.reading[str(self.folder)] = reading_identity(self.components.ingest_config)
        self.state.save()

    def _digest(self, name: str, digests: Mapping[str, str] | None) -> str:
        known = self.known.get(name)
        return (digests or {}).get(name) or (known.digest if known else "")

    def _sources(self, files: _FolderFiles) -> Iterator[FoundSource]:
        components = self.components
        return find_sources(
            [self.folder],
            root=self.root,
            file_types=components.ingest_config.file_types,
            is_index=components.is_index,
            choice=files,
        )


async def _follow_moves(mirror: FolderMirror) -> None:
    """Let edits that name a moved file name it where it is now. This comes first, so that a crash loses none."""
    edits = mirror.components.edits
    if edits is not None and mirror.missing:
        named = {name for recorded in await edits.edits(with_undone=False) for name in recorded.edit.documents}
        if not named.isdisjoint(mirror.missing):
            await mirror.components.store.commit(Delta(moved=(await asyncio.to_thread(mirror.plan)).renamed))


class AddsFound(Protocol):
    """The part of the engine that a mirror uses."""

    _components: Components

    async def _add_found(self, documents: Iterator[FoundSource], run: IngestRun) -> AddResult: ...

    async def remove(self, ids: Sequence[str], on_event: EventSink = ignore_event) -> RemoveResult: ...

    async def mirror(self, folder: str | Path, *, root: str | Path | None, on_event: EventSink) -> MirrorResult: ...


class Mirrors:
    """The methods of the engine that keep an index equal to a folder."""

    async def mirror(
        self: AddsFound,
        folder: str | Path,
        *,
        root: str | Path | None = None,
        dry_run: bool = False,
        allow_removals: bool = False,
        max_cost: float = 0.0,
        on_event: EventSink = ignore_event,
    ) -> MirrorResult:
        """Make the index equal to a folder: add new files, update changed ones, remove documents without a file.

        Ids are those that `add` gives, and documents that `add` made of files in the folder belong to the mirror from
        then on. Only documents that a mirror of this folder has seen are removed. Files that `.quipuignore` excludes
        (the syntax of .gitignore) are no part of the folder. An unchanged file is not read again, and a moved file
        costs no call of a model. An interrupted mirror is finished by the next one.

        Raises NotFound for a missing folder. Raises InvalidInput, before anything changes, where all or most documents
        of the folder would be removed, unless `allow_removals`: a folder that is not mounted looks like an empty one.
        """
        components = self._components
        async with components.store.view() as view:
            live = {document.id: document for document in await view.documents()}
        below = Path(root) if root else components.outer_folder
        mirror = await asyncio.to_thread(FolderMirror.look, components, Path(folder), below, live)
        if dry_run:
            return await asyncio.to_thread(mirror.plan)
        if not allow_removals:
            await asyncio.to_thread(mirror.check_removals)
        await _follow_moves(mirror)
        digests: dict[str, str] = {}
        await asyncio.to_thread(mirror.note, None)
        run = IngestRun(components.within(max_cost), on_event)
        added = await self._add_found(mirror.sources(digests), run)
        if mirror.missing:  # after the new ones: the replies of a model for a moved file are still there
            await self.remove(mirror.missing, on_event)
        await asyncio.to_thread(mirror.note, digests)
        return mirror.result(digests, added)

    async def watch(
        self: AddsFound, folder: str | Path, *, root: str | Path | None = None, on_event: EventSink = ignore_event
    ) -> AsyncGenerator[MirrorResult, None]:
        """Mirror a folder, and again whenever something in it changes; yield what changed the index.

        The first result always comes. Needs quipu-rag[watch]. Raises as `mirror`: a change that cannot be mirrored ends
        it.
        """
        try:
            from watchfiles import awatch
        except ImportError:
            raise Unavailable(
                "Watching a folder needs watchfiles.", remedy='Install it: pip install "quipu-rag[watch]"'
            ) from None
        yield await self.mirror(folder, root=root, on_event=on_event)
        is_watching = False
        async with aclosing(awatch(folder, yield_on_timeout=True, rust_timeout=_WATCH_MS)) as events:
            async for changes in events:
                if changes or not is_watching:  # what changed before the watch began must be seen, too
                    is_watching = True
                    result = await self.mirror(folder, root=root, on_event=on_event)
                    if result.has_changes:
                        yield result
