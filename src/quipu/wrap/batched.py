"""Batched: texts go to an embedder one request at a time, so that each is counted, limited and retried by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from quipu.errors import TooLong
from quipu.ports.providers import Embedder

Vectors = npt.NDArray[np.float32]
Embed = Callable[[Sequence[str]], Awaitable[Vectors]]


@runtime_checkable
class BatchingEmbedder(Protocol):
    """An embedder that says how many texts its service takes in one request."""

    def batches(self, texts: Sequence[str], *, is_query: bool) -> list[list[str]]:
        """Return the texts, each once and in order, as one request each takes them; after TooLong fewer at once."""
        ...


class BatchedEmbedder:
    """An embedder asked for one batch at a time; where some fail, the vectors of the others are kept for the next call.

    Raises the first error, when all batches have ended.
    """

    def __init__(self, embedder: Embedder, batching: BatchingEmbedder) -> None:
        self._embedder = embedder
        self._batching = batching
        self._spare: dict[tuple[bool, str], Vectors] = {}

    @property
    def identity(self) -> str:
        """That of the embedder."""
        return self._embedder.identity

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector a text, shape [n, dimension]."""
        return await self._in_batches(texts, self._embedder.embed, is_query=False)

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors to look for, shape [n, dimension]."""
        return await self._in_batches(texts, self._embedder.embed_queries, is_query=True)

    async def _in_batches(self, texts: Sequence[str], embed: Embed, *, is_query: bool) -> Vectors:
        known = {text: self._spare.pop((is_query, text)) for text in texts if (is_query, text) in self._spare}
        batches = self._batching.batches([text for text in texts if text not in known], is_query=is_query)
        outcomes = await asyncio.gather(*(_in_parts(batch, embed) for batch in batches), return_exceptions=True)
        errors: list[BaseException] = []
        for batch, outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                errors.append(outcome)
            else:
                known |= zip(batch, outcome, strict=True)
        if errors:
            self._spare |= {(is_query, text): vector for text, vector in known.items()}
            raise errors[0]
        rows = [known[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)


async def _in_parts(texts: Sequence[str], embed: Embed) -> Vectors:
    """Return the vectors of a batch, in halves where a service finds it too long."""
    try:
        return await embed(texts)
    except TooLong:
        if len(texts) == 1:
            raise
    half = len(texts) // 2
    return np.concatenate([await _in_parts(part, embed) for part in (texts[:half], texts[half:])])
