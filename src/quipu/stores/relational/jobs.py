"""Jobs: queued work with leases. A document has at most one job; newer work replaces older, the same leaves it."""

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, func, or_, select

from quipu.model.chunking import chunking_from_json
from quipu.model.delta import DocumentFacts, ExtractionReply, Job, JobFailure
from quipu.model.document import DocumentStatus, Metadata, SourceDocument
from quipu.stores.relational import meta
from quipu.stores.relational import schema as s
from quipu.stores.relational.lease import is_dead
from quipu.stores.relational.sql import ByValues, insert_rows, to_json

WAITING = (DocumentStatus.QUEUED, DocumentStatus.REMOVING)
WORKING = (DocumentStatus.PARSING, DocumentStatus.EXTRACTING)

CLAIM_BYTES = 16_000_000  # of documents handed out at once, to keep memory bounded

_j = s.job.c
_CURRENT = ByValues(select(_j.rid), _j.rid)
_REMOVALS = ByValues(select(_j.rid, _j.document).where(_j.data.is_(None)), _j.rid)
_UNFINISHED = ByValues(select(_j.rid, _j.document).where(_j.status != DocumentStatus.PARTIAL), _j.document)
_READING = ByValues(select(_j.document).where(_j.status.in_((DocumentStatus.QUEUED, *WORKING))), _j.document)
_CONTENT = ("document", "title", "source", "media_type", "metadata", "chunking", "data")
_IS_SAME = select(func.count()).select_from(s.job).where(*(_j[name] == bindparam(f"its_{name}") for name in _CONTENT))
_DROP = ByValues(s.job.delete(), _j.rid)
_DROP_OF = ByValues(s.job.delete(), _j.document)
_DROP_REMOVALS = ByValues(s.job.delete().where(_j.data.is_(None)), _j.document)


def enqueue(connection: Connection, documents: Sequence[SourceDocument], removals: Sequence[str], *, now: str) -> None:
    """Queue documents to read and documents to remove, in place of any earlier job of theirs.

    A job to read the same that waits, or is held by whoever it is, is left as it is: what two processes are told to add
    is read, and paid for, once.
    """
    if not documents and not removals:
        return
    latest = {document.id: _job_row(document.id, document, now) for document in documents}
    latest |= {document_id: _job_row(document_id, None, now) for document_id in removals}
    for document_id in _under_way(connection, latest):
        del latest[document_id]
    rows = list(latest.values())
    _DROP_OF.run(connection, list(latest))
    first = meta.number(connection, "job_row") + 1
    insert_rows(connection, s.job, [{"rid": first + i, **row} for i, row in enumerate(rows)])
    meta.put(connection, "job_row", first + len(rows))


