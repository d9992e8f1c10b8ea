"""Wrapped embedder: one decorator for every embedder, and the layers that each of its calls can pass through."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from quipu.errors import TooLong
from quipu.ports.providers import Embedder
from quipu.wrap.guard import Guard, ServiceCall, run_guarded

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbedCall:
    """The texts of one call, at least one: questions if `is_query`, otherwise passages."""

    texts: Sequence[str]
    is_query: bool


Embed = Callable[[EmbedCall], Awaitable[Vectors]]
EmbedderLayer = Callable[[EmbedCall, Embed], Awaitable[Vectors]]  # calls the layer below, or returns vectors itself


class WrappedEmbedder:
    """An embedder whose calls pass through layers; the first layer is the outermost."""

    def __init__(self, embedder: Embedder, layers: Sequence[EmbedderLayer]) -> None:
        self._embedder = embedder
        self._embed: Embed = self._embed_directly
        for layer in reversed(layers):
            self._embed = partial(_through, layer, self._embed)

    @property
    def identity(self) -> str:
        return self._embedder.identity

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per passage, shape [n, dimension]."""
        return await self._embed_all(texts, is_query=False)

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per question, shape [n, dimension]."""
        return await self._embed_all(texts, is_query=True)

    async def _embed_all(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        return await self._embed(EmbedCall(texts, is_query)) if texts else np.zeros((0, self.dimension), np.float32)

    async def _embed_directly(self, call: EmbedCall) -> Vectors:
        embed = self._embedder.embed_queries if call.is_query else self._embedder.embed
        return await embed(call.texts)


async def _through(layer: EmbedderLayer, below: Embed, call: EmbedCall) -> Vectors:
    return await layer(call, below)


def guarded_embedder(embedder: Embedder, guards: Sequence[Guard]) -> WrappedEmbedder:
    """Return the embedder inside guards; the first guard is the outermost."""
    return WrappedEmbedder(embedder, [guard_layer(guards)])


def guard_layer(guards: Sequence[Guard]) -> EmbedderLayer:
    """Return the layer that runs each call inside guards. A user is waiting for the vectors of a question."""

    async def embed_guarded(call: EmbedCall, below: Embed) -> Vectors:
        kind = "embed query" if call.is_query else "embed"
        return await run_guarded(guards, partial(below, call), ServiceCall(kind=kind, is_urgent=call.is_query))

    return embed_guarded


class QueryVectorCache:
    """A layer that keeps the vectors of the last `max_questions` questions in memory. Many embedders may share it."""

    def __init__(self, max_questions: int = 512) -> None:
        self._max_questions = max_questions
        self._vector_by_text: OrderedDict[str, Vectors] = OrderedDict()

    async def __call__(self, call: EmbedCall, below: Embed) -> Vectors:
        """Return one vector per text; only questions that are not in the cache are embedded."""
        if not call.is_query:
            return await below(call)
        vectors = {text: self._vector_by_text[text] for text in call.texts if text in self._vector_by_text}
        missing = [text for text in dict.fromkeys(call.texts) if text not in vectors]
        if missing:
            vectors |= zip(missing, await below(replace(call, texts=missing)), strict=True)
        for text in call.texts:
            self._vector_by_text[text] = vectors[text]
            self._vector_by_text.move_to_end(text)
        while len(self._vector_by_text) > self._max_questions:
            self._vector_by_text.popitem(last=False)
        return np.stack([vectors[text] for text in call.texts])


@runtime_checkable
class BatchingEmbedder(Protocol):
    """An embedder that knows how many texts its service takes in one request."""

    def batches(self, texts: Sequence[str], *, is_query: bool) -> list[list[str]]:
        """Return each text once and in order, in groups of one request each. After TooLong the groups are smaller."""


class BatchLayer:
    """A layer that sends each batch of texts as one call, so that it is counted, limited and retried on its own.

    If some batches fail, the first error is raised when all have ended. The vectors of the others are kept for the next
    call.
    """

    def __init__(self, embedder: BatchingEmbedder) -> None:
        self._embedder = embedder
        self._unused: dict[tuple[bool, str], Vectors] = {}

    async def __call__(self, call: EmbedCall, below: Embed) -> Vectors:
        """Return one vector per text."""
        keys = [(call.is_query, text) for text in call.texts]
        vectors = {key: self._unused.pop(key) for key in keys if key in self._unused}
        missing = [text for is_query, text in keys if (is_query, text) not in vectors]
        batches = self._embedder.batches(missing, is_query=call.is_query)
        calls = [replace(call, texts=batch) for batch in batches]
        outcomes = await asyncio.gather(*(_embed_in_halves(part, below) for part in calls), return_exceptions=True)
        errors: list[BaseException] = []
        for batch, outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                errors.append(outcome)
            else:
                vectors |= {(call.is_query, text): vector for text, vector in zip(batch, outcome, strict=True)}
        if errors:
            self._unused |= vectors
            raise errors[0]
        return np.stack([vectors[key] for key in keys])


async def _embed_in_halves(call: EmbedCall, below: Embed) -> Vectors:
    """Return the vectors of a batch. A batch that is too long for the service is split in two."""
    try:
        return await below(call)
    except TooLong:
        if len(call.texts) == 1:
            raise
    half = len(call.texts) // 2
    halves = [replace(call, texts=texts) for texts in (call.texts[:half], call.texts[half:])]
    return np.concatenate([await _embed_in_halves(part, below) for part in halves])
