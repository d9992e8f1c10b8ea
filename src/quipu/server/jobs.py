"""Jobs: work that goes on after a reply. Their progress is read from the index, so every process knows it.

A job is a list of documents in the queue of the index, or of derivations to refresh. It has ended when none of its
documents waits any more. Killed work continues at the next start, because the queue is part of the index.
"""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from quipu.engine import Quipu
from quipu.errors import InvalidInput
from quipu.server.access import Permission
from quipu.server.events import WorkspaceWatch, unknown_job
from quipu.server.job_runners import ADD, CANCELLED, REFRESH, WAITING, JobStatus, now_text
from quipu.server.operations import Call, WireBody, operation, operations_of
from quipu.server.questions import WORKSPACE
from quipu.server.wire import BEAT, event_stream, json_bytes, sent_event
from quipu.stores.sqlite.server_state import ServerJob


async def start_job(kb: Quipu, call: Call, kind: str, subjects: Sequence[str]) -> JobStatus:
    """Remember a job of the workspace of a call, begin it, and return how far it is."""
    job = ServerJob(id=secrets.token_hex(8), kind=kind, subjects=tuple(subjects), created_at=now_text())
    state = await call.server.workspaces.state(call.workspace)
    await asyncio.to_thread(state.add_job, job)
    call.server.jobs.start(call.workspace)
    return await _status(kb, call, job)


async def _status(kb: Quipu, call: Call, job: ServerJob) -> JobStatus:
    [status] = await call.server.watches.of(call.workspace).states.read(kb, [job])
    return status


class DocumentNames(WireBody):
    """Documents by their ids; none: all of them."""

    documents: tuple[str, ...] = ()


class RefreshRequest(WireBody):
    """The derivations to refresh; none: those that exist."""

    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """A page of jobs, the newest first; `cursor` asks for the next one, "" if this is the last."""

    jobs: tuple[JobStatus, ...]
    cursor: str


@operation("GET", f"{WORKSPACE}/jobs", Permission.READ)
async def list_jobs(
    kb: Quipu,
    call: Call,
    *,
    k: Annotated[int, Field(ge=1, le=1_000)] = 100,
    cursor: str = "",
    unfinished: bool = False,
) -> JobPage:
    """List jobs and how far they are page by page, the newest first. `cursor` is that of the page before."""
    if cursor:
        await _job(call, cursor)
    state = await call.server.workspaces.state(call.workspace)
    jobs = await asyncio.to_thread(partial(state.jobs, k=k + 1, is_unfinished=unfinished, after=cursor))
    statuses = await call.server.watches.of(call.workspace).states.read(kb, jobs[:k])
    return JobPage(jobs=tuple(statuses), cursor=jobs[k - 1].id if len(jobs) > k else "")


@operation("GET", f"{WORKSPACE}/jobs/{{job}}", Permission.READ)
async def show_job(kb: Quipu, call: Call, job: str) -> JobStatus:
    """Return a job and how far it is."""
    return await _status(kb, call, await _job(call, job))


@operation("GET", f"{WORKSPACE}/jobs/{{job}}/events", Permission.READ, media_type="text/event-stream")
async def job_events(call: Call, job: str) -> Response:
    """Follow a job: an event `job` whenever something changed, the last one when it has ended or stopped.

    Each event is the whole state, and its id is a digest of it: a client that comes back with Last-Event-ID gets no
    state twice.
    """
    watch = await call.server.watches.ready(call.workspace)
    await watch.job(job)
    return event_stream(_events(call, watch, job), heartbeat_s=0)


@operation("GET", f"{WORKSPACE}/events", Permission.READ, media_type="text/event-stream")
async def workspace_events(call: Call) -> Response:
    """Follow a workspace, whoever changes it: one stream tells a page all that it must read again.

    - `state` (WorkspaceState) comes first, and again if a client missed more than the server remembers.
    - `index` (IndexChange): documents were added, updated, removed or queued.
    - `derivation` (DerivationState): one became fresh, stale or missing.
    - `job` (JobStatus): one began, went on, stopped or ended.

    A client that comes back with Last-Event-ID gets what it missed, and nothing if that is nothing. A comment comes
    every 15 seconds while nothing happens. A stream ends after an hour, or with the event `problem` (Problem).
    """
    watch = await call.server.watches.ready(call.workspace)
    return event_stream(_changes(call, watch), heartbeat_s=0)


async def _changes(call: Call, watch: WorkspaceWatch) -> AsyncIterator[bytes]:
    try:
        async with aclosing(watch.changes(call.request.headers.get("last-event-id", ""))) as changes:
            async for events in changes:
                yield events
    except Exception as error:
        call.server.report(error, call.request)
        yield sent_event("problem", call.server.problem(error, call.request))


@operation("POST", f"{WORKSPACE}/jobs/{{job}}/cancel", Permission.WRITE)
async def cancel_job(kb: Quipu, call: Call, job: str) -> JobStatus:
    """Take the documents of a job that still wait out of the queue, or end a refresh.

    Live versions stay, and so does what a refresh has computed: it ends within a second, whichever process works on it.
    """
    server_job = await _job(call, job)
    if server_job.kind == REFRESH:
        state = await call.server.workspaces.state(call.workspace)
        await asyncio.to_thread(state.update_jobs, [job], finished_at=now_text(), stage="", stopped=CANCELLED)
        return await _status(kb, call, await _job(call, job))
    if not server_job.subjects:
        raise InvalidInput("This job has no documents of its own.", remedy="It ends by itself; its results stay.")
    documents = await kb.documents(ids=server_job.subjects)
    await kb.cancel([document.id for document in documents if document.status in WAITING])
    return await _status(kb, call, server_job)


@operation("POST", f"{WORKSPACE}/documents/retry", Permission.WRITE, status=202, is_idempotent=True)
async def retry_documents(kb: Quipu, call: Call, body: DocumentNames) -> JobStatus:
    """Queue failed documents again, and the failed chunks of partly read ones."""
    names = body.documents or tuple(document.id for document in await kb.documents() if document.error)
    await kb.retry(names)
    return await start_job(kb, call, ADD, names)


@operation("POST", f"{WORKSPACE}/refresh", Permission.WRITE, status=202, is_idempotent=True)
async def refresh(kb: Quipu, call: Call, body: RefreshRequest) -> JobStatus:
    """Bring derivations up to date, and compute those that are named; `status` lists them with their cost."""
    return await start_job(kb, call, REFRESH, body.names)


async def _job(call: Call, job_id: str) -> ServerJob:
    state = await call.server.workspaces.state(call.workspace)
    job = await asyncio.to_thread(state.job, job_id)
    if job is None:
        raise unknown_job(job_id)
    return job


async def _events(call: Call, watch: WorkspaceWatch, job_id: str) -> AsyncIterator[bytes]:
    sent = call.request.headers.get("last-event-id", "")
    async with aclosing(watch.looks()) as looks:
        async for is_new in looks:
            if not is_new:
                yield BEAT
                continue
            status = await watch.job(job_id)
            digest = hashlib.sha256(json_bytes(status)).hexdigest()[:16]
            if digest != sent:
                sent = digest
                yield sent_event("job", status, id=digest)
            if status.status in ("finished", "stopped", "cancelled"):
                return


OPERATIONS = operations_of(list_jobs, show_job, job_events, workspace_events, cancel_job, retry_documents, refresh)
