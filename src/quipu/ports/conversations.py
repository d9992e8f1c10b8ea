"""ConversationStore: saved questions and answers, in the database of the index, so that they follow its documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from quipu.errors import InvalidInput, NotFound
from quipu.model.conversation import ConversationDetails, SavedAnswer, SavedConversation


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLimits:
    """How much may be saved: exchanges in a conversation, conversations of an owner, bytes of one answer (JSON)."""

    max_exchanges: int = 200
    max_conversations: int = 1_000
    max_answer_bytes: int = 262_144

    def check_room(self, n_exchanges: int) -> None:
        """Raise InvalidInput for a conversation that has as many exchanges as are allowed."""
        if n_exchanges >= self.max_exchanges:
            raise InvalidInput(
                f"The conversation has {n_exchanges:,} questions; at most {self.max_exchanges:,} are kept.",
                remedy="Start a new conversation.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewExchange:
    """A question and its answer, to be saved; `conversation` is "" for a new one, which gets the `title`.

    `documents` are the ids of all documents whose words the answer may hold, None if they may be any of the index. They
    were read at `revision`. `earlier` are the numbers of the exchanges whose answers were the history of the question.
    """

    conversation: str
    owner: str
    title: str
    question: str
    answer: SavedAnswer
    documents: Sequence[str] | None
    revision: int
    earlier: Sequence[int] = ()


class ConversationStore(Protocol):
    """Keeps conversations durably. They are not part of the dump, and saving one does not change the revision.

    A commit that removes or replaces a document also deletes every answer that may hold words of it, whichever store
    made the commit. Its question stays. A document is replaced if its title, its source or a chunk of its earlier
    version changes, moves or goes. An answer also holds words of the documents of the earlier answers that it saw.
    """

    async def save_exchange(self, exchange: NewExchange, limits: ConversationLimits) -> ConversationDetails:
        """Add a question with its answer to a conversation, in one transaction; return it with this exchange only.

        Exchanges are numbered from 1 in the order in which they are saved. If a document of the answer was removed or
        replaced after its revision, or an earlier answer was deleted, the exchange is saved without its answer. Raises
        NotFound for an unknown conversation, and InvalidInput beyond a limit.
        """

    async def conversations(self, owner: str | None, cursor: str = "", k: int = 50) -> list[SavedConversation]:
        """Return k conversations of an owner (None: of all), the last changed first, after those before the cursor.

        The cursor is the `updated_at` of a conversation, a space and its `id`. Raises InvalidInput for another text.
        """

    async def conversation(self, conversation_id: str, n_last: int | None = None) -> ConversationDetails | None:
        """Return a conversation with its exchanges in order, all or the last ones; None if there is none."""

    async def count_answers(self, documents: Sequence[str]) -> int:
        """Return how many answers would be deleted if these documents were removed."""

    async def rename_conversation(self, conversation_id: str, title: str) -> bool:
        """Give a conversation another title; return whether there is one."""

    async def delete_conversation(self, conversation_id: str) -> bool:
        """Delete a conversation, and its text from the files; return whether there was one."""


def unknown_conversation(conversation_id: str) -> NotFound:
    """Return the error for a conversation that does not exist, or that belongs to somebody else."""
    return NotFound(
        f"There is no conversation {conversation_id[:80]!r}.", remedy="List the conversations, or start a new one."
    )
