"""Matching: whether the vectors of an index are those of the embedder that is set."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from quipu.ports.providers import Embedder
from quipu.ports.store import Store
from quipu.wrap.guard import ServiceCall

T = TypeVar("T")


class Matched:
    """A guard that raises Mismatch, and asks nothing of an embedder, where the vectors are of another.

    Searches by words alone never ask it, so that they go on while an index waits to be embedded again.
    """

    def __init__(self, embedder: Embedder, store: Store) -> None:
        self._embedder = embedder
        self._store = store

    async def run(self, work: Callable[[], Awaitable[T]], call: ServiceCall) -> T:
        """Return what `work` returns."""
        await self._store.use_embedder(self._embedder.identity, self._embedder.dimension)
        return await work()
