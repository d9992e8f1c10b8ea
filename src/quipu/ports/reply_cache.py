"""ReplyCache: stores the completed replies of models, so that no request is paid for twice."""

from collections.abc import Sequence
from typing import Protocol

from quipu.model.chat import ChatRequest
from quipu.model.usage import UsageRow


class ReplyCache(Protocol):
    """Stores replies durably, together with their cost. Concurrent calls share one transaction."""

    async def find_replies(self, input_hashes: Sequence[str]) -> dict[str, str]:
        """Return the replies stored under these hashes. Those that do not exist or cannot be read are omitted."""
        ...

    async def save_reply(self, input_hash: str, payload: str, request: ChatRequest, usage: Sequence[UsageRow]) -> None:
        """Store a reply for the documents and the lifetime of its request, and count its cost, in one transaction.

        Both are durable when this returns. If a reply with this hash exists, it stays, and is now also kept for the
        documents of this request. A reply of lifetime `revision` or `free` belongs to no document. A reply whose
        request names neither documents nor source replies is kept until `purge`.

        The cost is counted, but the reply is not stored, if meanwhile:
        - its documents were removed (lifetime `all documents`: any of them),
        - one of its source replies was deleted, or
        - (lifetime `revision`) a fact changed after the revision that the request names.
        """
        ...

    async def facts_revision(self) -> int:
        """Return the revision of the last change of facts, from which a reply of lifetime `revision` is valid."""
        ...

    async def add_usage(self, usage: Sequence[UsageRow]) -> None:
        """Count costs that belong to no stored reply."""
        ...
