"""Matching: whether the vectors of an index are those of the embedder that is set."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quipu.ports.embedder import Embedder
from quipu.ports.store import Store


class MatchedEmbedder:
    """An embedder for one question: it raises Mismatch, and embeds nothing, where the vectors are of another.

    Searches by words alone never ask it, so that they go on while an index waits to be embedded again.
    """

    def __init__(self, embedder: Embedder, store: Store) -> None:
        self._embedder = embedder
        self._store = store

    @property
    def identity(self) -> str:
        """That of the embedder."""
        return self._embedder.identity

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector a text."""
        await self._check()
        return await self._embedder.embed(texts)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors to look for, shape [n, dimension]."""
        await self._check()
        return await self._embedder.embed_queries(texts)

    async def _check(self) -> None:
        await self._store.use_embedder(self.identity, self.dimension)
