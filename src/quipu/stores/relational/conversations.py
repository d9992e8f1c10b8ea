"""Conversations: saved questions and answers, and the deletion of answers whose documents are removed or replaced.

They are in the database of the index because of that deletion: it is part of the commit that changes the documents.
"""

import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TypeVar

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Connection, bindparam, func, select

from quipu.errors import InvalidInput
from quipu.model.conversation import ConversationDetails, SavedAnswer, SavedConversation, SavedExchange
from quipu.ports.conversations import ConversationLimits, NewExchange, unknown_conversation
from quipu.stores.relational import schema as s
from quipu.stores.relational import segments
from quipu.stores.relational.sql import Backend, ByValues, Transaction, insert_rows, n_changed, read_number, write_meta

MAX_DOCUMENTS = 1_000  # that one answer is linked to; beyond that, it is linked to any document
_ANY_DOCUMENT = 0  # no row number of a document
_LAST_REMOVAL = "removal"  # the revision of the last commit that removed or replaced a document
_ID_BYTES = 12

T = TypeVar("T")

conversation = sa.Table(
    "conversation",
    s.metadata,
    sa.Column("rid", s.INTEGER, primary_key=True),
    sa.Column("id", s.TEXT, nullable=False, unique=True),
    *(sa.Column(name, s.TEXT, nullable=False) for name in ("owner", "title", "created_at", "updated_at")),
    sa.Index("conversation_owner", "owner", "updated_at"),
    sa.Index("conversation_updated_at", "updated_at"),
)
# `answer`: JSON, or NULL after a document that it may quote was removed or replaced.
exchange = sa.Table(
    "exchange",
    s.metadata,
    sa.Column("rid", s.INTEGER, primary_key=True),
    sa.Column("conversation", s.INTEGER, nullable=False),
    sa.Column("number", s.INTEGER, nullable=False),
    sa.Column("question", s.TEXT, nullable=False),
    sa.Column("asked_at", s.TEXT, nullable=False),
    sa.Column("answer", s.TEXT),
    sa.UniqueConstraint("conversation", "number"),
)
# The documents (row numbers) whose words an answer may hold.
exchange_document = sa.Table(
    "exchange_document",
    s.metadata,
    sa.Column("exchange", s.INTEGER, primary_key=True),
    sa.Column("document", s.INTEGER, primary_key=True),
    sa.Index("exchange_document_document", "document"),
    sqlite_with_rowid=False,
)
TABLES = (conversation, exchange, exchange_document)

_c, _e, _l = conversation.c, exchange.c, exchange_document.c
_LAST_NUMBER = select(func.coalesce(func.max(_e.number), 0)).where(_e.conversation == _c.rid).scalar_subquery()
_CONVERSATIONS = select(*(column for column in _c if column.name != "rid"), _LAST_NUMBER.label("n_exchanges"))
_BY_ID = _CONVERSATIONS.where(_c.id == bindparam("id"))
_RID = select(_c.rid).where(_c.id == bindparam("id"))
_EXCHANGES = (
    select(_e.number, _e.question, _e.asked_at, _e.answer)
    .join_from(exchange, conversation, _e.conversation == _c.rid)
    .where(_c.id == bindparam("id"))
    .order_by(_e.number.desc())
)
_DOCUMENTS = ByValues(select(s.document.c.rid, s.document.c.stands_since), s.document.c.id)
_QUOTING = ByValues(select(_l.exchange).distinct(), _l.document)
_LINKS = ByValues(select(_l.document).distinct(), _l.exchange)
_DELETE_ANSWERS = ByValues(exchange.update().values(answer=None), _e.rid)
_DELETE_LINKS = ByValues(exchange_document.delete(), _l.exchange)


def drop_answers(connection: Connection, documents: Collection[int], revision: int) -> None:
    """Delete the answers that may hold words of these documents, which the commit of `revision` removes or replaces."""
    write_meta(connection, _LAST_REMOVAL, revision)
    exchanges = _quoting(connection, documents)
    _DELETE_ANSWERS.run(connection, exchanges)
    _DELETE_LINKS.run(connection, exchanges)


