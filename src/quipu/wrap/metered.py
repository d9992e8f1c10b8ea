"""Metered: models whose every attempt is counted, innermost of all wrappers."""

import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.model.usage import Stage, UsageRow
from quipu.ports.providers import LLM, Embedder, Reranker, TextSink, ignore_text
from quipu.wrap.meter import Attempt, Meter, Terms
from quipu.wrap.persistent import persist
from quipu.wrap.unbroken import unbroken

T = TypeVar("T")

MARGIN = 4 / 3  # of a service's own count to ours
TOKENS_A_TEXT = 8  # that a service adds to each message or text: its role, where it begins and ends

Vectors = npt.NDArray[np.float32]
Spend = Callable[[Sequence[UsageRow]], Awaitable[None]]


@runtime_checkable
class CountingEmbedder(Protocol):
    """An embedder whose service says how many tokens it read."""

    async def embed_counted(self, texts: Sequence[str], *, is_query: bool) -> tuple[Vectors, TokenCount]:
        """Return what `embed` (or `embed_queries`) does, and what it took."""
        ...


@runtime_checkable
class CountingReranker(Protocol):
    """A reranker whose service says how many tokens it read."""

    async def score_counted(self, question: str, texts: Sequence[str]) -> tuple[list[float], TokenCount]:
        """Return what `score` does, and what it took."""
        ...


class MeteredLLM:
    """A chat model whose attempts are counted by a meter; what they cost is for the caller to keep."""

    def __init__(self, llm: LLM, meter: Meter, terms: Terms) -> None:
        self._llm = llm
        self._meter = meter
        self._terms = terms

    @property
    def identity(self) -> str:
        """That of the model."""
        return self._llm.identity

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply; raises OverBudget before a call that may cost too much, and as `LLM.complete` does."""
        attempt = Attempt(
            stage=Stage(request.role.value),
            terms=self._terms,
            most=partial(_most, request, self._terms),
            subject=request.subject or self._meter.subject or next(iter(request.documents), ""),
        )
        return await self._meter.run(partial(self._llm.complete, request, on_text), attempt, _tokens_of)


class MeteredEmbedder:
    """An embedder whose attempts are counted by a meter; `spend` keeps what they cost before vectors are returned."""

    def __init__(self, embedder: Embedder, meter: Meter, terms: Terms, spend: Spend) -> None:
        self._embedder = embedder
        self._meter = meter
        self._terms = terms
        self._spend = spend

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
        return await self._counted(texts, is_query=False)

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors to look for, shape [n, dimension]."""
        return await self._counted(texts, is_query=True)

    async def _counted(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        attempt = Attempt(stage=Stage.EMBED, terms=self._terms, most=partial(_most_of, texts, self._terms))
        if isinstance(self._embedder, CountingEmbedder):
            work = partial(self._embedder.embed_counted, texts, is_query=is_query)
        else:
            embed = self._embedder.embed_queries if is_query else self._embedder.embed
            work = partial(_with_estimate, partial(embed, texts), texts, self._terms)
        return await _booked(work, attempt, self._meter, self._spend)


class MeteredReranker:
    """A reranker whose attempts are counted by a meter; `spend` keeps what they cost before scores are returned."""

    def __init__(self, reranker: Reranker, meter: Meter, terms: Terms, spend: Spend) -> None:
        self._reranker = reranker
        self._meter = meter
        self._terms = terms
        self._spend = spend

    @property
    def identity(self) -> str:
        """That of the reranker."""
        return self._reranker.identity

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, higher is better."""
        if not texts:
            return []
        pairs = [each for text in texts for each in (question, text)]  # some services count the question with each
        attempt = Attempt(stage=Stage.RERANK, terms=self._terms, most=partial(_most_of, pairs, self._terms))
        if isinstance(self._reranker, CountingReranker):
            work = partial(self._reranker.score_counted, question, texts)
        else:
            work = partial(
                _with_estimate, partial(self._reranker.score, question, texts), [question, *texts], self._terms
            )
        return await _booked(work, attempt, self._meter, self._spend)


async def _booked(
    work: Callable[[], Awaitable[tuple[T, TokenCount]]], attempt: Attempt, meter: Meter, spend: Spend
) -> T:
    """Run one attempt and keep what it cost, whatever became of it."""
    call = meter.child()
    try:
        result, _ = await call.run(work, attempt, _second)
        return result
    finally:
        if rows := call.rows():
            await unbroken(persist(partial(spend, rows)))


async def _with_estimate(work: Callable[[], Awaitable[T]], texts: Sequence[str], terms: Terms) -> tuple[T, TokenCount]:
    return await work(), TokenCount(input=sum(map(terms.count, texts)))


def _most_of(texts: Sequence[str], terms: Terms) -> TokenCount:
    """Return the most tokens a service may count of texts that we have but estimated."""
    return TokenCount(input=math.ceil(MARGIN * sum(map(terms.count, texts))) + TOKENS_A_TEXT * len(texts))


def _most(request: ChatRequest, terms: Terms) -> TokenCount:
    texts = [*(message.text for message in request.messages), *([request.schema] if request.schema else ())]
    given = _most_of(texts, terms)
    return TokenCount(input=given.input, output=request.max_output_tokens)


def _tokens_of(completion: Completion) -> TokenCount | None:
    return None if completion.finish is FinishReason.INTERRUPTED else completion.tokens


def _second(pair: tuple[object, TokenCount]) -> TokenCount:
    return pair[1]
