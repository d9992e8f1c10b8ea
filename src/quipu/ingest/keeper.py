"""ReplyKeeper: commits replies as they arrive, without holding up the ones still to come."""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from quipu.model.delta import Delta, ExtractionReply
from quipu.ports.store import Store


class ReplyKeeper:
    """Commits whatever has arrived while the last commit ran: one by one when replies are slow, in groups when fast.

    Leaving the context waits until everything put in is committed, also when the work inside was interrupted.
    `superseded` are the documents whose jobs had been replaced when a reply was committed for them.
    """

    def __init__(self, store: Store) -> None:
        self.superseded: set[str] = set()
        self._store = store
        self._waiting: list[ExtractionReply] = []
        self._commit: asyncio.Task[None] | None = None

    def put(self, replies: Iterable[ExtractionReply]) -> None:
        """Have replies committed as soon as the store is free."""
        self._waiting.extend(replies)
        if self._waiting and (self._commit is None or self._commit.done()):
            self._raise_failure()
            self._commit = asyncio.create_task(self._run())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._commit is not None:
            await asyncio.shield(self._commit)

    async def _run(self) -> None:
        while self._waiting:
            replies, self._waiting = self._waiting, []
            self.superseded.update((await self._store.commit(Delta(replies=replies))).superseded)

    def _raise_failure(self) -> None:
        if self._commit is not None:
            self._commit.result()