def _quoting(connection: Connection, documents: Collection[int]) -> list[int]:
    """Return the exchanges whose answers may hold words of these documents."""
    rows = _QUOTING.rows(connection, [_ANY_DOCUMENT, *sorted(documents)])
    return list(dict.fromkeys(row.exchange for row in rows))


def conversation_differences(connection: Connection) -> Iterator[str]:
    """Yield the answers that are linked to a document which does not exist, or which are themselves gone."""
    for row in connection.execute(select(exchange_document).where(is_lost())):
        yield f"the answer {row.exchange} of a conversation quotes the document {row.document}: one of them is gone"


def is_lost() -> ColumnElement[bool]:
    """Return the condition that a link of an answer to a document has lost one of them."""
    has_no_document = _l.document.not_in(select(s.document.c.rid)) & (_l.document != _ANY_DOCUMENT)
    return has_no_document | _l.exchange.not_in(select(_e.rid).where(_e.answer.is_not(None)))


@dataclass(frozen=True, slots=True)
class RelationalConversations:
    """A ConversationStore in the database of an index; `ports.conversations` describes every method."""

    read: Transaction
    write: Transaction
    backend: Backend

    async def save_exchange(self, new: NewExchange, limits: ConversationLimits) -> ConversationDetails:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        return await self.write(lambda connection: _save(connection, new, limits, now))

    async def conversations(self, owner: str | None, cursor: str = "", k: int = 50) -> list[SavedConversation]:
        query = _CONVERSATIONS.order_by(_c.updated_at.desc(), _c.id.desc()).limit(k)
        if owner is not None:
            query = query.where(_c.owner == owner)
        if cursor:
            updated_at, id_ = _place(cursor)
            query = query.where((_c.updated_at < updated_at) | ((_c.updated_at == updated_at) & (_c.id < id_)))
        return await self.read(
            lambda connection: [SavedConversation(**row._mapping) for row in connection.execute(query)]
        )

    async def conversation(self, conversation_id: str, n_last: int | None = None) -> ConversationDetails | None:
        return await self.read(lambda connection: _details(connection, conversation_id, n_last))

    async def count_answers(self, documents: Sequence[str]) -> int:
        def count(connection: Connection) -> int:
            rids = [row.rid for row in _DOCUMENTS.rows(connection, documents)]
            return len(_quoting(connection, rids)) if rids else 0

        return await self.read(count)

    async def rename_conversation(self, conversation_id: str, title: str) -> bool:
        change = conversation.update().where(_c.id == conversation_id).values(title=title)
        return await self.write(lambda connection: n_changed(connection, change) > 0)

    async def delete_conversation(self, conversation_id: str) -> bool:
        is_deleted = await self.write(lambda connection: _delete(connection, conversation_id))
        if is_deleted:
            await segments.empty_log(self.read, self.write, self.backend)
        return is_deleted


def _save(connection: Connection, new: NewExchange, limits: ConversationLimits, now: str) -> ConversationDetails:
    answer = _answers().dump_json(new.answer)
    if len(answer) > limits.max_answer_bytes:
        raise InvalidInput(
            f"The answer has {len(answer):,} bytes; a conversation keeps at most {limits.max_answer_bytes:,}.",
            remedy="Ask for less, or ask outside of a conversation.",
        )
    if new.conversation:
        rid, id_ = connection.scalar(_RID, {"id": new.conversation}), new.conversation
    else:
        rid, id_ = _start(connection, new, limits, now)
    if rid is None:
        raise unknown_conversation(new.conversation)
    number = 1 + (connection.scalar(select(func.max(_e.number)).where(_e.conversation == rid)) or 0)
    limits.check_room(number - 1)
    documents = _linked_documents(connection, new, rid)
    text = None if documents is None else answer.decode()
    row = {"conversation": rid, "number": number, "question": new.question, "asked_at": now, "answer": text}
    (exchange_rid,) = connection.execute(exchange.insert().values(row)).inserted_primary_key or (0,)
    insert_rows(connection, exchange_document, [{"exchange": exchange_rid, "document": n} for n in documents or ()])
    connection.execute(conversation.update().where(_c.rid == rid).values(updated_at=now))
    saved = SavedExchange(number=number, question=new.question, asked_at=now, answer=new.answer if text else None)
    return ConversationDetails(conversation=_conversation(connection, id_), exchanges=(saved,))


