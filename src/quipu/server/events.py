"""Events: what changes in a workspace, found out once for all streams of this process.

A watch looks at the time stamps of the workspace's files while anybody follows it. Only when one has changed it reads
the index, whichever process has written to it: this one, another worker, or the command line.
"""

import asyncio
import hashlib
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial

from quipu.engine import Quipu
from quipu.errors import NotFound, QuipuError
from quipu.model.derivation import DerivationState, Freshness
from quipu.model.document import DocumentListing, DocumentOrder, DocumentStatus
from quipu.model.results import IndexStatus
from quipu.server.access import unknown_workspace
from quipu.server.job_runners import JobStates, JobStatus
from quipu.server.wire import BEAT, HEARTBEAT_S, json_bytes, sent_event
from quipu.server.workspaces import Workspaces
from quipu.stores.sqlite.server_state import ServerJob

LOOK_S = 0.5  # between two looks at the time stamps
_MAX_SHARE = 0.05  # of the time that reading may take
_MAX_WAIT_S = 5.0
_SETTLED_NS = 100_000_000  # after which another change to a file surely gets another time stamp
_MAX_STREAM_S = 3_600.0  # then a client comes back, and its key is checked again
_MAX_CHANGES = 64  # that are remembered for clients that come back
_MAX_NAMED = 100  # documents in one event
_MAX_JOBS = 100
_MAX_TRIES = 3  # to read the index between two commits
# A document that is read again is live, too; one that only waits in the queue has no version.
_PERHAPS_LIVE = tuple(status for status in DocumentStatus if status is not DocumentStatus.QUEUED)

