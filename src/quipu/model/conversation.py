"""Saved conversations: their questions, what is kept of the answers, and how they are listed."""

from dataclasses import dataclass

from quipu.model.answer import Answer, Citation, Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAnswer:
    """What a conversation keeps of an answer: all that was shown, without the evidence, the prompt and the cost."""

    text: str
    generator: str
    strategy: str
    is_supported: bool
    citations: tuple[Citation, ...] = ()
    statements: tuple[Statement, ...] = ()
    highlights: tuple[tuple[int, int], ...] = ()
    citation_marks: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedExchange:
    """A question and its answer in a conversation, by `number` from 1.

    `answer` is None if a document that it quoted has been removed or replaced since: its text is gone, too.
    """

    number: int
    question: str
    asked_at: str
    answer: SavedAnswer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedConversation:
    """A saved conversation; times are ISO 8601 in UTC. `owner` is the id of the key that made it."""

    id: str
    title: str
    owner: str
    created_at: str
    updated_at: str
    n_exchanges: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationDetails:
    """A conversation with its exchanges, in order."""

    conversation: SavedConversation
    exchanges: tuple[SavedExchange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPage:
    """A page of conversations, the newest first; `cursor` asks for the next one, "" if this is the last."""

    conversations: tuple[SavedConversation, ...]
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationAnswer:
    """An answer, the conversation it belongs to, and its number there; "" and 0 if it could not be saved.

    Then a note of the answer says why.
    """

    conversation: str
    number: int
    answer: Answer
