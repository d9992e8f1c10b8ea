"""Paid work: replies of models, kept while a document needs them, and the usage of models.

A document needs an extractor's reply while one of its chunks has that input. It needs the replies to single calls that
were made for it while it stays in the version for which they were made. A reply made from several documents is deleted
with the first of them that is removed or retracts a statement. A reply made from other replies is deleted with the
first of these. A reply that arrives after that is not kept, so nothing derived from removed text survives.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Row, select, tuple_
from sqlalchemy import text as sql_text

from quipu.model.chat import ReplyLifetime, TokenCount
from quipu.model.delta import ExtractionReply
from quipu.model.usage import Stage, UsageRow
from quipu.ports.store import CallReply
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import (
    Backend,
    ByValues,
    Upsert,
    insert_rows,
    read_number,
    write_meta,
)

T = TypeVar("T")
R = TypeVar("R")

FACTS = "facts"  # meta key: the revision of the last change of facts
EXTRACTION = 0  # in place of a document version: the reply is needed while a chunk has this input
QUESTION_DAYS = 90  # how long the text of a question is kept with its cost

# Calls whose subject is a question. The subject of other calls is a document; embedding documents has no subject.
_QUESTION_STAGES = (Stage.KEYWORDS, Stage.RERANK, Stage.ANSWER, Stage.JUDGE, Stage.EMBED)

_d, _r, _f = s.reply_document.c, s.reply.c, s.reply_source.c
_h = _r.input_hash
_PAYLOADS = ByValues(select(_h, _r.payload), _h)
_EXISTING = ByValues(select(_h), _h)
_ADD_DOCUMENTS, _ADD_SOURCES = Upsert(s.reply_document), Upsert(s.reply_source)
_OF_DOCUMENTS = ByValues(select(_d.input_hash), _d.document)
_OF_SEVERAL_DOCUMENTS = ByValues(
    select(_d.input_hash)
    .join_from(s.reply_document, s.reply, _d.input_hash == _h)
    .where(_r.lifetime == ReplyLifetime.ALL_DOCUMENTS.value),
    _d.document,
)
_OWNERS = ByValues(select(_d.input_hash, _d.document), _d.input_hash)
_NEEDED = ByValues(select(_d.input_hash).distinct(), _d.input_hash)
_MADE_FROM = ByValues(select(_f.input_hash).distinct(), _f.source)
_FREE = ByValues(s.reply.update().values(lifetime=ReplyLifetime.FREE.value), _h)
_DELETE_DOCUMENTS = ByValues(s.reply_document.delete(), _d.document)
_DELETE_USES = ByValues(s.reply_document.delete(), tuple_(_d.document, _d.input_hash))
_DELETE_PAYLOADS = ByValues(s.reply.delete(), _h)
_DELETE = [ByValues(table.delete(), table.c.input_hash) for table in (s.reply, s.reply_document, s.reply_source)]
_LIVE = ByValues(select(s.document.c.id, s.document.c.version, s.document.c.stands_since), s.document.c.id)
_QUEUED = ByValues(select(s.job.c.document).where(s.job.c.data.is_not(None)), s.job.c.document)
_OF_REVISION = sql_text(f"SELECT input_hash FROM reply WHERE lifetime = '{ReplyLifetime.REVISION.value}'")

_u = s.usage.c
_ADD_USAGE = Upsert(s.usage, counts=[column.name for column in _u if not column.primary_key])
_USAGE_KEY = (_u.day, _u.stage, _u.model, _u.subject)


def record(connection: Connection, backend: Backend, replies: Sequence[ExtractionReply]) -> None:
    """Keep an extractor's replies, each for its document if that is live or queued.

    A reply with no document is kept until `purge`.
    """
    ids = {reply.document_id for reply in replies}
    live = {row.id for row in _LIVE.rows(connection, sorted(ids))}
    needing = live | {row.document for row in _QUEUED.rows(connection, sorted(ids - live))}
    owned = [reply for reply in replies if reply.document_id in needing]
    _put(connection, {reply.input_hash: reply.payload for reply in reversed(owned)}, ReplyLifetime.DOCUMENTS)
    use(connection, backend, [(reply.document_id, reply.input_hash) for reply in owned])
    free = [reply for reply in replies if not reply.document_id]
    _put(connection, {reply.input_hash: reply.payload for reply in reversed(free)}, ReplyLifetime.FREE)


def keep(connection: Connection, backend: Backend, replies: Sequence[CallReply]) -> None:
    """Keep replies to single calls, except those whose documents, source replies or facts have gone meanwhile.

    A reply made from several documents is not kept if one of them retracted a statement after the request.
    """
    facts_revision = read_number(connection, FACTS)
    stands_since, version = _versions(connection, sorted({owner for reply in replies for owner in _owners(reply)}))
    sources = sorted({source for reply in replies for source in reply.request.source_replies})
    existing_sources = {row.input_hash for row in _EXISTING.rows(connection, sources)}
    use_rows: list[dict[str, Any]] = []
    source_rows: list[dict[str, Any]] = []
    payloads: dict[ReplyLifetime, dict[str, str]] = {}
    for reply in replies:
        input_hash, lifetime = reply.input_hash, reply.request.lifetime
        owners = [owner for owner in _owners(reply) if owner in version]
        has_owners = _is_of_all(reply, stands_since) if lifetime is ReplyLifetime.ALL_DOCUMENTS else bool(owners)
        is_valid = (has_owners or not _owners(reply)) and not _is_older_than(reply, facts_revision)
        if is_valid and existing_sources.issuperset(reply.request.source_replies):
            payloads.setdefault(lifetime, {}).setdefault(input_hash, reply.payload)
            use_rows += [{"document": id_, "input_hash": input_hash, "version": version[id_]} for id_ in owners]
            source_rows += [{"input_hash": input_hash, "source": source} for source in reply.request.source_replies]
    for lifetime, payload_by_hash in payloads.items():
        _put(connection, payload_by_hash, lifetime)
    _ADD_DOCUMENTS.run(connection, backend, use_rows)
    _ADD_SOURCES.run(connection, backend, source_rows)


def _owners(reply: CallReply) -> tuple[str, ...]:
    """Return the documents that need a reply; none if something else ends its lifetime."""
    has_owners = reply.request.lifetime not in (ReplyLifetime.REVISION, ReplyLifetime.FREE)
    return reply.request.documents if has_owners else ()


def _is_older_than(reply: CallReply, revision: int) -> bool:
    """Say whether a reply's lifetime is one revision of the facts, and the facts changed at `revision` or before."""
    made_at = reply.request.revision
    return reply.request.lifetime is ReplyLifetime.REVISION and made_at is not None and made_at < revision


