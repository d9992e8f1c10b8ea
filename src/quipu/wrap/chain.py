"""Chain: a provider within all its wrappers, made anew for each meter from what all calls share."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from quipu.model.usage import Price
from quipu.ports.providers import LLM, Embedder, Reranker
from quipu.ports.reply_cache import ReplyCache
from quipu.wrap.batched import BatchedEmbedder, BatchingEmbedder
from quipu.wrap.cached import CachedLLM, Flights
from quipu.wrap.fallback import FallbackLLM, Outages
from quipu.wrap.guard import Guard, GuardedEmbedder, GuardedLLM, GuardedReranker
from quipu.wrap.meter import Meter, Terms
from quipu.wrap.metered import MeteredEmbedder, MeteredLLM, MeteredReranker, Spend
from quipu.wrap.remembered import Memory, RememberedEmbedder


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One model of a chain: what is asked, on which terms its calls are counted, what guards them (outermost first)."""

    llm: LLM
    terms: Terms
    guards: Sequence[Guard] = ()

    def metered(self, meter: Meter) -> LLM:
        """Return the model within its guards, counted by a meter."""
        return GuardedLLM(MeteredLLM(self.llm, meter, self.terms), self.guards)


class LLMChain:
    """A model and its fallbacks: cached( fallback( for each: guards( metered( provider ) ) ) )."""

    def __init__(self, links: Sequence[Link], replies: ReplyCache, outages: Outages | None = None) -> None:
        self._links = links
        self._replies = replies
        self._outages = outages or Outages()
        self._flights = Flights()

    @property
    def identity(self) -> str:
        """That of the first model."""
        return self._links[0].llm.identity

    @property
    def price(self) -> Price | None:
        """That of the first model, None where it is not known."""
        return self._links[0].terms.price

    def llm(self, meter: Meter) -> LLM:
        """Return the chain, counted by a meter: that of the engine, or of a question."""
        identities = [link.llm.identity for link in self._links]
        return CachedLLM(self._uncached, identities, self._replies, meter, self._flights)

    def _uncached(self, meter: Meter) -> LLM:
        return FallbackLLM([link.metered(meter) for link in self._links], self._outages)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderChain:
    """An embedder: remembered( batched( guards( metered( provider ) ) ) ); `spend` keeps what calls cost."""

    provider: Embedder
    terms: Terms
    spend: Spend
    guards: Sequence[Guard] = ()
    memory: Memory = field(default_factory=Memory)

    def embedder(self, meter: Meter) -> Embedder:
        """Return the chain, counted by a meter."""
        metered = MeteredEmbedder(self.provider, meter, self.terms, self.spend)
        embedder: Embedder = GuardedEmbedder(metered, self.guards)
        if isinstance(self.provider, BatchingEmbedder):
            embedder = BatchedEmbedder(embedder, self.provider)
        return RememberedEmbedder(embedder, self.memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerChain:
    """A reranker: guards( metered( provider ) ); `spend` keeps what calls cost."""

    provider: Reranker
    terms: Terms
    spend: Spend
    guards: Sequence[Guard] = ()

    def reranker(self, meter: Meter) -> Reranker:
        """Return the chain, counted by a meter."""
        return GuardedReranker(MeteredReranker(self.provider, meter, self.terms, self.spend), self.guards)