_log = logging.getLogger(__name__)
_Stamps = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceState:
    """The state of a workspace: the first event of a stream, and again where a client missed too much.

    `queue` counts queued work by status. `jobs` are those that have not ended, the newest first.
    """

    revision: int
    n_documents: int
    queue: dict[str, int]
    derivations: tuple[DerivationState, ...]
    jobs: tuple[JobStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexChange:
    """A change of the index: which documents can be queried now, in which version, and how many went.

    `added` and `updated` are ids, at most a hundred together. `is_complete` is false where more has changed than they
    tell: then read the list of documents again. `queue` counts queued work by status.
    """

    revision: int
    n_documents: int
    queue: dict[str, int]
    added: tuple[str, ...]
    updated: tuple[str, ...]
    n_removed: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class _Change:
    """The events of one look, as they are sent; the last one carries the id of the state after it.

    The first one has no events: it stands for the state that was read first.
    """

    n: int
    id: str
    events: bytes


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a look read: the state, the jobs as they are stored, and the last updated documents.

    It is not consistent where commits came between its parts.
    """

    state: WorkspaceState
    status_by_job: Mapping[str, JobStatus]
    updated: Mapping[str, tuple[int, str]]
    is_consistent: bool = True

    @property
    def id(self) -> str:
        return f"{self.state.revision}-{hashlib.sha256(json_bytes(self.state)).hexdigest()[:12]}"


class WorkspaceWatch:
    """Follows one workspace for all streams of this process. `states` are those of its jobs."""

    def __init__(self, workspaces: Workspaces, name: str) -> None:
        self.states = JobStates()
        self._workspaces = workspaces
        self._name = name
        self._stamps: _Stamps = ()
        self._reading: _Reading | None = None
        self._changes: deque[_Change] = deque(maxlen=_MAX_CHANGES)
        self._looked = asyncio.Event()
        self._looking = asyncio.Lock()
        self._n_followers = 0
        self._task: asyncio.Task[None] | None = None
        self._error: QuipuError | None = None
        self._is_closed = False

    async def ready(self) -> None:
        """Look once, unless somebody follows already. Raises what opening the workspace raises."""
        if self._reading is None or not self._n_followers:
            await self._look()

    async def job(self, job_id: str) -> JobStatus:
        """Return how far a job is, as of the last look if that knows it. Raises NotFound for an unknown one."""
        if self._reading is not None and job_id in self._reading.status_by_job:
            return self._reading.status_by_job[job_id]
        state = await self._workspaces.state(self._name)
        job = await asyncio.to_thread(state.job, job_id)
        if job is None:
            raise unknown_job(job_id)
        async with self._workspaces.use(self._name) as kb:
            [status] = await self.states.read(kb, [job])
        return status

    async def looks(self) -> AsyncGenerator[bool, None]:
        """Yield True at once, and after every look that found a file changed; False after 15 seconds without one.

        Ends after an hour, and with the server.

        Raises NotFound when the workspace is gone.
        """
        end = time.monotonic() + _MAX_STREAM_S
        is_new = True
        with self._following():
            while True:
                looked = self._looked
                yield is_new
                if self._error is not None:
                    raise self._error
                if self._is_closed:
                    return
                try:
                    async with asyncio.timeout(min(end - time.monotonic(), HEARTBEAT_S)):
                        is_new = await looked.wait()
                except TimeoutError:
                    is_new = False
                    if time.monotonic() >= end:
                        return

    async def changes(self, last_id: str = "") -> AsyncGenerator[bytes, None]:
        """Yield the events since the state with this id, then all that follow; first the state where it is unknown."""
        n_sent = next((change.n for change in self._changes if change.id == last_id), None)
        async with aclosing(self.looks()) as looks:
            async for is_new in looks:
                if not is_new:
                    yield BEAT
                while (following := self._after(n_sent)) is not None:
                    n_sent, events = following
                    yield events

    def _after(self, n_sent: int | None) -> tuple[int, bytes] | None:
        """Return the change after that one, or the state where more is missing than is remembered."""
        if self._reading is None:
            return None
        if n_sent is None or n_sent < self._changes[0].n - 1:
            last = self._changes[-1]
            return last.n, sent_event("state", self._reading.state, id=last.id)
        return next(((change.n, change.events) for change in self._changes if change.n > n_sent), None)

    def close(self) -> None:
        """End all streams."""
        self._is_closed = True
        self._wake()

    @contextmanager
    def _following(self) -> Iterator[None]:
        self._n_followers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            self._n_followers -= 1
            if not self._n_followers:
                self._task.cancel()
                self._task = None

    async def _look_on(self) -> None:
        """Look again and again. Where reading takes long, look less often: it must not slow down what it watches."""
        wait_s = LOOK_S
        while True:
            await asyncio.sleep(wait_s)
            start = time.perf_counter()
            try:
                await self._look()
            except NotFound as error:
                self._error = error
                self._wake()
                return
            except Exception as error:  # busy, for example: the next look may succeed
                _log.warning("the workspace %s cannot be read: %s", self._name, error)
            wait_s = min(max(LOOK_S, (time.perf_counter() - start) / _MAX_SHARE), max(LOOK_S, _MAX_WAIT_S))

    async def _look(self) -> None:
        """Read the index if a file of it has changed, and note what is new."""
        async with self._looking:
            stamps = self._workspaces.stamps(self._name)
            if stamps == self._stamps and self._reading is not None:
                return
            reading = await self._read()
            before, self._reading, self._error = self._reading, reading, None
            # A file that changed a moment ago may change again without a new time stamp: look again.
            is_settled = all(time.time_ns() - stamp > _SETTLED_NS for stamp, _ in stamps)
            self._stamps = stamps if is_settled else ()
            events = _events(before, reading) if before is not None else []
            if events or before is None:
                n = self._changes[-1].n + 1 if self._changes else 0
                self._changes.append(_Change(n, reading.id, b"".join(events)))
            self._wake()

    def _wake(self) -> None:
        looked, self._looked = self._looked, asyncio.Event()
        looked.set()

    async def _read(self) -> _Reading:
        before = self._reading
        async with self._workspaces.use(self._name) as kb:
            status, updated, is_consistent = await _status_and_last_updated(kb)
            jobs = await self._jobs(before)
            status_by_job = {job.id: job for job in await self.states.read(kb, jobs)}
        state = WorkspaceState(
            revision=status.revision,
            n_documents=status.n_documents,
            queue=dict(status.jobs),
            derivations=status.derivations,
            jobs=tuple(job for job in status_by_job.values() if not job.finished_at),
        )
        return _Reading(state, status_by_job, updated, is_consistent)

    async def _jobs(self, before: _Reading | None) -> Sequence[ServerJob]:
        """Return the latest jobs, the newest first, with all that had not finished at the last look."""
        state = await self._workspaces.state(self._name)
        jobs = list(await asyncio.to_thread(partial(state.jobs, k=_MAX_JOBS)))
        jobs += await asyncio.to_thread(partial(state.jobs, is_unfinished=True, k=_MAX_JOBS))
        names = {job.id for job in jobs}
        for job in before.state.jobs if before is not None else ():
            if job.id not in names and (ended := await asyncio.to_thread(state.job, job.id)) is not None:
                jobs.append(ended)
        return list({job.id: job for job in jobs}.values())


async def _status_and_last_updated(kb: Quipu) -> tuple[IndexStatus, Mapping[str, tuple[int, str]], bool]:
    """Return the status, the documents that were updated last, and whether both are of one revision."""
    status = await kb.status()
    for _ in range(_MAX_TRIES):
        updated, before = await _last_updated(kb), status
        status = await kb.status()
        if status.revision == before.revision:
            return status, updated, True
    return status, updated, False


async def _last_updated(kb: Quipu) -> Mapping[str, tuple[int, str]]:
    """Return the version and the time of each of the documents that were updated last."""
    listing = DocumentListing(statuses=_PERHAPS_LIVE, order=DocumentOrder.UPDATED, k=_MAX_NAMED)
    documents = await kb.documents(listing)
    return {document.id: (document.version, document.updated_at) for document in documents if document.version}


def _events(before: _Reading, after: _Reading) -> list[bytes]:
    """Return the events that tell what has changed between two readings; the last one has the id of the second."""
    events: list[tuple[str, object]] = []
    if (change := _index_change(before, after)) is not None:
        events.append(("index", change))
    freshness = {state.name: _told(state) for state in before.state.derivations}
    events += (("derivation", s) for s in after.state.derivations if freshness.get(s.name) != _told(s))
    events += (("job", s) for name, s in after.status_by_job.items() if before.status_by_job.get(name) != s)
    return [sent_event(*event, id=after.id if event is events[-1] else "") for event in events]


def _told(state: DerivationState) -> tuple[Freshness, int]:
    """Return what of a derivation is told when it changes: while documents are added, not how many items it lacks."""
    return state.freshness, state.n_items if state.freshness is Freshness.FRESH else 0


def _index_change(before: _Reading, after: _Reading) -> IndexChange | None:
    old, new = before.state, after.state
    last = max((at for _, at in before.updated.values()), default="")
    # An older document that was not listed before has not changed: others that were listed went.
    changed = {
        name: version
        for name, (version, at) in after.updated.items()
        if at >= last and before.updated.get(name) != (version, at)
    }
    if (old.n_documents, old.queue) == (new.n_documents, new.queue) and not changed:
        return None
    added = tuple(name for name, version in changed.items() if version == 1)
    n_removed = old.n_documents + len(added) - new.n_documents
    return IndexChange(
        revision=new.revision,
        n_documents=new.n_documents,
        queue=new.queue,
        added=added,
        updated=tuple(name for name in changed if name not in added),
        n_removed=max(n_removed, 0),
        is_complete=n_removed >= 0 and len(changed) < _MAX_NAMED and before.is_consistent and after.is_consistent,
    )


def unknown_job(job_id: str) -> NotFound:
    """Return the error for a job that does not exist."""
    return NotFound(f"There is no job {job_id!r}.", remedy="GET …/jobs lists the latest.")


class Watches:
    """The watches of the workspaces that somebody has followed."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._watches: dict[str, WorkspaceWatch] = {}

    def of(self, name: str) -> WorkspaceWatch:
        """Return the watch of a workspace. Raises NotFound where there is no such workspace."""
        if not self._workspaces.exists(name):
            self._watches.pop(name, None)
            raise unknown_workspace(name)
        return self._watches.setdefault(name, WorkspaceWatch(self._workspaces, name))

    def close(self) -> None:
        """End all streams: the server is asked to end, and waits for none of them."""
        for watch in self._watches.values():
            watch.close()

    async def ready(self, name: str) -> WorkspaceWatch:
        """Return the watch of a workspace after it has looked once."""
        watch = self.of(name)
        await watch.ready()
        return watch
