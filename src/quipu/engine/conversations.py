"""Conversations: questions asked one after the other, saved with their answers, for one owner."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Unpack

from quipu.answer.quoted_answer import EXTRACTIVE
from quipu.engine.components import Components
from quipu.errors import InvalidInput, QuipuError, Unavailable
from quipu.model.answer import Answer, AnswerPiece
from quipu.model.conversation import (
    ConversationAnswer,
    ConversationDetails,
    ConversationPage,
    SavedAnswer,
    SavedConversation,
    SavedExchange,
)
from quipu.model.query import Query, Turn
from quipu.ports.conversations import ConversationLimits, ConversationStore, NewExchange, unknown_conversation
from quipu.ports.providers import Tokenizer
from quipu.retrieve.question import MAX_HISTORY_TURNS, QueryOptions, build_query

LOCAL_OWNER = "local"  # of conversations that are made without a key: in Python, and on a server without keys
MAX_TITLE_LENGTH = 80  # characters of a title that is made from a question
MAX_NEW_TITLE_LENGTH = 200
MAX_HISTORY_SHARE = 0.25  # of the tokens of a prompt: the rest is for evidence
ANSWER_GONE = "The answer was not saved: a document that it may quote was removed or replaced meanwhile."


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """The saved conversations of one owner; with `sees_all`, those of others may be read and continued, too.

    They are in the index. When a document is removed or replaced, the answers that may quote it lose their text.
    """

    components: Components
    stream_answer: Callable[[Query], AsyncGenerator[AnswerPiece, None]]
    owner: str = LOCAL_OWNER
    sees_all: bool = False
    limits: ConversationLimits = field(default_factory=ConversationLimits)

    def of(self, owner: str, *, sees_all: bool = False) -> "Conversations":
        """Return the conversations of another owner, such as a key of a server."""
        return replace(self, owner=owner, sees_all=sees_all)

    async def ask(self, question: str, conversation: str = "", **options: Unpack[QueryOptions]) -> ConversationAnswer:
        """Answer a question in a conversation, by default a new one, and save both; `options` are those of a query.

        The answers before it are its history, so a follow-up question is understood. If the answer cannot be saved, a
        note of it says why. Raises NotFound for an unknown conversation, and InvalidInput beyond a limit.
        """
        last = AnswerPiece()
        async with aclosing(self.stream(question, conversation, **options)) as pieces:
            async for piece in pieces:
                last = piece
        assert last.answer is not None, "a stream ends with the answer"
        return ConversationAnswer(conversation=last.conversation, number=last.number, answer=last.answer)

    async def stream(
        self, question: str, conversation: str = "", **options: Unpack[QueryOptions]
    ) -> AsyncGenerator[AnswerPiece, None]:
        """Yield an answer in pieces, as `Quipu.stream` does; raises as `ask`. The last piece comes after saving."""
        earlier = await self._last(conversation) if conversation else ()
        if "history" in options:
            raise InvalidInput("A conversation has a history already.", remedy="Leave `history` out.")
        query = build_query(self.components.make_query, question, options)
        max_tokens = int(MAX_HISTORY_SHARE * query.budget.total)
        history = recent_exchanges(earlier, max_tokens, self.components.context_tokenizer)
        query = replace(query, history=turns_of(history), names_documents=True)
        documents: tuple[str, ...] | None = ()
        async with aclosing(self.stream_answer(query)) as pieces:
            async for piece in pieces:
                if piece.answer is None:
                    documents = piece.documents if piece.stage == "generate" else documents
                    yield piece
                elif query.filter.as_of:  # it may hold words that are in the history alone
                    # Its text is saved only if nothing was ever removed or replaced.
                    outdated = replace(piece.answer, trace=replace(piece.answer.trace, revision=-1))
                    yield await self._save(question, conversation, outdated, None, history)
                else:
                    yield await self._save(question, conversation, piece.answer, documents, history)

    async def page(self, cursor: str = "", k: int = 50, *, of_all_owners: bool = False) -> ConversationPage:
        """Return a page of conversations, the last changed first; `cursor` is that of the page before.

        With `of_all_owners`, those of others are listed, too, which only who sees all may do.
        """
        if of_all_owners and not self.sees_all:
            raise InvalidInput("Only your own conversations can be listed.", remedy="Use a key with more permissions.")
        listed = await self._store.conversations(None if of_all_owners else self.owner, cursor, k + 1)
        last = listed[k - 1] if len(listed) > k > 0 else None
        cursor = f"{last.updated_at} {last.id}" if last is not None else ""
        return ConversationPage(conversations=tuple(listed[:k]), cursor=cursor)

    async def read(self, conversation: str) -> ConversationDetails:
        """Return a conversation with all its questions and answers. Raises NotFound."""
        return await self._read(conversation)

    async def rename(self, conversation: str, title: str) -> SavedConversation:
        """Give a conversation another title. Raises NotFound, and InvalidInput for a title without letters."""
        details = await self._read(conversation, 0)
        title = one_line(title)
        if not title or len(title) > MAX_NEW_TITLE_LENGTH:
            raise InvalidInput(
                f"A title has 1 to {MAX_NEW_TITLE_LENGTH} characters, not {len(title):,}.", remedy="Give another title."
            )
        if not await self._store.rename_conversation(conversation, title):
            raise unknown_conversation(conversation)
        return replace(details.conversation, title=title)

    async def delete(self, conversation: str) -> None:
        """Delete a conversation with all its questions and answers. Raises NotFound."""
        await self._read(conversation, 0)
        if not await self._store.delete_conversation(conversation):
            raise unknown_conversation(conversation)

    async def count_answers(self, documents: Sequence[str]) -> int:
        """Return how many answers, of any owner, would lose their text if these documents were removed."""
        return await self.components.conversations.count_answers(documents) if self.components.conversations else 0

    @property
    def _store(self) -> ConversationStore:
        if self.components.conversations is None:
            raise Unavailable("This store keeps no conversations.", remedy="Ask with `query`, and pass `history`.")
        return self.components.conversations

    async def _read(self, conversation: str, n_last: int | None = None) -> ConversationDetails:
        details = await self._store.conversation(conversation, n_last)
        if details is None or not (self.sees_all or details.conversation.owner == self.owner):
            raise unknown_conversation(conversation)
        return details

    async def _last(self, conversation: str) -> Sequence[SavedExchange]:
        """Return the exchanges that a question may refer to. Raises InvalidInput where there is no room for it."""
        details = await self._read(conversation, MAX_HISTORY_TURNS // 2)
        self.limits.check_room(details.conversation.n_exchanges)
        return details.exchanges

    async def _save(
        self,
        question: str,
        conversation: str,
        answer: Answer,
        documents: tuple[str, ...] | None,
        history: Sequence[SavedExchange],
    ) -> AnswerPiece:
        """Save an answer, and return the last piece of its stream; a note says why it could not be saved."""
        if answer.generator == EXTRACTIVE and documents is not None:
            documents = tuple(sorted({citation.document_id for citation in answer.citations}))
        exchange = NewExchange(
            conversation=conversation,
            owner=self.owner,
            title=title_of(question),
            question=question.replace("\0", "\ufffd"),
            answer=saved_answer(answer),
            documents=documents,
            revision=answer.trace.revision,
            earlier=tuple(exchange.number for exchange in history if exchange.answer is not None),
        )
        try:
            saved = await self._store.save_exchange(exchange, self.limits)
        except QuipuError as error:
            note = f"This question was not saved: {error}"
            return AnswerPiece(answer=replace(answer, notes=(*answer.notes, note)))
        (last,) = saved.exchanges
        if last.answer is None:
            answer = replace(answer, notes=(*answer.notes, ANSWER_GONE))
        return AnswerPiece(answer=answer, conversation=saved.conversation.id, number=last.number)


def recent_exchanges(exchanges: Sequence[SavedExchange], max_tokens: int, tokenizer: Tokenizer) -> list[SavedExchange]:
    """Return the last exchanges that a question may refer to, as many as a prompt has room for."""
    recent: list[SavedExchange] = []
    for exchange in reversed(exchanges):
        max_tokens -= sum(tokenizer.count(turn.text) for turn in turns_of([exchange]))
        if max_tokens < 0:
            break
        recent.insert(0, exchange)
    return recent


def turns_of(exchanges: Sequence[SavedExchange]) -> tuple[Turn, ...]:
    """Return exchanges as the history of a question; of one whose answer is gone, only its question."""
    turns: list[Turn] = []
    for exchange in exchanges:
        turns.append(Turn(role="user", text=exchange.question))
        if exchange.answer is not None:
            turns.append(Turn(role="assistant", text=exchange.answer.text))
    return tuple(turns)


def saved_answer(answer: Answer) -> SavedAnswer:
    """Return what a conversation keeps of an answer."""
    return SavedAnswer(
        text=answer.text,
        generator=answer.generator,
        strategy=answer.trace.strategy,
        is_supported=answer.is_supported,
        citations=answer.citations,
        statements=answer.statements,
        highlights=answer.highlights,
        citation_marks=answer.citation_marks,
        notes=answer.notes,
    )


def title_of(question: str) -> str:
    """Return a title made from a question: its beginning, up to the end of a word."""
    line = one_line(question)
    if len(line) <= MAX_TITLE_LENGTH:
        return line
    start = line[: MAX_TITLE_LENGTH - 1]
    return f"{start.rpartition(' ')[0] or start}…"


def one_line(text: str) -> str:
    """Return a text on one line, without characters that cannot be seen, which could change how a list looks."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
