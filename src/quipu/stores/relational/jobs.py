"""Jobs: queued work under leases, and the derivation lease.

A document has at most one job. A newer job replaces an older one, unless it is for the same content.
"""

import os
import socket
import sys
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, case, func, literal, or_, select, union_all

from quipu.model.chunking import chunking_from_json
from quipu.model.delta import DocumentFacts, ExtractionReply, Job, JobFailure
from quipu.model.document import DocumentStatus, SourceDocument
from quipu.model.usage import NO_LIMIT, LedgerSums, SpendingByWorker, SpendingLimit
from quipu.stores.relational import schema as s
from quipu.stores.relational.replies import RequestCoalescer
from quipu.stores.relational.sql import (
    ByValues,
    Transaction,
    insert_rows,
    metadata_from_json,
    n_changed,
    read_meta,
    read_number,
    to_json,
    write_meta,
)

Time = float | ColumnElement[float]  # in seconds since 1970

WAITING = (DocumentStatus.QUEUED, DocumentStatus.REMOVING)
WORKING = (DocumentStatus.PARSING, DocumentStatus.EXTRACTING)

CLAIM_BYTES = 16_000_000  # of documents in one claim, to bound memory

_j = s.job.c
_CURRENT = ByValues(select(_j.rid), _j.rid)
_REMOVALS = ByValues(select(_j.rid, _j.document).where(_j.data.is_(None)), _j.rid)
_UNFINISHED = ByValues(select(_j.rid, _j.document).where(_j.status != DocumentStatus.PARTIAL), _j.document)
_TO_READ = ByValues(select(_j.document).where(_j.status.in_((DocumentStatus.QUEUED, *WORKING))), _j.document)
_CONTENT = ("document", "title", "source", "media_type", "metadata", "chunking", "data")
_N_EQUAL = select(func.count()).select_from(s.job).where(*(_j[name] == bindparam(f"its_{name}") for name in _CONTENT))
_DELETE = ByValues(s.job.delete(), _j.rid)
_DELETE_OF_DOCUMENTS = ByValues(s.job.delete(), _j.document)
_DELETE_REMOVALS = ByValues(s.job.delete().where(_j.data.is_(None)), _j.document)
_FREE = {"owner": "", "lease_until": 0.0}
_FORGOTTEN = -1.0  # the end of the lease of a document that can never be read, whose bytes are not kept

_ENDED: set[str] = set()  # workers of this process that have closed their stores

_DERIVATION_LEASE = "deriving"  # meta key; its value is "UNTIL OWNER", or "" while nobody holds the lease

WORKERS = "workers"  # meta key; its value is that of SpendingByWorker

# Fields of /proc/PID/stat after the program's name, which may contain anything. See proc(5): the name is field 2.
_STATE, _START_TIME = 0, 19
_DEAD_STATES = ("Z", "X")  # killed, but its parent has not waited for it: such a process still accepts signals


def enqueue(connection: Connection, documents: Sequence[SourceDocument], removals: Sequence[str], *, now: str) -> None:
    """Queue documents to read and documents to remove, in place of their earlier jobs.

    A job to read exactly the same stays, whether it waits or is running. So a document that two processes add is read,
    and paid for, once.
    """
    if not documents and not removals:
        return
    row_by_document = {document.id: _job_row(document.id, document, now) for document in documents}
    row_by_document |= {document_id: _job_row(document_id, None, now) for document_id in removals}
    for document_id in _same_as_queued(connection, row_by_document):
        del row_by_document[document_id]
    _DELETE_OF_DOCUMENTS.run(connection, list(row_by_document))
    first = read_number(connection, "job_row") + 1
    rows = [{"rid": first + i, **row} for i, row in enumerate(row_by_document.values())]
    insert_rows(connection, s.job, rows)
    write_meta(connection, "job_row", first + len(rows))