def _is_of_all(reply: CallReply, stands_since: Mapping[str, int]) -> bool:
    """Say whether all documents of a reply are live and retracted nothing since its request.

    `stands_since` is the revision of the last retraction of each live document.
    """
    made_at = reply.request.revision
    return all(
        owner in stands_since and (made_at is None or stands_since[owner] <= made_at) for owner in _owners(reply)
    )


def use(connection: Connection, backend: Backend, uses: Sequence[tuple[str, str]]) -> None:
    """Record that documents need extraction replies: pairs of document id and input hash."""
    rows = [{"document": document, "input_hash": input_hash, "version": EXTRACTION} for document, input_hash in uses]
    _ADD_DOCUMENTS.run(connection, backend, rows)


def read(connection: Connection, input_hashes: Sequence[str]) -> dict[str, str]:
    """Return the replies to these inputs; a damaged one is left out, so that it is requested again."""
    payload_by_hash: dict[str, str] = {}
    for row in _PAYLOADS.rows(connection, input_hashes):
        with suppress(zlib.error, UnicodeDecodeError):
            payload_by_hash[row.input_hash] = inflate(row.payload)
    return payload_by_hash


def drop_documents(connection: Connection, document_ids: Sequence[str]) -> None:
    """Delete the replies that only these documents need, and those made from them together with others."""
    drop_joint(connection, document_ids)
    hashes = {row.input_hash for row in _OF_DOCUMENTS.rows(connection, document_ids)}
    _DELETE_DOCUMENTS.run(connection, document_ids)
    _drop(connection, _unneeded(connection, hashes))


def n_removed_with(connection: Connection, document_ids: Sequence[str]) -> int:
    """Return how many replies a commit that removes these documents deletes: here, and as its facts change."""
    joint = {row.input_hash for row in _OF_SEVERAL_DOCUMENTS.rows(connection, document_ids)}
    hashes = {row.input_hash for row in _OF_DOCUMENTS.rows(connection, document_ids)}
    others = _OWNERS.rows(connection, sorted(hashes))
    shared = {row.input_hash for row in others if row.document not in frozenset(document_ids)}
    of_revision = set(connection.execute(_OF_REVISION).scalars())
    unneeded = _with_those_made_from(connection, joint | (hashes - shared) | of_revision)
    return len(_EXISTING.rows(connection, sorted(unneeded)))


