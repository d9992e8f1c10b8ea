"""Jobs: work that goes on after a reply. Their progress is read from the index, so every process knows it.

A job is a list of documents in the queue of the index, or of derivations to refresh. It has ended when none of its
documents waits any more. Killed work continues at the next start, because the queue is part of the index.
"""

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from quipu.engine import Quipu
from quipu.errors import InvalidInput, NotFound
from quipu.model.document import Document
from quipu.model.usage import UsageRow, total
from quipu.server.access import Permission
from quipu.server.job_runners import ADD, REFRESH, WAITING, now_text
from quipu.server.operations import Call, WireBody, operation, operations_of
from quipu.server.questions import WORKSPACE
from quipu.server.wire import event_stream, json_bytes, sent_event
from quipu.stores.sqlite.server_state import ServerJob

POLL_S = 0.5  # between two looks at a job whose events are sent


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A job and how far it is.

    `status` is "waiting", "running", "stopped" (see `stopped` for the reason; it continues with the next work) or
    "finished". `documents` counts the documents of the job by status, and `failed` are (document, error). `stage`,
    `n_done` and `n_total` are the progress of all work in this workspace. `tokens` and `cost` (in millionths of the
    currency) are what models took for these documents so far. `seconds_left` is an estimate, None where there is none.
    """

    id: str
    kind: str
    status: str
    created_at: str
    finished_at: str
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


async def start_job(kb: Quipu, call: Call, kind: str, subjects: Sequence[str]) -> JobStatus:
    """Remember a job of the workspace of a call, begin it, and return how far it is."""
    job = ServerJob(id=secrets.token_hex(8), kind=kind, subjects=tuple(subjects), created_at=now_text())
    state = await call.server.workspaces.state(call.workspace)
    await asyncio.to_thread(state.add_job, job)
    call.server.jobs.start(call.workspace)
    [status] = await _statuses(kb, [job])
    return status


async def _statuses(kb: Quipu, jobs: Sequence[ServerJob]) -> list[JobStatus]:
    """Return how far some jobs are, as the index says: its documents and what was spent are read once for all."""
    names = {name for job in jobs if job.kind == ADD for name in job.subjects}
    document_by_id = {document.id: document for document in await kb.documents(ids=sorted(names))} if names else {}
    rows = await kb.usage(min((job.created_at[:10] for job in jobs), default=""))
    rows_by_subject: dict[str, list[UsageRow]] = {}
    for row in rows:
        rows_by_subject.setdefault(row.subject, []).append(row)
    return [_status(job, document_by_id, rows_by_subject) for job in jobs]


def _status(
    job: ServerJob, document_by_id: Mapping[str, Document], rows_by_subject: Mapping[str, Sequence[UsageRow]]
) -> JobStatus:
    subjects = job.subjects if job.kind == ADD else ()
    documents = [document_by_id[name] for name in subjects if name in document_by_id]
    first_day = job.created_at[:10]
    spent = [row for name in subjects for row in rows_by_subject.get(name, ()) if row.day >= first_day]
    counts = Counter(document.status for document in documents)
    n_waiting = sum(counts[status] for status in WAITING)
    status = "finished" if job.finished_at else "stopped" if job.stopped else "running" if job.started_at else "waiting"
    sums = total(spent) if spent else None
    return JobStatus(
        id=job.id,
        kind=job.kind,
        status=status,
        created_at=job.created_at,
        finished_at=job.finished_at,
        subjects=job.subjects,
        documents={status.value: n for status, n in sorted(counts.items())},
        failed=tuple((document.id, document.error) for document in documents if document.error),
        stage=job.stage,
        n_done=job.n_done,
        n_total=job.n_total,
        tokens=sums.tokens.input + sums.tokens.output if sums else 0,
        cost=sums.cost if sums else 0,
        seconds_left=_seconds_left(job, len(documents), n_waiting),
        stopped=job.stopped,
    )


def _seconds_left(job: ServerJob, n_documents: int, n_waiting: int) -> float | None:
    """Return how long the documents that wait will take if they take as long as those that are finished."""
    n_finished = n_documents - n_waiting
    if job.finished_at or not job.started_at or not n_finished or not n_waiting:
        return None
    seconds = (datetime.now(UTC) - datetime.fromisoformat(job.started_at)).total_seconds()
    return round(seconds / n_finished * n_waiting, 1)


class DocumentNames(WireBody):
    """Documents by their ids; none: all of them."""

    documents: tuple[str, ...] = ()


class RefreshRequest(WireBody):
    """The derivations to refresh; none: those that exist."""

    names: tuple[str, ...] = ()


@operation("GET", f"{WORKSPACE}/jobs", Permission.READ)
async def list_jobs(
    kb: Quipu, call: Call, *, k: Annotated[int, Field(ge=1, le=1_000)] = 100, unfinished: bool = False
) -> list[JobStatus]:
    """List the latest jobs and how far they are, the newest first."""
    state = await call.server.workspaces.state(call.workspace)
    jobs = await asyncio.to_thread(partial(state.jobs, k=k, is_unfinished=unfinished))
    return await _statuses(kb, jobs)


@operation("GET", f"{WORKSPACE}/jobs/{{job}}", Permission.READ)
async def show_job(kb: Quipu, call: Call, job: str) -> JobStatus:
    """Return a job and how far it is."""
    [status] = await _statuses(kb, [await _job(call, job)])
    return status


@operation("GET", f"{WORKSPACE}/jobs/{{job}}/events", Permission.READ, media_type="text/event-stream")
async def job_events(call: Call, job: str) -> Response:
    """Follow a job: an event `job` whenever something changed, the last one when it has finished or stopped.

    Each event is the whole state, and its id is a digest of it: a client that comes back with Last-Event-ID gets no
    state twice.
    """
    await _job(call, job)
    return event_stream(_events(call, job))


@operation("POST", f"{WORKSPACE}/jobs/{{job}}/cancel", Permission.WRITE)
async def cancel_job(kb: Quipu, call: Call, job: str) -> JobStatus:
    """Take the documents of a job that still wait out of the queue; live versions stay."""
    server_job = await _job(call, job)
    if server_job.kind != ADD or not server_job.subjects:
        raise InvalidInput("This job has no documents of its own.", remedy="It ends by itself; its results stay.")
    documents = await kb.documents(ids=server_job.subjects)
    await kb.cancel([document.id for document in documents if document.status in WAITING])
    [status] = await _statuses(kb, [server_job])
    return status


@operation("POST", f"{WORKSPACE}/documents/retry", Permission.WRITE, status=202)
async def retry_documents(kb: Quipu, call: Call, body: DocumentNames) -> JobStatus:
    """Queue failed documents again, and the failed chunks of partly read ones."""
    names = body.documents or tuple(document.id for document in await kb.documents() if document.error)
    await kb.retry(names)
    return await start_job(kb, call, ADD, names)


@operation("POST", f"{WORKSPACE}/refresh", Permission.WRITE, status=202)
async def refresh(kb: Quipu, call: Call, body: RefreshRequest) -> JobStatus:
    """Bring derivations up to date, and compute those that are named; `status` lists them with their cost."""
    return await start_job(kb, call, REFRESH, body.names)


async def _job(call: Call, job_id: str) -> ServerJob:
    state = await call.server.workspaces.state(call.workspace)
    job = await asyncio.to_thread(state.job, job_id)
    if job is None:
        raise NotFound(f"There is no job {job_id!r}.", remedy="GET …/jobs lists the latest.")
    return job


async def _events(call: Call, job_id: str) -> AsyncIterator[bytes]:
    sent = call.request.headers.get("last-event-id", "")
    while True:
        async with call.use(call.workspace) as kb:
            [status] = await _statuses(kb, [await _job(call, job_id)])
        digest = hashlib.sha256(json_bytes(status)).hexdigest()[:16]
        if digest != sent:
            sent = digest
            yield sent_event("job", status, id=digest)
        if status.status in ("finished", "stopped"):
            return
        await asyncio.sleep(POLL_S)


OPERATIONS = operations_of(list_jobs, show_job, job_events, cancel_job, retry_documents, refresh)
