"""Replies: where completed replies of models are kept, so that none is asked for twice."""

from collections.abc import Sequence
from typing import Protocol

from quipu.model.chat import ChatRequest
from quipu.model.usage import UsageRow


class ReplyCache(Protocol):
    """Keeps replies durably, together with what they cost. Calls that come at once share one transaction."""

    async def find(self, input_hash: str) -> str | None:
        """Return the reply kept under this hash, None where there is none, or none that can be read."""
        ...

    async def keep(self, input_hash: str, payload: str, request: ChatRequest, usage: Sequence[UsageRow]) -> None:
        """Keep a reply for the documents and the lifetime its request names, and count its cost, in one transaction.

        Both are durable when this returns. The first reply to an input stays, from then on also for the documents of
        this request. A reply is not kept where its documents have been removed meanwhile (for `all documents`: any of
        them), one of the replies it was made from has gone, or (`revision`) a fact has changed since the revision its
        request names, though its cost counts. A reply of lifetime `revision` or `free` belongs to no document. One
        whose request names neither documents nor replies is kept until `purge`.
        """
        ...

    async def facts_revision(self) -> int:
        """Return the revision of the last change of facts: a reply of lifetime `revision` holds from there."""
        ...

    async def spend(self, usage: Sequence[UsageRow]) -> None:
        """Count cost that has no reply to keep."""
        ...
