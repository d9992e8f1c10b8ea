"""Fetching: what a search wants from services, which are asked while no view is open."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from quipu.ports.providers import Embedder

MAX_FETCHES = 12  # more than any method takes

T = TypeVar("T")
Vectors = npt.NDArray[np.float32]


class Wanted(Exception):
    """A search came to something a service has to be asked for: leave the view, fetch it, search again."""

    def __init__(self, fetch: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self.fetch = fetch


async def with_fetches(search: Callable[[], Awaitable[T]]) -> T:
    """Return what `search` does, which opens a view of its own each time it is called."""
    while True:
        try:
            return await search()
        except Wanted as wanted:
            fetch = wanted.fetch
        await fetch()


class FetchingEmbedder:
    """An embedder for one question, that knows only what was fetched.

    What a strategy embeds may depend on what the index knows, as names do: so it is run until it asks. As it asks in
    one call, before it searches, what is done twice is to look names up. Where documents keep changing what it asks,
    the view is held from the `MAX_FETCHES`th time on.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, npt.NDArray[np.float32]] = {}
        self._n_fetches = 0

    @property
    def identity(self) -> str:
        """That of the embedder."""
        return self._embedder.identity

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector a text: no question is embedded as a text, so this is asked at once."""
        return await self._embedder.embed(texts)

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors to look for, shape [n, dimension]; raises Wanted where one is missing."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing and self._n_fetches < MAX_FETCHES:
            raise Wanted(partial(self._fetch, missing))
        if missing:
            await self._fetch(missing)
        return np.stack([self._known[text] for text in texts])

    async def _fetch(self, texts: Sequence[str]) -> None:
        self._n_fetches += 1
        self._known |= zip(texts, await self._embedder.embed_queries(texts), strict=True)
