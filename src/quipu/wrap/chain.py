"""Model chains: a provider inside all its wrappers, built for each meter from the parts that all calls share."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quipu.errors import Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, Completion
from quipu.ports.providers import LLM, Embedder, Reranker, TextSink, ignore_text
from quipu.ports.store import ReplyCache
from quipu.wrap.embedder import (
    BatchingEmbedder,
    BatchLayer,
    EmbedderLayer,
    QueryVectorCache,
    WrappedEmbedder,
    guard_layer,
)
from quipu.wrap.guard import CircuitBreaker, Guard
from quipu.wrap.meter import Meter, ModelPricing
from quipu.wrap.metered_models import EmbeddingMeter, MeteredLLM, MeteredReranker, SaveUsage
from quipu.wrap.reply_cache import CachedLLM, InFlightRequests, UnkeptReplies

_log = logging.getLogger(__name__)

OUTAGE_S = 60.0  # a model that has failed is asked after its fallbacks for this long


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLink:
    """One model of a chain: its provider, how its calls are counted, and its guards (the first is the outermost)."""

    llm: LLM
    pricing: ModelPricing
    guards: Sequence[Guard] = ()

    def metered(self, meter: Meter) -> LLM:
        """Return the model inside its guards, counted by a meter."""
        return MeteredLLM(self.llm, meter, self.pricing, self.guards)


class LLMChain:
    """A chat model and its fallbacks: cache( fallback( for each model: guards( meter( provider ) ) ) )."""

    def __init__(
        self, links: Sequence[ModelLink], replies: ReplyCache, breakers: Mapping[str, CircuitBreaker] | None = None
    ) -> None:
        self._links = links
        self._replies = replies
        self._breakers = breakers or outage_breakers([link.llm for link in links])
        self._in_flight = InFlightRequests()

    @property
    def identity(self) -> str:
        """Identity of the first model."""
        return self._links[0].llm.identity

    @property
    def pricing(self) -> ModelPricing:
        """Name and price of the first model."""
        return self._links[0].pricing

    def llm(self, meter: Meter) -> LLM:
        """Return the chain, counted by the meter of the engine or of one question."""
        identities = [link.llm.identity for link in self._links]
        return CachedLLM(self._uncached, identities, self._replies, meter, self._in_flight)

    def saved_or(self, stand_in: LLM) -> LLM:
        """Return what replies as the cache does, and where it has no reply, as `stand_in`. No reply is kept."""
        return CachedLLM(lambda _: stand_in, [self.identity], UnkeptReplies(self._replies), Meter())

    def without_keeping_replies(self) -> "LLMChain":
        """Return the chain with a cache to which nothing is added: for replies about texts that must not stay."""
        return LLMChain(self._links, UnkeptReplies(self._replies), self._breakers)

    def _uncached(self, meter: Meter) -> LLM:
        return FallbackLLM([link.metered(meter) for link in self._links], self._breakers)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderChain:
    """An embedder: query cache( batches( guards( meter( provider ) ) ) ). `save_usage` saves what calls cost."""

    provider: Embedder
    pricing: ModelPricing
    save_usage: SaveUsage
    guards: Sequence[Guard] = ()
    cache: QueryVectorCache = field(default_factory=QueryVectorCache)

    def embedder(self, meter: Meter) -> Embedder:
        """Return the chain, counted by a meter."""
        layers: list[EmbedderLayer] = [guard_layer(self.guards), self._metering(meter)]
        if isinstance(self.provider, BatchingEmbedder):
            layers.insert(0, BatchLayer(self.provider))
        return WrappedEmbedder(self.provider, [self.cache, *layers])

    def single_attempt(self, meter: Meter) -> Embedder:
        """Return the provider without cache, batches and guards, counted by a meter."""
        return WrappedEmbedder(self.provider, [self._metering(meter)])

    def _metering(self, meter: Meter) -> EmbeddingMeter:
        return EmbeddingMeter(self.provider, meter, self.pricing, self.save_usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerChain:
    """A reranker: guards( meter( provider ) ). `save_usage` saves what calls cost."""

    provider: Reranker
    pricing: ModelPricing
    save_usage: SaveUsage
    guards: Sequence[Guard] = ()

    def reranker(self, meter: Meter) -> Reranker:
        """Return the chain, counted by a meter."""
        return MeteredReranker(self.provider, meter, self.pricing, self.save_usage, self.guards)


class FallbackLLM:
    """Several chat models: the first one that replies is used. A used-up budget is not a reason to ask the next one."""

    def __init__(self, llms: Sequence[LLM], breakers: Mapping[str, CircuitBreaker] | None = None) -> None:
        self._llms = llms
        self._breakers = breakers or outage_breakers(llms)

    @property
    def identity(self) -> str:
        return self._llms[0].identity

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the first reply of a model; it names the model if that is not the first one.

        If every model fails, raises the first error that is not Unavailable, and Unavailable only if there is no other.
        """
        errors: list[QuipuError] = []
        for llm in sorted(self._llms, key=lambda llm: self._breakers[llm.identity].is_open):
            try:
                completion = await llm.complete(request, on_text)
            except (Overloaded, Unavailable) as error:
                _log.warning("the model %s failed: %s", llm.identity, type(error).__name__)
                self._breakers[llm.identity].record_failure(error)
                errors.append(error)
            except (TooLong, Refused) as error:
                errors.append(error)
            else:
                return completion if llm is self._llms[0] else replace(completion, model=llm.identity)
        raise next((error for error in errors if not isinstance(error, Unavailable)), errors[0])


def outage_breakers(llms: Sequence[LLM], clock: Callable[[], float] = time.monotonic) -> dict[str, CircuitBreaker]:
    """Return a breaker by model identity that remembers an outage for `OUTAGE_S`. All calls of a role share them."""
    return {llm.identity: CircuitBreaker(open_s=OUTAGE_S, clock=clock) for llm in llms}
