"""Metered models: chat model, embedder and reranker whose attempts are counted one by one, inside their guards."""

import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

from quipu.model.chat import ChatRequest, Completion, FinishReason, Role, TokenCount
from quipu.model.usage import Stage, UsageRow
from quipu.ports.providers import LLM, Embedder, Reranker, TextSink, ignore_text
from quipu.wrap.embedder import Embed, EmbedCall, Vectors
from quipu.wrap.guard import Guard, ServiceCall, run_guarded
from quipu.wrap.meter import Meter, MeteredCall, ModelPricing
from quipu.wrap.persistence import write_durably

T = TypeVar("T")

TOKEN_MARGIN = 4 / 3  # a service may count this many times our own count
TOKENS_PER_TEXT = 8  # a service may add these for each message or text: its role, its start and end
_URGENT_ROLES = frozenset({Role.KEYWORDS, Role.ANSWER})
_RERANK = ServiceCall(kind="rerank", is_urgent=True)

SaveUsage = Callable[[Sequence[UsageRow]], Awaitable[None]]


@runtime_checkable
class CountingEmbedder(Protocol):
    """An embedder whose service reports how many tokens it read."""

    async def embed_counted(self, texts: Sequence[str], *, is_query: bool) -> tuple[Vectors, TokenCount]:
        """Return what `embed` (or `embed_queries`) returns, and the tokens read."""


@runtime_checkable
class CountingReranker(Protocol):
    """A reranker whose service reports how many tokens it read."""

    async def score_counted(self, question: str, texts: Sequence[str]) -> tuple[list[float], TokenCount]:
        """Return what `score` returns, and the tokens read."""


class MeteredLLM:
    """A chat model inside guards (the first is the outermost). A meter counts its attempts; the caller saves them."""

    def __init__(self, llm: LLM, meter: Meter, pricing: ModelPricing, guards: Sequence[Guard] = ()) -> None:
        self._llm = llm
        self._meter = meter
        self._pricing = pricing
        self._guards = guards

    @property
    def identity(self) -> str:
        return self._llm.identity

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply. Raises OverBudget before a call that may cost too much, and as `LLM.complete` does."""
        metered = MeteredCall(
            stage=Stage(request.role.value),
            pricing=self._pricing,
            max_tokens=partial(_max_tokens_of_request, request, self._pricing),
            subject=request.subject or self._meter.subject or next(iter(request.documents), ""),
        )
        attempt = partial(
            self._meter.run, partial(self._llm.complete, request, on_text), metered, _tokens_of_completion
        )
        call = ServiceCall(kind=request.role.value, is_urgent=request.role in _URGENT_ROLES)
        return await run_guarded(self._guards, attempt, call)


class EmbeddingMeter:
    """The innermost layer of a wrapped embedder: a meter counts each call, and its cost is saved before it returns."""

    def __init__(self, embedder: Embedder, meter: Meter, pricing: ModelPricing, save_usage: SaveUsage) -> None:
        self._embedder = embedder
        self._meter = meter
        self._pricing = pricing
        self._save_usage = save_usage

    async def __call__(self, call: EmbedCall, below: Embed) -> Vectors:
        """Return one vector per text."""
        texts = call.texts
        metered = MeteredCall(
            stage=Stage.EMBED, pricing=self._pricing, max_tokens=partial(_max_tokens_of_texts, texts, self._pricing)
        )
        if isinstance(self._embedder, CountingEmbedder):
            work = partial(self._embedder.embed_counted, texts, is_query=call.is_query)
        else:
            work = partial(_with_estimate, partial(below, call), texts, self._pricing)
        return await _run_and_save(work, metered, self._meter, self._save_usage)


class MeteredReranker:
    """A reranker inside guards (the first is the outermost), whose attempts a meter counts.

    `save_usage` saves what an attempt cost before its scores are returned.
    """

    def __init__(
        self,
        reranker: Reranker,
        meter: Meter,
        pricing: ModelPricing,
        save_usage: SaveUsage,
        guards: Sequence[Guard] = (),
    ) -> None:
        self._reranker = reranker
        self._meter = meter
        self._pricing = pricing
        self._save_usage = save_usage
        self._guards = guards

    @property
    def identity(self) -> str:
        return self._reranker.identity

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        return await run_guarded(self._guards, partial(self._score, question, texts), _RERANK)

    async def _score(self, question: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        pairs = [part for text in texts for part in (question, text)]  # some services count the question for each text
        metered = MeteredCall(
            stage=Stage.RERANK, pricing=self._pricing, max_tokens=partial(_max_tokens_of_texts, pairs, self._pricing)
        )
        if isinstance(self._reranker, CountingReranker):
            work = partial(self._reranker.score_counted, question, texts)
        else:
            score = partial(self._reranker.score, question, texts)
            work = partial(_with_estimate, score, [question, *texts], self._pricing)
        return await _run_and_save(work, metered, self._meter, self._save_usage)


async def _run_and_save(
    work: Callable[[], Awaitable[tuple[T, TokenCount]]], call: MeteredCall, meter: Meter, save_usage: SaveUsage
) -> T:
    """Run one attempt and save what it cost, even if it failed."""
    attempt_meter = meter.child()
    try:
        result, _ = await attempt_meter.run(work, call, lambda counted: counted[1])
        return result
    finally:
        if rows := attempt_meter.rows():
            await write_durably(partial(save_usage, rows))


async def _with_estimate(
    work: Callable[[], Awaitable[T]], texts: Sequence[str], pricing: ModelPricing
) -> tuple[T, TokenCount]:
    return await work(), TokenCount(input=sum(map(pricing.count_tokens, texts)))


def _max_tokens_of_texts(texts: Sequence[str], pricing: ModelPricing) -> TokenCount:
    """Return the most tokens a service may count for texts; our own count is an estimate."""
    n_tokens = sum(map(pricing.count_tokens, texts))
    return TokenCount(input=math.ceil(TOKEN_MARGIN * n_tokens) + TOKENS_PER_TEXT * len(texts))


def _max_tokens_of_request(request: ChatRequest, pricing: ModelPricing) -> TokenCount:
    texts = [*(message.text for message in request.messages), *([request.schema] if request.schema else ())]
    n_image_tokens = math.ceil(TOKEN_MARGIN * sum(image.n_tokens for image in request.images))
    return TokenCount(
        input=_max_tokens_of_texts(texts, pricing).input + n_image_tokens, output=request.max_output_tokens
    )


def _tokens_of_completion(completion: Completion) -> TokenCount | None:
    return None if completion.finish is FinishReason.INTERRUPTED else completion.tokens