def _same_as_queued(connection: Connection, row_by_document: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return the documents that already have a job with the same content."""
    documents = [row.document for row in _TO_READ.rows(connection, list(row_by_document))]
    contents = {document: {f"its_{k}": row_by_document[document][k] for k in _CONTENT} for document in documents}
    return [document for document in documents if connection.scalar(_N_EQUAL, contents[document])]


def claim(connection: Connection, limit: int, *, owner: str, now_s: Time, until_s: Time) -> list[Job]:
    """Lease the oldest jobs that have no owner, a dead owner on this host, or an expired lease.

    Their documents hold at most CLAIM_BYTES together, unless the first alone holds more.
    """
    is_unfinished = _j.status.in_((*WAITING, *WORKING))
    sizes = select(_j.rid, func.length(_j.data).label("size"), literal("").label("owner")).order_by(_j.rid).limit(limit)
    free = sizes.where(is_unfinished, or_(_j.owner == "", _j.lease_until < now_s))
    owners = select(literal(0), literal(0), _j.owner).where(is_unfinished, _j.owner != "").distinct()
    rows = connection.execute(union_all(select(free.subquery()), owners)).all()
    dead = [row.owner for row in rows if row.owner not in ("", owner) and is_dead(row.owner)]
    if dead:
        is_free = or_(_j.owner == "", _j.owner.in_(dead), _j.lease_until < now_s)
        rows = connection.execute(sizes.where(is_unfinished, is_free)).all()
    rids = _first_within(CLAIM_BYTES, dict(sorted((rid, size or 0) for rid, size, holder in rows if not holder)))
    if not rids:
        return []
    lease = {"owner": owner, "lease_until": until_s, "status": _removing_or(DocumentStatus.PARSING)}
    connection.execute(s.job.update().where(_j.rid.in_(rids)).values(lease))
    return [_job(row) for row in connection.execute(select(s.job).where(_j.rid.in_(rids)).order_by(_j.rid))]


def _first_within(n_bytes: int, sizes: Mapping[int, int]) -> list[int]:
    """Return the first jobs whose documents hold at most `n_bytes` together, but at least one job."""
    totals = zip(sizes, accumulate(sizes.values()), strict=True)
    return [rid for i, (rid, total) in enumerate(totals) if total <= n_bytes or not i]


def update(
    connection: Connection, status: DocumentStatus, job_ids: Collection[int], *, owner: str, until_s: Time
) -> set[int]:
    """Set the status of those jobs that `owner` still holds and return them; QUEUED releases them."""
    is_owned = _j.owner == owner, _j.status.in_((*WAITING, *WORKING)), _j.rid.in_(sorted(job_ids))
    owned = set(connection.execute(select(_j.rid).where(*is_owned)).scalars())
    is_released = status is DocumentStatus.QUEUED
    values = (
        {"status": _removing_or(DocumentStatus.QUEUED), **_FREE}
        if is_released
        else {"status": status, "lease_until": until_s}
    )
    connection.execute(s.job.update().where(*is_owned).values(values))
    return owned


def renew(connection: Connection, owner: str, until_s: float) -> None:
    """Renew the lease of every job of this owner, and its derivation lease."""
    connection.execute(s.job.update().where(_j.owner == owner).values(lease_until=until_s))
    if _derivation_lease(connection)[1] == owner:
        _write_derivation_lease(connection, owner, until_s)


def finish(connection: Connection, jobs: Sequence[int], partial: Sequence[int]) -> None:
    """Delete finished jobs; keep those of partly read documents, so that failed chunks can be tried again."""
    _DELETE.run(connection, jobs)
    if partial:
        connection.execute(s.job.update().where(_j.rid.in_(partial)).values(status=DocumentStatus.PARTIAL, **_FREE))


def fail(connection: Connection, failures: Sequence[JobFailure]) -> None:
    """Mark jobs failed, with the reason; forget the bytes of documents that can never be read."""
    for failure in failures:
        values = {"status": DocumentStatus.FAILED, "error": failure.error, **_FREE}
        if failure.is_final:
            values |= {"data": b"", "lease_until": _FORGOTTEN}
        connection.execute(s.job.update().where(_j.rid == failure.job).values(values))


def current(connection: Connection, jobs: Sequence[int]) -> set[int]:
    """Return those of these jobs that were not replaced or cancelled."""
    return {row.rid for row in _CURRENT.rows(connection, jobs)}


def split_superseded(
    connection: Connection, publish: Sequence[DocumentFacts], replies: Sequence[ExtractionReply]
) -> tuple[list[DocumentFacts], tuple[str, ...]]:
    """Return the documents to publish, and the ids of those whose job was replaced or cancelled.

    A document without a job is always published. Extraction replies are only checked for their jobs.
    """
    document_by_job = {reply.job: reply.document_id for reply in replies if reply.job is not None}
    jobs = current(connection, [*(doc.job for doc in publish if doc.job is not None), *document_by_job])
    superseded = [doc.id for doc in publish if doc.job is not None and doc.job not in jobs]
    superseded += [document for job, document in document_by_job.items() if job not in jobs]
    return [doc for doc in publish if doc.job is None or doc.job in jobs], tuple(dict.fromkeys(superseded))


def cancel(connection: Connection, document_ids: Sequence[str]) -> list[str]:
    """Delete the jobs of these documents, except those of partly read ones; return the documents that had one."""
    documents = [row.document for row in sorted(_UNFINISHED.rows(connection, document_ids))]
    _DELETE_OF_DOCUMENTS.run(connection, documents)
    return documents


def documents_to_remove(connection: Connection, jobs: Sequence[int]) -> list[str]:
    """Return the documents of those of these jobs that are current and for removal."""
    return [row.document for row in sorted(_REMOVALS.rows(connection, jobs))]


def delete_removals(connection: Connection, document_ids: Sequence[str]) -> None:
    """Delete the removal jobs of removed documents; newer jobs of these documents stay."""
    _DELETE_REMOVALS.run(connection, document_ids)


def retry(connection: Connection, document_ids: Sequence[str] | None) -> int:
    """Queue failed and partly failed jobs again; return how many. Those whose bytes are forgotten stay failed."""
    is_failed = _j.status.in_((DocumentStatus.FAILED, DocumentStatus.PARTIAL))
    statement = s.job.update().where(is_failed, _j.lease_until != _FORGOTTEN)
    if document_ids is not None:
        statement = statement.where(_j.document.in_(document_ids))
    return n_changed(connection, statement.values(status=_removing_or(DocumentStatus.QUEUED), error=""))


def _removing_or(status: DocumentStatus) -> Any:
    return case((_j.data.is_(None), DocumentStatus.REMOVING.value), else_=status.value)


def _job_row(document_id: str, document: SourceDocument | None, now: str) -> dict[str, Any]:
    return {
        "document": document_id,
        "status": DocumentStatus.QUEUED if document else DocumentStatus.REMOVING,
        "title": document.title if document else "",
        "source": document.source if document else "",
        "media_type": document.media_type if document else "",
        "metadata": to_json(dict(document.metadata)) if document else "{}",
        "chunking": document.chunking.to_json() if document and document.chunking else "",
        "data": document.content if document else None,
        "error": "",
        "added_at": now,
        **_FREE,
    }


def _job(row: Row[Any]) -> Job:
    if row.data is None:
        return Job(id=row.rid, document_id=row.document, status=DocumentStatus.REMOVING)
    source = SourceDocument(
        id=row.document,
        content=row.data,
        source=row.source,
        media_type=row.media_type,
        title=row.title,
        metadata=metadata_from_json(row.metadata),
        chunking=chunking_from_json(row.chunking) if row.chunking else None,
    )
    return Job(id=row.rid, document_id=row.document, status=DocumentStatus.PARSING, source=source)


def acquire_derivation_lease(connection: Connection, owner: str, *, now_s: float, until_s: float) -> bool:
    """Acquire the lease under which one worker at a time makes derivations, so that no call is paid for twice.

    Returns False if another live worker holds it.
    """
    if _derivation_lease(connection)[1] != owner and is_derivation_leased(connection, now_s=now_s):
        return False
    _write_derivation_lease(connection, owner, until_s)
    return True


def release_all(connection: Connection) -> None:
    """Give back all jobs and the derivation lease, whoever holds them."""
    connection.execute(
        s.job.update()
        .where(_j.status.in_((*WAITING, *WORKING)))
        .values({"status": _removing_or(DocumentStatus.QUEUED)})
    )
    connection.execute(s.job.update().values(_FREE))
    write_meta(connection, _DERIVATION_LEASE, "")
    write_meta(connection, WORKERS, "{}")


def is_derivation_leased(connection: Connection, *, now_s: float) -> bool:
    """Say whether the derivation lease is held, has not expired, and its holder is not known to be dead."""
    until_s, holder = _derivation_lease(connection)
    return bool(holder) and until_s >= now_s and not is_dead(holder)


def release_derivation_lease(connection: Connection, owner: str) -> None:
    """Release the derivation lease if this owner holds it."""
    if _derivation_lease(connection)[1] == owner:
        write_meta(connection, _DERIVATION_LEASE, "")


def _derivation_lease(connection: Connection) -> tuple[float, str]:
    """Return when the derivation lease expires, and its holder."""
    until_s, _, holder = (read_meta(connection, _DERIVATION_LEASE) or "").partition(" ")
    return float(until_s or 0), holder


def _write_derivation_lease(connection: Connection, owner: str, until_s: float) -> None:
    write_meta(connection, _DERIVATION_LEASE, f"{until_s} {owner}")


class RelationalLedger:
    """A WorkerLedger in the database of an index. What comes while a transaction runs shares the next one."""

    def __init__(self, write: Transaction, owner: str, clock_s: ColumnElement[float], lease_s: float) -> None:
        self._write, self._owner, self._clock_s, self.lease_s = write, owner, clock_s, lease_s
        self._requests = RequestCoalescer(self._add_all)

    async def add(self, change: LedgerSums, limit: SpendingLimit = NO_LIMIT) -> LedgerSums:
        return await self._requests.submit((change, limit))

    def settle(self, change: LedgerSums) -> None:
        settling = self._requests.post((change, NO_LIMIT))  # if it fails, the call stays reserved: it counts as spent
        settling.add_done_callback(lambda settled: settled.cancelled() or settled.exception())

    async def leave(self) -> None:
        await self._requests.finish()

        def leave(connection: Connection) -> None:
            workers = SpendingByWorker.from_json(read_meta(connection, WORKERS) or "{}")
            workers.end(workers.entries.keys() & {self._owner})
            write_meta(connection, WORKERS, workers.to_json())

        await self._write(leave)

    async def _add_all(self, changes: Sequence[tuple[LedgerSums, SpendingLimit]]) -> Sequence[LedgerSums]:
        def add(connection: Connection) -> list[LedgerSums]:
            now_s = connection.execute(select(self._clock_s)).scalar_one()
            workers = SpendingByWorker.from_json(read_meta(connection, WORKERS) or "{}")
            others = [(name, end) for name, (end, _) in workers.entries.items() if name and name != self._owner]
            workers.end([name for name, end in others if end < now_s or is_dead(name)])
            sums_before = [workers.add(self._owner, *change, now_s + self.lease_s) for change in changes]
            write_meta(connection, WORKERS, workers.to_json())
            return sums_before

        return await self._write(add)


def new_owner() -> str:
    """Return a name for a worker that other processes on this host can check: HOST/PID/START_TIME/RANDOM."""
    pid = os.getpid()
    return f"{_host()}/{pid}/{_start_time(pid)}/{uuid.uuid4().hex[:8]}"


def end_owner(owner: str) -> None:
    """Note that a worker of this process has closed its store: what it could not give back is free."""
    _ENDED.add(owner)


def is_dead(owner: str) -> bool:
    """Say whether `owner` has closed its store in this process, or was a process of this host that has ended.

    Of owners on other hosts nothing is known: False.
    """
    if owner in _ENDED:
        return True
    host, pid, start_time, _ = owner.split("/")
    return host == _host() and (not _is_running(int(pid)) or _start_time(int(pid)) != start_time)


def _host() -> str:
    """Return a name for the scope of process ids: the machine and, inside a container, its process namespace.

    Machines may share a name, and all have the same number for their outermost namespace.
    """
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/self/ns/pid").readlink().name)
    with suppress(OSError):
        parts.append(Path("/etc/machine-id").read_text().strip())
    return "".join(parts).replace("/", "-")


def _is_running(pid: int) -> bool:
    if sys.platform == "win32":
        return True  # os.kill would end the process there; its lease will expire instead
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _stat(pid, _STATE) not in _DEAD_STATES


def _start_time(pid: int) -> str:
    """Return when a process started, which tells it from an earlier process with the same id."""
    return _stat(pid, _START_TIME)


def _stat(pid: int, field: int) -> str:
    """Return a field of /proc/PID/stat, "" if the system does not provide it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rsplit(") ", 1)[1].split()[field]
