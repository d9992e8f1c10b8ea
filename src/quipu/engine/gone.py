"""Gone: an embedder that is unavailable is not asked again in the same run; each asking may take minutes of retries."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quipu.errors import Unavailable
from quipu.ports.embedder import Embedder


class UntilGone:
    """An embedder for one run: from the first Unavailable on it raises that at once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._gone: Unavailable | None = None

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
        if self._gone is not None:
            raise self._gone
        try:
            return await self._embedder.embed(texts)
        except Unavailable as error:
            self._gone = error
            raise

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors to look for, shape [n, dimension]."""
        return await self._embedder.embed_queries(texts)