def drop_joint(connection: Connection, document_ids: Sequence[str]) -> None:
    """Delete the replies made from any of these documents together with others."""
    _drop(connection, {row.input_hash for row in _OF_SEVERAL_DOCUMENTS.rows(connection, document_ids)})


def release(connection: Connection, document_ids: Sequence[str]) -> None:
    """Let `purge` delete the replies that only these documents need, except for live documents."""
    live, _ = _versions(connection, document_ids)
    not_live = [document_id for document_id in document_ids if document_id not in live]
    hashes = {row.input_hash for row in _OF_DOCUMENTS.rows(connection, not_live)}
    _DELETE_DOCUMENTS.run(connection, not_live)
    _FREE.run(connection, sorted(_unneeded(connection, hashes)))


def drop_of_revision(connection: Connection, revision: int) -> None:
    """Record that facts change at this revision, and delete the replies that hold only until then."""
    write_meta(connection, FACTS, revision)
    _drop(connection, set(connection.execute(_OF_REVISION).scalars()))


def purge(connection: Connection) -> int:
    """Delete the replies that no live document and no unfinished job needs; return how many.

    Replies made from several documents stay: all these documents are live, and a summary may need them again.
    """
    c, d = s.chunk.c, s.document.c
    needed = {
        (row.id, row.input_hash, EXTRACTION)
        for row in connection.execute(select(d.id, c.input_hash).join_from(s.document, s.chunk, c.document == d.rid))
    }
    version = {row.id: row.version for row in connection.execute(select(d.id, d.version))}
    queued = set(connection.execute(select(s.job.c.document)).scalars())
    unneeded: list[tuple[str, str]] = []
    uses = select(_d.document, _d.input_hash, _d.version, _r.lifetime).outerjoin(s.reply, _d.input_hash == _h)
    for row in connection.execute(uses).all():
        is_of_version = row.version != EXTRACTION and row.version == version.get(row.document)
        is_needed = is_of_version or (row.document, row.input_hash, row.version) in needed
        if row.document not in queued and row.lifetime != ReplyLifetime.ALL_DOCUMENTS and not is_needed:
            unneeded.append((row.document, row.input_hash))
    _DELETE_USES.run(connection, unneeded)
    owned = select(_d.input_hash).union(select(_f.input_hash))
    unowned = select(_h).where(_r.lifetime != ReplyLifetime.REVISION.value, _h.not_in(owned))
    return _drop(connection, set(connection.execute(unowned).scalars()))


def _put(connection: Connection, payload_by_hash: Mapping[str, str], lifetime: ReplyLifetime) -> None:
    """Write payloads, except where there is a readable one already."""
    existing = read(connection, list(payload_by_hash))
    new = [input_hash for input_hash in payload_by_hash if input_hash not in existing]
    _DELETE_PAYLOADS.run(connection, new)
    rows = [{"input_hash": h, "payload": deflate(payload_by_hash[h]), "lifetime": lifetime.value} for h in new]
    insert_rows(connection, s.reply, rows)


