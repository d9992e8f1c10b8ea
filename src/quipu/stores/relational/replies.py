"""Replies: paid work, kept while a document needs it.

A document needs the reply of an extractor while one of its chunks has that input, and the replies to single calls made
for it while it stays in the version they were made for. What was made from several documents together goes with the
first that goes or takes something back, and what was made from other replies with the first of these, so that nothing
of what is removed is left: whatever arrives later than that is not kept.
"""

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, tuple_
from sqlalchemy import text as sql_text

from quipu.model.chat import ChatRequest, ReplyLifetime
from quipu.model.delta import ExtractionReply
from quipu.stores.relational import meta
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.sql import ByValues, Upsert, deflate, inflate, insert_rows

FACTS = "facts"  # the revision of the last change of facts

EXTRACTION = 0  # in place of a version: needed while a chunk has this input

_u, _r, _f = s.reply_document.c, s.reply.c, s.reply_source.c
_h = _r.input_hash
_READ = ByValues(select(_h, _r.payload), _h)
_KEPT = ByValues(select(_h), _h)
_NEED, _MADE = Upsert(s.reply_document), Upsert(s.reply_source)
_ASKED_FOR = ByValues(select(_u.input_hash), _u.document)
_JOINT = ByValues(
    select(_u.input_hash)
    .join_from(s.reply_document, s.reply, _u.input_hash == _h)
    .where(_r.lifetime == ReplyLifetime.ALL_DOCUMENTS.value),
    _u.document,
)
_USED = ByValues(select(_u.input_hash).distinct(), _u.input_hash)
_MADE_FROM = ByValues(select(_f.input_hash).distinct(), _f.source)
_RELEASE = ByValues(s.reply.update().values(lifetime=ReplyLifetime.FREE.value), _h)
_FORGET_DOCUMENTS = ByValues(s.reply_document.delete(), _u.document)
_FORGET_USES = ByValues(s.reply_document.delete(), tuple_(_u.document, _u.input_hash))
_DROP_PAYLOADS = ByValues(s.reply.delete(), _h)
_DROP = [ByValues(table.delete(), table.c.input_hash) for table in (s.reply, s.reply_document, s.reply_source)]
_LIVE = ByValues(select(s.document.c.id, s.document.c.version, s.document.c.stands_since), s.document.c.id)
_QUEUED = ByValues(select(s.job.c.document).where(s.job.c.data.is_not(None)), s.job.c.document)
_OF_REVISION = sql_text(f"SELECT input_hash FROM reply WHERE lifetime = '{ReplyLifetime.REVISION.value}'")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReply:
    """A model's reply to a single call, and what was asked."""

    input_hash: str
    payload: str
    request: ChatRequest

    @property
    def owners(self) -> tuple[str, ...]:
        """The documents it goes with: none where something else ends it."""
        is_of_none = self.request.lifetime in (ReplyLifetime.REVISION, ReplyLifetime.FREE)
        return () if is_of_none else self.request.documents

    def is_older_than(self, revision: int) -> bool:
        """Say whether it is to go with facts that have changed by this revision."""
        made_at = self.request.revision
        return self.request.lifetime is ReplyLifetime.REVISION and made_at is not None and made_at < revision

    def is_of_all(self, stands_since: Mapping[str, int]) -> bool:
        """Say whether all its documents are live and still say what they said, given since when each does."""
        made_at = self.request.revision
        return all(each in stands_since and (made_at is None or stands_since[each] <= made_at) for each in self.owners)


def record(connection: Connection, backend: Backend, replies: Sequence[ExtractionReply]) -> None:
    """Keep an extractor's replies, each for the document it was asked for, unless that is gone by now, or for none."""
    _, known = _versions(connection, sorted({reply.document_id for reply in replies}))
    owned = [reply for reply in replies if reply.document_id in known]
    _put(connection, {reply.input_hash: reply.payload for reply in reversed(owned)}, ReplyLifetime.DOCUMENTS)
    use(connection, backend, [(reply.document_id, reply.input_hash) for reply in owned])
    free = [reply for reply in replies if not reply.document_id]
    _put(connection, {reply.input_hash: reply.payload for reply in reversed(free)}, ReplyLifetime.FREE)


def keep(connection: Connection, backend: Backend, replies: Sequence[CallReply]) -> None:
    """Keep replies to single calls; not those for documents, from replies, or of facts that are gone by now.

    One made from what several documents say is of facts that are gone once one of them takes something back.
    """
    since = meta.number(connection, FACTS)
    stands_since, version = _versions(connection, sorted({each for reply in replies for each in reply.owners}))
    sources = sorted({each for reply in replies for each in reply.request.made_from})
    there = {row.input_hash for row in _KEPT.rows(connection, sources)}
    uses: list[dict[str, Any]] = []
    made: list[dict[str, Any]] = []
    payloads: dict[ReplyLifetime, dict[str, str]] = {}
    for reply in replies:
        owners, lifetime = [each for each in reply.owners if each in version], reply.request.lifetime
        is_wanted = reply.is_of_all(stands_since) if lifetime is ReplyLifetime.ALL_DOCUMENTS else bool(owners)
        is_wanted = (is_wanted or not reply.owners) and not reply.is_older_than(since)
        if is_wanted and there.issuperset(reply.request.made_from):
            payloads.setdefault(lifetime, {}).setdefault(reply.input_hash, reply.payload)
            uses += [{"document": each, "input_hash": reply.input_hash, "version": version[each]} for each in owners]
            made += [{"input_hash": reply.input_hash, "source": each} for each in reply.request.made_from]
    for lifetime, payload_by_hash in payloads.items():
        _put(connection, payload_by_hash, lifetime)
    _NEED.run(connection, backend, uses)
    _MADE.run(connection, backend, made)


