"""Job runners: they work through the queues of the workspaces while a server runs, and say how far jobs are.

Killed work continues at the next start, because the queue is part of the index.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from quipu.engine import Quipu
from quipu.errors import QuipuError
from quipu.model.document import DocumentListing, DocumentStatus
from quipu.model.event import Event, EventSink, Progress
from quipu.model.usage import UsageRow, total
from quipu.server.workspaces import Workspaces
from quipu.stores.sqlite.server_state import ServerJob, ServerState

ADD, REFRESH = "add", "refresh"  # kinds of jobs
CANCELLED = "It was cancelled."
WAITING = (DocumentStatus.QUEUED, DocumentStatus.PARSING, DocumentStatus.EXTRACTING, DocumentStatus.REMOVING)
_POLL_S = 0.5  # between two looks at documents that another process reads
_PROGRESS_S = 0.3  # between two notes of the progress
_MAX_LISTED = 100  # documents in the state of a job
_MAX_ENDED = 1_000  # states of ended jobs that are remembered

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A job and how far it is.

    - `status` is "waiting", "running", "stopped" (`stopped` says why; it continues with the next work), "finished" or
      "cancelled".
    - `subjects` are the first hundred of `n_subjects` documents to read, or derivations to refresh.
    - `documents` counts the documents of the job by status. `failed` are (document, error), at most a hundred.
    - `stage`, `n_done` and `n_total` are the progress of all work in this workspace.
    - `tokens` and `cost` (in millionths of the currency) are what models took for these documents so far.
    - `seconds_left` is an estimate, None where there is none.
    """

    id: str
    kind: str
    status: str
    created_at: str
    finished_at: str
    n_subjects: int
    subjects: tuple[str, ...]
    documents: dict[str, int]
    failed: tuple[tuple[str, str], ...]
    stage: str
    n_done: int
    n_total: int
    tokens: int
    cost: int
    seconds_left: float | None
    stopped: str


class JobStates:
    """Reads how far the jobs of a workspace are. It remembers what cannot change any more while a job runs.

    A job that has ended is read once. Of a job that runs, only the documents that still wait are read again.
    """

    def __init__(self) -> None:
        self._ended: dict[str, JobStatus] = {}
        self._settled: dict[str, dict[str, _DocumentOutcome]] = {}  # by job, then by document

    async def read(self, kb: Quipu, jobs: Sequence[ServerJob]) -> list[JobStatus]:
        """Return how far these jobs are."""
        current = [job for job in jobs if job.id not in self._ended]
        adding = [job for job in current if job.kind == ADD]
        known = {job.id: {} if job.finished_at else self._settled.setdefault(job.id, {}) for job in adding}
        names = {name for job in adding for name in job.subjects if name not in known[job.id]}
        documents = await kb.documents(ids=sorted(names)) if names else []
        outcomes = {document.id: _DocumentOutcome(document.status, document.error) for document in documents}
        rows = await kb.usage(min(job.created_at[:10] for job in adding)) if adding else []
        rows_by_subject: dict[str, list[UsageRow]] = {}
        for row in rows:
            rows_by_subject.setdefault(row.subject, []).append(row)
        status_by_id = {job.id: _status(job, outcomes | known.get(job.id, {}), rows_by_subject) for job in current}
        for job in adding:
            settled = {name: outcomes[name] for name in job.subjects if name in outcomes}
            known[job.id] |= {name: outcome for name, outcome in settled.items() if outcome.status not in WAITING}
        for job in current:
            if job.finished_at:
                self._settled.pop(job.id, None)
                self._ended[job.id] = status_by_id[job.id]
        for job_id in list(self._ended)[:-_MAX_ENDED]:
            del self._ended[job_id]
        return [status_by_id.get(job.id) or self._ended[job.id] for job in jobs]


@dataclass(frozen=True, slots=True)
class _DocumentOutcome:
    """What became of a document of a job so far."""

    status: DocumentStatus
    error: str