def _versions(connection: Connection, document_ids: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return `stands_since` of each live document, and the version of each live or queued document.

    The version of a queued document is the one that its job will publish.
    """
    rows = _LIVE.rows(connection, document_ids)
    live = {row.id: row.version for row in rows}
    queued = {row.document for row in _QUEUED.rows(connection, document_ids)}
    ids: Iterable[str] = live.keys() | queued
    versions = {document_id: live.get(document_id, 0) + (document_id in queued) for document_id in ids}
    return {row.id: row.stands_since for row in rows}, versions


def _unneeded(connection: Connection, input_hashes: set[str]) -> set[str]:
    return input_hashes - {row.input_hash for row in _NEEDED.rows(connection, sorted(input_hashes))}


def _drop(connection: Connection, input_hashes: Collection[str]) -> int:
    """Delete replies with all replies made from them, transitively; return how many there were."""
    ordered = sorted(_with_those_made_from(connection, input_hashes))
    n_dropped = len(_EXISTING.rows(connection, ordered))
    for delete in _DELETE:
        delete.run(connection, ordered)
    return n_dropped


def _with_those_made_from(connection: Connection, input_hashes: Collection[str]) -> set[str]:
    hashes: set[str] = set()
    frontier = set(input_hashes)
    while frontier:
        hashes |= frontier
        frontier = {row.input_hash for row in _MADE_FROM.rows(connection, sorted(frontier))} - hashes
    return hashes


def add_usage(connection: Connection, backend: Backend, rows: Sequence[UsageRow]) -> None:
    """Add to the usage so far."""
    _ADD_USAGE.run(connection, backend, [_usage_values(row) for row in rows])


def read_usage(connection: Connection, since: str, until: str) -> list[UsageRow]:
    """Return the usage of the days from `since` to `until`, both included; "" for no limit."""
    query = select(s.usage).order_by(*_USAGE_KEY)
    if since:
        query = query.where(_u.day >= since)
    if until:
        query = query.where(_u.day <= until)
    return [_usage_row(row) for row in connection.execute(query)]


def purge_usage(connection: Connection, backend: Backend, today: date) -> int:
    """Remove the subject of usage rows whose document is gone or whose question is old; return how many rows.

    The counts are added to the rows without a subject. A document is gone if it is neither live nor queued, a question
    is old after QUESTION_DAYS.
    """
    documents = select(s.document.c.id).union(select(s.job.c.document))
    is_question = _u.stage.in_(_QUESTION_STAGES)
    first_day = (today - timedelta(days=QUESTION_DAYS)).isoformat()
    is_gone = (~is_question & _u.subject.not_in(documents)) | (is_question & (_u.day < first_day))
    rows = connection.execute(select(s.usage).where(_u.subject != "", is_gone).order_by(*_USAGE_KEY)).all()
    connection.execute(s.usage.delete().where(_u.subject != "", is_gone))
    _ADD_USAGE.run(connection, backend, [{**row._asdict(), "subject": ""} for row in rows])
    return len(rows)


def _usage_values(row: UsageRow) -> dict[str, Any]:
    return {
        "day": row.day,
        "stage": row.stage.value,
        "model": row.model,
        "subject": row.subject,
        "n_calls": row.n_calls,
        "input_tokens": row.tokens.input,
        "cached_tokens": row.tokens.cached,
        "output_tokens": row.tokens.output,
        "cost": row.cost,
        "n_unpriced": row.n_unpriced,
        "n_interrupted": row.n_interrupted,
        "interrupted_input_tokens": row.interrupted_tokens.input,
        "interrupted_cached_tokens": row.interrupted_tokens.cached,
        "interrupted_output_tokens": row.interrupted_tokens.output,
        "interrupted_cost": row.interrupted_cost,
    }


def _usage_row(row: Row[Any]) -> UsageRow:
    return UsageRow(
        day=row.day,
        stage=Stage(row.stage),
        model=row.model,
        subject=row.subject,
        n_calls=row.n_calls,
        tokens=TokenCount(input=row.input_tokens, cached=row.cached_tokens, output=row.output_tokens),
        cost=row.cost,
        n_unpriced=row.n_unpriced,
        n_interrupted=row.n_interrupted,
        interrupted_tokens=TokenCount(
            input=row.interrupted_input_tokens,
            cached=row.interrupted_cached_tokens,
            output=row.interrupted_output_tokens,
        ),
        interrupted_cost=row.interrupted_cost,
    )


class RequestCoalescer(Generic[T, R]):
    """Runs the requests that arrive during one call together in the next call.

    Requests that come slowly run one by one, and requests that come fast run in batches. A request runs even when the
    task that waits for it is cancelled.
    """

    def __init__(self, run: Callable[[Sequence[T]], Awaitable[Sequence[R]]]) -> None:
        self._run = run
        self._pending: list[tuple[T, asyncio.Future[R]]] = []
        self._task: asyncio.Task[None] | None = None

    async def submit(self, request: T) -> R:
        """Return the result of `run` for this request, or raise its exception."""
        return await self.post(request)

    def post(self, request: T) -> asyncio.Future[R]:
        """Have a request run after those that were made before; the future gets its result or exception."""
        result: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._pending.append((request, result))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run_all())
        return result

    async def finish(self) -> None:
        """Wait until no request is pending."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _run_all(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            try:
                values = await self._run([request for request, _ in batch])
            except Exception as error:
                for _, result in batch:
                    if not result.done():  # its task was not cancelled
                        result.set_exception(error)
            else:
                for (_, result), value in zip(batch, values, strict=True):
                    if not result.done():
                        result.set_result(value)


def deflate(text: str) -> bytes:
    """Compress a text."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6)


def inflate(packed: bytes) -> str:
    """Return the text that `deflate` compressed."""
    return zlib.decompress(packed).decode("utf-8", "surrogatepass")