def use(connection: Connection, backend: Backend, uses: Sequence[tuple[str, str]]) -> None:
    """Note that documents need an extractor's replies kept before: (document id, input hash)."""
    rows = [{"document": document, "input_hash": input_hash, "version": EXTRACTION} for document, input_hash in uses]
    _NEED.run(connection, backend, rows)


def read(connection: Connection, input_hashes: Sequence[str]) -> dict[str, str]:
    """Return the kept replies; one that is damaged is left out, so that it is asked for again."""
    found: dict[str, str] = {}
    for row in _READ.rows(connection, input_hashes):
        with suppress(zlib.error, UnicodeDecodeError):
            found[row.input_hash] = inflate(row.payload)
    return found


def drop_documents(connection: Connection, document_ids: Sequence[str]) -> None:
    """Drop the replies only these documents needed, and those made from them and others together."""
    drop_joint(connection, document_ids)
    asked = {row.input_hash for row in _ASKED_FOR.rows(connection, document_ids)}
    _FORGET_DOCUMENTS.run(connection, document_ids)
    _drop(connection, asked - {row.input_hash for row in _USED.rows(connection, sorted(asked))})


def drop_joint(connection: Connection, document_ids: Sequence[str]) -> None:
    """Drop the replies made from any of these documents and others together."""
    _drop(connection, {row.input_hash for row in _JOINT.rows(connection, document_ids)})


def release(connection: Connection, document_ids: Sequence[str]) -> None:
    """Let `purge` have the replies only these documents needed, unless they are live: nobody is to read them now."""
    live, _ = _versions(connection, document_ids)
    unread = [each for each in document_ids if each not in live]
    asked = {row.input_hash for row in _ASKED_FOR.rows(connection, unread)}
    _FORGET_DOCUMENTS.run(connection, unread)
    _RELEASE.run(connection, sorted(asked - {row.input_hash for row in _USED.rows(connection, sorted(asked))}))


def drop_of_revision(connection: Connection, revision: int) -> None:
    """Drop the replies that hold only while no fact changes: one does with this revision."""
    meta.put(connection, FACTS, revision)
    _drop(connection, set(connection.execute(_OF_REVISION).scalars()))


def purge(connection: Connection) -> int:
    """Drop replies that no live document and no unfinished job needs; return how many.

    Those made from several documents together stay: all of these are live, and a summary may want them again.
    """
    u, c, d = s.reply_document.c, s.chunk.c, s.document.c
    needed = {
        (row.id, row.input_hash, EXTRACTION)
        for row in connection.execute(select(d.id, c.input_hash).join_from(s.document, s.chunk, c.document == d.rid))
    }
    version = {row.id: row.version for row in connection.execute(select(d.id, d.version))}
    waiting = set(connection.execute(select(s.job.c.document)).scalars())
    old: list[tuple[str, str]] = []
    uses = select(u.document, u.input_hash, u.version, _r.lifetime).outerjoin(s.reply, u.input_hash == _h)
    for row in connection.execute(uses).all():
        is_of_version = row.version != EXTRACTION and row.version == version.get(row.document)
        is_needed = (row.document, row.input_hash, row.version) in needed
        if (
            row.document not in waiting
            and row.lifetime != ReplyLifetime.ALL_DOCUMENTS
            and not (is_of_version or is_needed)
        ):
            old.append((row.document, row.input_hash))
    _FORGET_USES.run(connection, old)
    owned = select(u.input_hash).union(select(_f.input_hash))
    unowned = select(_h).where(_r.lifetime != ReplyLifetime.REVISION.value, _h.not_in(owned))
    return _drop(connection, set(connection.execute(unowned).scalars()))


def _put(connection: Connection, payload_by_hash: Mapping[str, str], lifetime: ReplyLifetime) -> None:
    """Keep payloads where there is none yet, or one that cannot be read."""
    readable = read(connection, list(payload_by_hash))
    new = {input_hash: payload for input_hash, payload in payload_by_hash.items() if input_hash not in readable}
    _DROP_PAYLOADS.run(connection, list(new))
    rows = [{"input_hash": each, "payload": deflate(new[each]), "lifetime": lifetime.value} for each in new]
    insert_rows(connection, s.reply, rows)


def _versions(connection: Connection, document_ids: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return since which revision each live document stands, and the version of each known one.

    That is the version that is being made now, or was made last.
    """
    rows = _LIVE.rows(connection, document_ids)
    live = {row.id: row.version for row in rows}
    queued = {row.document for row in _QUEUED.rows(connection, document_ids)}
    known: Iterable[str] = live.keys() | queued
    return {row.id: row.stands_since for row in rows}, {each: live.get(each, 0) + (each in queued) for each in known}


def _drop(connection: Connection, input_hashes: Collection[str]) -> int:
    """Drop replies with all that was made from them, and so on; return how many were there."""
    gone: set[str] = set()
    found = set(input_hashes)
    while found:
        gone |= found
        found = {row.input_hash for row in _MADE_FROM.rows(connection, sorted(found))} - gone
    ordered = sorted(gone)
    n_dropped = len(_KEPT.rows(connection, ordered))
    for drop in _DROP:
        drop.run(connection, ordered)
    return n_dropped
