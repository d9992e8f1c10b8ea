"""Replies: paid work, kept while a document needs it."""

import zlib
from collections.abc import Sequence
from contextlib import suppress

from sqlalchemy import Connection, select, tuple_

from quipu.model.delta import Reply
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.sql import ByValues, Upsert, deflate, inflate

_u, _h = s.reply_document.c, s.reply.c.input_hash
_READ = ByValues(select(s.reply), _h)
_KEPT = ByValues(select(_h), _h)
_DROP = ByValues(s.reply.delete(), _h)
_KEEP, _NEED = Upsert(s.reply), Upsert(s.reply_document)
_ASKED_FOR = ByValues(select(_u.input_hash), _u.document)
_USED = ByValues(select(_u.input_hash).distinct(), _u.input_hash)
_FORGET_DOCUMENTS = ByValues(s.reply_document.delete(), _u.document)
_FORGET_USES = ByValues(s.reply_document.delete(), tuple_(_u.document, _u.input_hash))


def record(connection: Connection, backend: Backend, replies: Sequence[Reply]) -> None:
    """Keep replies, each for the document it was asked for; one reply may serve several."""
    if replies:
        kept = [{"input_hash": reply.input_hash, "payload": deflate(reply.payload)} for reply in replies]
        uses = [{"input_hash": reply.input_hash, "document": reply.document_id} for reply in replies]
        hashes = sorted({reply.input_hash for reply in replies})
        readable = read(connection, hashes)
        damaged = [input_hash for input_hash in hashes if input_hash not in readable]
        _DROP.run(connection, damaged)
        _KEEP.run(connection, backend, kept)
        _NEED.run(connection, backend, uses)


def use(connection: Connection, backend: Backend, uses: Sequence[tuple[str, str]]) -> None:
    """Note that documents need replies kept before: (document id, input hash)."""
    if uses:
        rows = [{"document": document, "input_hash": input_hash} for document, input_hash in uses]
        _NEED.run(connection, backend, rows)


def read(connection: Connection, input_hashes: Sequence[str]) -> dict[str, str]:
    """Return the kept replies; one that is damaged is left out, so that it is asked for again."""
    found: dict[str, str] = {}
    for row in _READ.rows(connection, input_hashes):
        with suppress(zlib.error, UnicodeDecodeError):
            found[row.input_hash] = inflate(row.payload)
    return found


def drop_documents(connection: Connection, document_ids: Sequence[str]) -> None:
    """Drop the replies only these documents needed."""
    asked = sorted({row.input_hash for row in _ASKED_FOR.rows(connection, document_ids)})
    _FORGET_DOCUMENTS.run(connection, document_ids)
    _drop_unused(connection, asked)


def purge(connection: Connection) -> int:
    """Drop replies that no chunk of a live document and no unfinished job needs; return how many."""
    u, c, d = s.reply_document.c, s.chunk.c, s.document.c
    needed = {
        (row.id, row.input_hash)
        for row in connection.execute(select(d.id, c.input_hash).join_from(s.document, s.chunk, c.document == d.rid))
    }
    waiting = set(connection.execute(select(s.job.c.document)).scalars())
    uses = connection.execute(select(u.document, u.input_hash)).all()
    old = [row for row in uses if row.document not in waiting and (row.document, row.input_hash) not in needed]
    pairs = [(row.document, row.input_hash) for row in old]
    _FORGET_USES.run(connection, pairs)
    return _drop_unused(connection, sorted({row.input_hash for row in old}))


def _drop_unused(connection: Connection, input_hashes: Sequence[str]) -> int:
    used = {row[0] for row in _USED.rows(connection, input_hashes)}
    unused = [input_hash for input_hash in input_hashes if input_hash not in used]
    n_dropped = len(_KEPT.rows(connection, unused))
    _DROP.run(connection, unused)
    return n_dropped
