"""Fetching: the vectors of a question from a service, which is asked while no view is open."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from quipu.ports.embedder import Embedder

T = TypeVar("T")
Vectors = npt.NDArray[np.float32]


class VectorsWanted(Exception):
    """A search came to texts whose vectors have not been fetched yet: leave the view, fetch them, search again."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self.texts = tuple(texts)


class FetchingEmbedder:
    """An embedder for one question, that knows only what was fetched.

    What a strategy embeds may depend on what the index knows, as names do: so it is run until it asks. As it asks in
    one call, before it searches, what is done twice is to look names up.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, npt.NDArray[np.float32]] = {}

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
        """Return the vectors to look for, shape [n, dimension]; raises VectorsWanted where one is missing."""
        if any(text not in self._known for text in texts):
            raise VectorsWanted(texts)
        return np.stack([self._known[text] for text in texts])

    async def around(self, search: Callable[[], Awaitable[T]]) -> T:
        """Return what `search` does, which opens a view of its own each time it is called."""
        while True:
            try:
                return await search()
            except VectorsWanted as wanted:
                texts = wanted.texts
            self._known |= zip(texts, await self._embedder.embed_queries(texts), strict=True)
