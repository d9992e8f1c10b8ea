"""Backup and repair: the index as one archive, and everything derived in it built again from the facts."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from quipu.atomic_file import remove_files, replace_atomically
from quipu.engine.components import Components
from quipu.errors import InvalidInput, NotFound, Unavailable
from quipu.model.delta import Delta
from quipu.model.derivation import RepairResult
from quipu.model.event import EventSink, Progress, ignore_event
from quipu.model.results import RefreshResult
from quipu.ports.archive import ArchivePiece, ArchiveSummary


class Refreshes(Protocol):
    """The part of the engine that a repair uses."""

    _components: Components

    async def refresh(self, names: Sequence[str], *, on_event: EventSink) -> RefreshResult: ...


class Backups:
    """The methods of the engine that keep the index safe."""

    _components: Components

    async def repair(
        self: Refreshes, *, accept_losses: bool = False, on_event: EventSink = ignore_event
    ) -> RepairResult:
        """Build everything again that is derived from facts, if the facts are sound; see `verify`.

        If facts are damaged or missing, nothing is changed, and the result names the documents concerned: remove these,
        add them again, then repair with `accept_losses`, which drops what is left of missing facts; damaged ones it
        does not accept. Damaged reports and summaries whose replies are gone are asked for again.
        """
        store = self._components.store
        faults = await store.verify(facts_only=True)
        losses = [] if accept_losses else await store.verify(losses_only=True)
        if faults or losses:
            return RepairResult(faults=tuple(faults), losses=tuple(losses))
        repaired = await store.verify()
        async with store.view() as view:
            existing = await view.derivations()
        await store.commit(Delta(repair=True))
        names = [derivation.name for derivation in self._components.catalog if derivation.name in existing]
        refreshed = await self.refresh(names, on_event=on_event)
        return RepairResult(repaired=tuple(repaired), left=tuple(await store.verify()), stopped=refreshed.stopped)

    async def archive(self) -> AsyncGenerator[ArchivePiece, None]:
        """Yield an archive of the index in pieces: of one snapshot, while others write. `quipu.restore` reads it."""
        archives = self._components.archives
        if archives is None:
            raise Unavailable("The store of this index makes no archives.")
        created_at = datetime.now(UTC).isoformat(timespec="seconds")
        async with aclosing(archives.archive(created_at)) as pieces:
            async for piece in pieces:
                yield piece

    async def backup(self, file: str | Path, on_event: EventSink = ignore_event) -> ArchiveSummary:
        """Write everything that the index holds to one file, with a digest; return what it holds.

        That is every fact, the queue, replies, usage, conversations, edits, and derivations, so that nothing is
        computed or paid for again. An earlier file is replaced once the new one is complete; a failure leaves no part
        of one. Raises NotFound for a missing folder.
        """
        path = Path(file)
        _check_target(path)
        unfinished = path.with_name(f".{path.name}.unfinished")
        try:
            with replace_atomically(path, unfinished) as opened:
                async with aclosing(self.archive()) as pieces:
                    async for piece in pieces:
                        opened.write(piece.content)
                        on_event(Progress(stage="backup", n_done=piece.n_done, n_total=piece.summary.n_rows))
                n_bytes = opened.tell()
        finally:
            remove_files([unfinished])
        return replace(piece.summary, file=str(path), n_bytes=n_bytes)


def _check_target(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise NotFound(f"There is no folder {str(path.parent)!r}.", remedy="Create it, or name another file.")
    if path.is_dir():
        raise InvalidInput(f"{str(path)!r} is a folder.", remedy="Name a file.")