def _status(
    job: ServerJob, outcomes: Mapping[str, _DocumentOutcome], rows_by_subject: Mapping[str, Sequence[UsageRow]]
) -> JobStatus:
    subjects = job.subjects if job.kind == ADD else ()
    outcome_by_name = {name: outcomes[name] for name in subjects if name in outcomes}
    first_day = job.created_at[:10]
    spent = [row for name in subjects for row in rows_by_subject.get(name, ()) if row.day >= first_day]
    counts = Counter(outcome.status for outcome in outcome_by_name.values())
    n_waiting = sum(counts[status] for status in WAITING)
    sums = total(spent) if spent else None
    failed = [(name, outcome.error) for name, outcome in outcome_by_name.items() if outcome.error]
    return JobStatus(
        id=job.id,
        kind=job.kind,
        status=_stage_of_life(job),
        created_at=job.created_at,
        finished_at=job.finished_at,
        n_subjects=len(job.subjects),
        subjects=job.subjects[:_MAX_LISTED],
        documents={status.value: n for status, n in sorted(counts.items())},
        failed=tuple(failed[:_MAX_LISTED]),
        stage=job.stage,
        n_done=job.n_done,
        n_total=job.n_total,
        tokens=sums.tokens.input + sums.tokens.output if sums else 0,
        cost=sums.cost if sums else 0,
        seconds_left=_seconds_left(job, len(outcome_by_name), n_waiting),
        stopped=job.stopped,
    )


def _stage_of_life(job: ServerJob) -> str:
    if job.finished_at:
        return "cancelled" if job.stopped else "finished"
    return "stopped" if job.stopped else "running" if job.started_at else "waiting"


def _seconds_left(job: ServerJob, n_documents: int, n_waiting: int) -> float | None:
    """Return how long the documents that wait will take if they take as long as those that are finished."""
    n_finished = n_documents - n_waiting
    if job.finished_at or not job.started_at or not n_finished or not n_waiting:
        return None
    seconds = (datetime.now(UTC) - datetime.fromisoformat(job.started_at)).total_seconds()
    return round(seconds / n_finished * n_waiting, 1)


class JobRunners:
    """Works through the queues of the workspaces, one task for each, while a server runs.

    With `work_apart`, which gets the folder of an index, the work is done in another process.
    """

    def __init__(self, workspaces: Workspaces, work_apart: Callable[[Path], Awaitable[None]] | None = None) -> None:
        self._workspaces = workspaces
        self._work_apart = work_apart
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
                async with self._workspaces.look_into(name) as kb:
                    state = await self._workspaces.state(name)
                    waiting = await kb.documents(DocumentListing(statuses=WAITING, k=1))
                    unfinished = await asyncio.to_thread(partial(state.jobs, is_unfinished=True, k=1))
                    if waiting or unfinished:
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
                state, settings = await self._workspaces.state(workspace), self._workspaces.settings(workspace)
                if (
                    self._work_apart is None or settings.folder is None or settings.budget
                ):  # which an open engine counts: there may be one only
                    await work_once(kb, state)
                    continue
                try:
                    await self._work_apart(settings.folder)
                except QuipuError as error:
                    jobs = await asyncio.to_thread(partial(state.jobs, is_unfinished=True, k=10_000))
                    await asyncio.to_thread(state.update_jobs, [job.id for job in jobs], stopped=str(error))


async def work_once(kb: Quipu, state: ServerState) -> None:
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
        stopped = stopped or await _refresh(kb, state, ids, progress)
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


async def _refresh(kb: Quipu, state: ServerState, ids: Sequence[str], progress: EventSink) -> str:
    """Refresh what these jobs ask for, without those that are cancelled meanwhile; return what stopped it, or ""."""
    while names := await _names_to_refresh(state, ids):
        work = asyncio.create_task(kb.refresh([name for name in names if name], on_event=progress))
        try:
            while not work.done() and names == await _names_to_refresh(state, ids):
                await asyncio.wait((work,), timeout=_POLL_S)
            if work.done():
                return work.result().stopped
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
    return ""


async def _names_to_refresh(state: ServerState, ids: Sequence[str]) -> list[str]:
    """Return the derivations that jobs which have not ended ask for, "" for those that exist; the oldest job first."""
    jobs = await asyncio.to_thread(partial(state.jobs, is_unfinished=True, k=10_000))
    refreshing = [job for job in reversed(jobs) if job.kind == REFRESH and job.id in ids]
    return list(dict.fromkeys(name for job in refreshing for name in job.subjects or ("",)))


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
