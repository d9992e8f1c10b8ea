"""Backup and repair: the index as one archive, and everything derived in it built again from the facts."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from quipu.atomic_file import move_durably, remove_files
from quipu.engine.components import Components
from quipu.errors import InvalidInput, NotFound, Unavailable
from quipu.model.delta import Delta
from quipu.model.derivation import RepairResult
from quipu.model.event import EventSink, Progress, ignore_event
from quipu.model.results import RefreshResult
from quipu.ports.history import ArchiveSummary, OnBytes

_MEGABYTE = 1_000_000


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

    async def backup(self, file: str | Path, on_event: EventSink = ignore_event) -> ArchiveSummary:
        """Write everything that the index holds to one file, with a digest; return what it holds.

        That is every fact, the queue, replies, usage, conversations, edits, and derivations, so that nothing is
        computed or paid for again. An earlier file is replaced once the new one is complete; a failure leaves no part
        of one. Raises NotFound for a missing folder.
        """
        path = Path(file)
        _check_target(path)
        archives = self._components.archives
        if archives is None:
            raise Unavailable("The store of this index makes no archives.")
        unfinished = path.with_name(f".{path.name}.unfinished")
        remove_files([unfinished])
        try:
            created_at = datetime.now(UTC).isoformat(timespec="seconds")
            summary = await archives.write(unfinished, created_at, in_megabytes("backup", on_event))
            await asyncio.to_thread(move_durably, unfinished, path)
        finally:
            remove_files([unfinished])
        return replace(summary, file=str(path))


def in_megabytes(stage: str, on_event: EventSink) -> OnBytes:
    """Return what reports the bytes that were read as the progress of a stage, in megabytes."""
    return lambda n_done, n_total: on_event(
        Progress(stage=stage, n_done=-(-n_done // _MEGABYTE), n_total=-(-n_total // _MEGABYTE))
    )


def _check_target(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise NotFound(f"There is no folder {str(path.parent)!r}.", remedy="Create it, or name another file.")
    if path.is_dir():
        raise InvalidInput(f"{str(path)!r} is a folder.", remedy="Name a file.")