def _start(connection: Connection, new: NewExchange, limits: ConversationLimits, now: str) -> tuple[int, str]:
    """Add a conversation; return its row and id. Raises InvalidInput if its owner has as many as allowed."""
    n_owned = connection.scalar(select(func.count()).where(_c.owner == new.owner)) or 0
    if n_owned >= limits.max_conversations:
        raise InvalidInput(
            f"There are {n_owned:,} saved conversations; at most {limits.max_conversations:,} are kept.",
            remedy="Delete some of them.",
        )
    id_ = secrets.token_hex(_ID_BYTES)
    row = {"id": id_, "owner": new.owner, "title": new.title, "created_at": now, "updated_at": now}
    (rid,) = connection.execute(conversation.insert().values(row)).inserted_primary_key or (0,)
    return rid, id_


def _linked_documents(connection: Connection, new: NewExchange, conversation_rid: int) -> Collection[int] | None:
    """Return the documents to link an answer to; None if it may hold words that have been removed since it was made."""
    rows = _DOCUMENTS.rows(connection, new.documents or ())
    has_all = len(rows) == len(new.documents or ())
    if not has_all or any(row.stands_since > new.revision for row in rows):
        return None
    links = {row.rid for row in rows}
    if new.documents is None:
        if read_number(connection, _LAST_REMOVAL) > new.revision:
            return None
        links.add(_ANY_DOCUMENT)
    earlier = _earlier_exchanges(connection, new, conversation_rid)
    if earlier is None:
        return None
    links.update(row.document for row in _LINKS.rows(connection, earlier))
    return {_ANY_DOCUMENT} if _ANY_DOCUMENT in links or len(links) > MAX_DOCUMENTS else links


def _earlier_exchanges(connection: Connection, new: NewExchange, conversation_rid: int) -> list[int] | None:
    """Return the rows of the exchanges whose answers the new one saw; None if one of those is gone."""
    if not new.earlier:
        return []
    earlier = select(_e.rid, _e.answer).where(_e.conversation == conversation_rid, _e.number.in_(list(new.earlier)))
    rows = connection.execute(earlier).all()
    return None if any(row.answer is None for row in rows) else [row.rid for row in rows]


def _details(connection: Connection, conversation_id: str, n_last: int | None) -> ConversationDetails | None:
    if connection.scalar(_RID, {"id": conversation_id}) is None:
        return None
    exchanges = [
        SavedExchange(
            number=row.number,
            question=row.question,
            asked_at=row.asked_at,
            answer=None if row.answer is None else _answers().validate_json(row.answer),
        )
        for row in connection.execute(_EXCHANGES.limit(n_last), {"id": conversation_id})
    ]
    return ConversationDetails(
        conversation=_conversation(connection, conversation_id), exchanges=tuple(exchanges[::-1])
    )


def _conversation(connection: Connection, conversation_id: str) -> SavedConversation:
    return SavedConversation(**connection.execute(_BY_ID, {"id": conversation_id}).one()._mapping)


def _delete(connection: Connection, conversation_id: str) -> bool:
    rid = connection.scalar(_RID, {"id": conversation_id})
    if rid is None:
        return False
    own = select(_e.rid).where(_e.conversation == rid)
    connection.execute(exchange_document.delete().where(_l.exchange.in_(own)))
    connection.execute(exchange.delete().where(_e.conversation == rid))
    connection.execute(conversation.delete().where(_c.rid == rid))
    segments.note_removed(connection, 1, at_once=True)
    return True


@cache
def _answers() -> TypeAdapter[SavedAnswer]:
    return TypeAdapter(SavedAnswer)  # building it takes milliseconds


def _place(cursor: str) -> tuple[str, str]:
    updated_at, separator, id_ = cursor.partition(" ")
    if not separator:
        raise InvalidInput(f"{cursor!r} is not a cursor of conversations.", remedy="Use that of the page before.")
    return updated_at, id_
