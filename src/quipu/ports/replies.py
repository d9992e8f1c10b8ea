"""Replies: where completed replies of models are kept, so that none is asked for twice."""

from collections.abc import Sequence
from typing import Protocol

from quipu.model.chat import ChatRequest
from quipu.model.usage import UsageRow


class Replies(Protocol):
    """Keeps replies durably, together with what they cost."""

    async def find(self, input_hash: str) -> str | None:
        """Return the reply kept under this hash."""
        ...

    async def keep(self, input_hash: str, payload: str, request: ChatRequest, usage: Sequence[UsageRow]) -> None:
        """Keep a reply for the documents and the lifetime its request names, and count its cost, in one transaction.

        Both are durable when this returns.
        """
        ...

    async def spend(self, usage: Sequence[UsageRow]) -> None:
        """Count cost that has no reply to keep."""
        ...