def _under_way(connection: Connection, wanted: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return the documents for which just this is queued or being done already."""
    found = [row.document for row in _READING.rows(connection, list(wanted))]
    return [each for each in found if connection.scalar(_IS_SAME, {f"its_{k}": wanted[each][k] for k in _CONTENT})]


def claim(connection: Connection, limit: int, *, owner: str, now_s: float, lease_s: float) -> list[Job]:
    """Take the oldest jobs nobody works on: unowned, of a dead process of this host, or with an expired lease.

    They hold CLAIM_BYTES at most, but for one that alone holds more.
    """
    j = s.job.c
    in_progress = j.status.in_((*WAITING, *WORKING))
    owners = connection.execute(select(j.owner).where(in_progress, j.owner != "").distinct()).scalars()
    dead = [name for name in owners if name != owner and is_dead(name)]
    is_free = or_(j.owner == "", j.owner.in_(dead), j.lease_until < now_s)
    sizes = select(j.rid, func.length(j.data).label("size")).where(in_progress, is_free).order_by(j.rid).limit(limit)
    chosen = _within(CLAIM_BYTES, connection.execute(sizes).all())
    rows = connection.execute(select(s.job).where(j.rid.in_(chosen)).order_by(j.rid)).all()
    for row in rows:
        status = DocumentStatus.REMOVING if row.data is None else DocumentStatus.PARSING
        lease = {"owner": owner, "lease_until": now_s + lease_s, "status": status}
        connection.execute(s.job.update().where(j.rid == row.rid).values(lease))
    return [_job(row) for row in rows]


def _within(n_bytes: int, jobs: Sequence[Any]) -> list[int]:
    """Return the first jobs whose documents hold at most `n_bytes`, one at least."""
    ids, sizes = [job.rid for job in jobs], (job.size or 0 for job in jobs)
    return [rid for index, (rid, n) in enumerate(zip(ids, accumulate(sizes), strict=True)) if n <= n_bytes or not index]


def advance(
    connection: Connection, jobs: Sequence[int], status: DocumentStatus, *, owner: str, now_s: float, lease_s: float
) -> set[int]:
    """Record a stage and renew the lease of jobs this owner still holds; return which these are."""
    j = s.job.c
    held = j.rid.in_(jobs), j.owner == owner
    connection.execute(s.job.update().where(*held).values(status=status, lease_until=now_s + lease_s))
    return set(connection.execute(select(j.rid).where(*held)).scalars())


def renew(connection: Connection, owner: str, until: float) -> None:
    """Renew the lease of every job this owner holds."""
    connection.execute(s.job.update().where(s.job.c.owner == owner).values(lease_until=until))


def release(connection: Connection, owner: str) -> None:
    """Give back whatever this owner still holds."""
    j = s.job.c
    held = select(j.rid, j.data.is_(None).label("is_removal")).where(
        j.owner == owner, j.status.in_((*WAITING, *WORKING))
    )
    for row in connection.execute(held).all():
        status = DocumentStatus.REMOVING if row.is_removal else DocumentStatus.QUEUED
        free = {"owner": "", "lease_until": 0.0, "status": status}
        connection.execute(s.job.update().where(j.rid == row.rid).values(free))


def finish(connection: Connection, jobs: Sequence[int], partial: Sequence[int]) -> None:
    """Delete finished jobs; those of partly read documents stay, so that the rest can be tried again."""
    _DROP.run(connection, jobs)
    if partial:
        done = {"status": DocumentStatus.PARTIAL, "owner": "", "lease_until": 0.0}
        connection.execute(s.job.update().where(s.job.c.rid.in_(partial)).values(done))


def fail(connection: Connection, failures: Sequence[JobFailure]) -> None:
    """Mark jobs failed, with the reason."""
    for failure in failures:
        failed = {"status": DocumentStatus.FAILED, "error": failure.error, "owner": "", "lease_until": 0.0}
        connection.execute(s.job.update().where(s.job.c.rid == failure.job).values(failed))


def current(connection: Connection, jobs: Sequence[int]) -> set[int]:
    """Return which of these jobs have not been replaced or cancelled."""
    return {row.rid for row in _CURRENT.rows(connection, jobs)}


def still_wanted(
    connection: Connection, publish: Sequence[DocumentFacts]
) -> tuple[list[DocumentFacts], tuple[str, ...]]:
    """Return the documents whose jobs are current, or that come without one; and the others' ids."""
    ours = current(connection, [doc.job for doc in publish if doc.job is not None])
    wanted = [doc for doc in publish if doc.job is None or doc.job in ours]
    return wanted, tuple(doc.id for doc in publish if doc.job is not None and doc.job not in ours)


def given_up(connection: Connection, extracted: Sequence[ExtractionReply]) -> tuple[str, ...]:
    """Return the documents whose jobs, for which replies came, have been replaced or cancelled."""
    document_by_job = {reply.job: reply.document_id for reply in extracted if reply.job is not None}
    ours = current(connection, list(document_by_job))
    return tuple(document for job, document in document_by_job.items() if job not in ours)


def cancel(connection: Connection, document_ids: Sequence[str]) -> list[str]:
    """Drop the jobs of these documents; return whose were dropped. What is left of a partly read one stays."""
    rows = sorted(_UNFINISHED.rows(connection, document_ids))
    _DROP_OF.run(connection, [row.document for row in rows])
    return [row.document for row in rows]


def removals(connection: Connection, jobs: Sequence[int]) -> list[str]:
    """Return the documents these jobs are still to remove."""
    return [row.document for row in sorted(_REMOVALS.rows(connection, jobs))]


def cancel_removals(connection: Connection, document_ids: Sequence[str]) -> None:
    """Delete the removal jobs of documents that have been removed; newer work on them stays."""
    _DROP_REMOVALS.run(connection, document_ids)


def retry(connection: Connection, document_ids: Sequence[str] | None) -> int:
    """Queue failed and partly failed jobs again; return how many."""
    j = s.job.c
    chosen = s.job.update().where(j.status.in_((DocumentStatus.FAILED, DocumentStatus.PARTIAL)))
    if document_ids is not None:
        chosen = chosen.where(j.document.in_(document_ids))
    status = case((j.data.is_(None), DocumentStatus.REMOVING.value), else_=DocumentStatus.QUEUED.value)
    return connection.execute(chosen.values(status=status, error="")).rowcount


def metadata_from_json(text: str) -> Metadata:
    """Return metadata as it was given: arrays become tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(text).items()}


def _job_row(document_id: str, document: SourceDocument | None, now: str) -> dict[str, Any]:
    return {
        "document": document_id,
        "status": DocumentStatus.QUEUED if document else DocumentStatus.REMOVING,
        "title": document.title if document else "",
        "source": document.source if document else "",
        "media_type": document.media_type if document else "",
        "metadata": to_json(dict(document.metadata)) if document else "{}",
        "chunking": document.chunking.to_json() if document and document.chunking else "",
        "data": document.data if document else None,
        "error": "",
        "owner": "",
        "lease_until": 0.0,
        "added_at": now,
    }


def _job(row: Row[Any]) -> Job:
    if row.data is None:
        return Job(id=row.rid, document_id=row.document, status=DocumentStatus.REMOVING)
    source = SourceDocument(
        id=row.document,
        data=row.data,
        source=row.source,
        media_type=row.media_type,
        title=row.title,
        metadata=metadata_from_json(row.metadata),
        chunking=chunking_from_json(row.chunking) if row.chunking else None,
    )
    return Job(id=row.rid, document_id=row.document, status=DocumentStatus.PARSING, source=source)
