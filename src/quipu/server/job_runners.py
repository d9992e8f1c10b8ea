"""Job runners: they work through the queues of the workspaces while a server runs.

Killed work continues at the next start, because the queue is part of the index.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from quipu.engine import Quipu
from quipu.errors import QuipuError
from quipu.model.document import DocumentStatus
from quipu.model.event import Event, Progress
from quipu.server.workspaces import Workspaces
from quipu.stores.sqlite.server_state import ServerState

ADD, REFRESH = "add", "refresh"  # kinds of jobs
WAITING = (DocumentStatus.QUEUED, DocumentStatus.PARSING, DocumentStatus.EXTRACTING, DocumentStatus.REMOVING)
_POLL_S = 0.5  # between two looks at documents that another process reads
_PROGRESS_S = 0.3  # between two notes of the progress

_log = logging.getLogger(__name__)


class JobRunners:
    """Works through the queues of the workspaces, one task for each, while a server runs."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()

    def start(self, workspace: str) -> None:
        """Work through the queue of a workspace, unless that is done already; then once more."""
        self._again.add(workspace)
        task = self._tasks.get(workspace)
        if task is None or task.done():
            self._tasks[workspace] = asyncio.create_task(self._work(workspace))

    async def start_all(self) -> None:
        """Continue the work that an earlier process left in any workspace."""
        for name in self._workspaces.names():
            try:
                async with self._workspaces.use(name) as kb:
                    state = await self._workspaces.state(name)
                    is_waiting = any(n for status, n in (await kb.status()).jobs if status in WAITING)
                    unfinished = await asyncio.to_thread(partial(state.jobs, is_unfinished=True))
                    if is_waiting or unfinished:
                        self.start(name)
            except (QuipuError, OSError) as error:
                _log.warning("the workspace %s cannot be opened: %s", name, error)

    async def close(self) -> None:
        """End all work: what is unfinished is given back, and continues at the next start."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _work(self, workspace: str) -> None:
        while workspace in self._again:
            async with self._workspaces.use(workspace) as kb:
                self._again.discard(workspace)
                await _work_once(kb, await self._workspaces.state(workspace))


async def _work_once(kb: Quipu, state: ServerState) -> None:
    """Finish the jobs that wait now, or note why they could not be finished."""
    jobs = await asyncio.to_thread(partial(state.jobs, is_unfinished=True, k=10_000))
    ids = [job.id for job in jobs]
    documents = [name for job in jobs if job.kind == ADD for name in job.subjects]
    await asyncio.to_thread(state.update_jobs, ids, started_at=now_text(), stopped="")
    progress = _ProgressNote(state, ids)
    try:
        stopped = (await kb.resume(progress)).stopped
        while not stopped and await _is_waiting(kb, documents):  # another process reads them, or did until it died
            await asyncio.sleep(_POLL_S)
            stopped = (await kb.resume(progress)).stopped
        names = list(dict.fromkeys(name for job in reversed(jobs) if job.kind == REFRESH for name in job.subjects))
        if not stopped and any(job.kind == REFRESH for job in jobs):
            stopped = (await kb.refresh(names, on_event=progress)).stopped
    except QuipuError as error:
        stopped = str(error)
    except Exception:
        _log.exception("the work of a workspace failed")
        stopped = "The work failed; the log of the server tells why."
    finally:
        await progress.close()
    if stopped:
        await asyncio.to_thread(state.update_jobs, ids, stopped=stopped)
    else:
        await asyncio.to_thread(state.update_jobs, ids, finished_at=now_text(), stage="")


async def _is_waiting(kb: Quipu, documents: Sequence[str]) -> bool:
    return any(document.status in WAITING for document in await kb.documents(ids=documents))


class _ProgressNote:
    """Notes the latest progress of some jobs, at most a few times a second; it is the event sink of their work."""

    def __init__(self, state: ServerState, ids: Sequence[str]) -> None:
        self._state = state
        self._ids = ids
        self._noted_at = 0.0
        self._writing: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()

    def __call__(self, event: Event) -> None:
        """Note an event, unless another one was noted a moment ago."""
        now = time.monotonic()
        is_writing = self._writing is not None and not self._writing.done()
        if not isinstance(event, Progress) or is_writing or now - self._noted_at < _PROGRESS_S:
            return
        self._noted_at = now
        self._writing = self._loop.run_in_executor(None, self._note, event)

    async def close(self) -> None:
        """Wait for the last note."""
        if self._writing is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.shield(self._writing)

    def _note(self, event: Progress) -> None:
        self._state.update_jobs(self._ids, stage=event.stage, n_done=event.n_done, n_total=event.n_total)


def now_text() -> str:
    """Return the time in ISO 8601, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
