"""Remembered: vectors of questions stay in memory for a while, so that a question asked again costs nothing."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quipu.ports.providers import Embedder

Vector = npt.NDArray[np.float32]
Memory = OrderedDict[str, Vector]


class RememberedEmbedder:
    """An embedder that keeps the vectors of the last `max_questions` questions, in a memory that may be shared."""

    def __init__(self, embedder: Embedder, memory: Memory | None = None, *, max_questions: int = 512) -> None:
        self._embedder = embedder
        self._memory = Memory() if memory is None else memory
        self._max_questions = max_questions

    @property
    def identity(self) -> str:
        """That of the embedder."""
        return self._embedder.identity

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str]) -> Vector:
        """Return one unit vector a text, shape [n, dimension]."""
        return await self._embedder.embed(texts)

    async def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Return the vectors to look for, shape [n, dimension]; only questions that are not remembered are embedded."""
        known = {text: self._memory[text] for text in texts if text in self._memory}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known |= zip(new, await self._embedder.embed_queries(new), strict=True)
        for text in texts:
            self._memory[text] = known[text]
            self._memory.move_to_end(text)
        while len(self._memory) > self._max_questions:
            self._memory.popitem(last=False)
        rows = [known[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)
