"""ReplyCache: stores the completed replies of models, so that no request is paid for twice."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from quipu.model.chat import ChatRequest
from quipu.model.usage import UsageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReply:
    """A model's reply to a single call, with the request and the hash under which it is stored."""

    input_hash: str
    payload: str
    request: ChatRequest


class ReplyCache(Protocol):
    """Stores replies durably, together with their cost. Concurrent calls share one transaction."""

    async def find_replies(self, input_hashes: Sequence[str]) -> dict[str, str]:
        """Return the replies stored under these hashes. Those that do not exist or cannot be read are omitted."""

    async def record_call(self, usage: Sequence[UsageRow], reply: CallReply | None = None) -> None:
        """Count what a call cost, and store its reply if there is one to store, in one transaction.

        Both are durable when this returns. The reply is kept for the documents and the lifetime of its request. If a
        reply with this hash exists, it stays, and is now also kept for the documents of this request. A reply of
        lifetime `revision` or `free` belongs to no document. A reply whose request names neither documents nor source
        replies is kept until `purge`.

        The cost is counted, but the reply is not stored, if meanwhile:
        - its documents were removed (lifetime `all documents`: any of them),
        - one of its source replies was deleted, or
        - (lifetime `revision`) a fact changed after the revision that the request names.
        """

    async def facts_revision(self) -> int:
        """Return the revision of the last change of facts, from which a reply of lifetime `revision` is valid."""
