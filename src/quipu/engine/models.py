"""Models: the chat models, embedder and reranker an engine may ask, and the meter that counts what they cost."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from quipu.model.chat import Role, TokenCount
from quipu.model.usage import Price, UsageRow
from quipu.ports.embedder import Embedder
from quipu.ports.llm import LLM
from quipu.ports.reranker import Reranker
from quipu.wrap.meter import Meter

if TYPE_CHECKING:
    from quipu.wrap.chain import EmbedderChain, LLMChain, RerankerChain


async def no_check() -> None:
    """Check nothing: there is nothing that could fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What reading with a model costs: its name, its price (None: unknown), and how many calls it takes at once."""

    model: str = ""
    price: Price | None = None
    concurrency: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models of an engine; without any, all is done in this process.

    `meter` counts everything; what belongs to one question is counted by a child of it. `check` raises Unavailable
    where the model that reads does not answer. `n_ahead` is how many calls should be waiting for a reply while
    summaries are written.
    """

    meter: Meter = field(default_factory=Meter)
    chains: "Mapping[Role, LLMChain]" = field(default_factory=dict)
    embedder_chain: "EmbedderChain | None" = None
    reranker_chain: "RerankerChain | None" = None
    reading: Reading = Reading()
    check: Callable[[], Awaitable[None]] = no_check
    n_ahead: int = 1
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()

    def llm(self, role: Role, meter: Meter | None = None) -> LLM | None:
        """Return the model for this work, counted by `meter`; None where there is none."""
        chain = self.chains.get(role)
        return chain.llm(meter or self.meter) if chain else None

    def names(self) -> tuple[tuple[str, str], ...]:
        """Return each role that has a model, and the model's name."""
        return tuple((role.value, chain.identity) for role, chain in self.chains.items())

    def embedder(self, otherwise: Embedder, meter: Meter) -> Embedder:
        """Return the embedder counted by `meter`, or the one that costs nothing."""
        return self.embedder_chain.embedder(meter) if self.embedder_chain else otherwise

    def reranker(self, meter: Meter) -> Reranker | None:
        """Return the reranker counted by `meter`; None where there is none."""
        return self.reranker_chain.reranker(meter) if self.reranker_chain else None

    async def close(self) -> None:
        """Close every connection."""
        for close in self.closing:
            await close()


def spent_between(before: Iterable[UsageRow], after: Iterable[UsageRow]) -> tuple[UsageRow, ...]:
    """Return what was counted between two states of a meter or of the store."""
    known = {row.key: row for row in before}
    rows = (_less(row, known[row.key]) if row.key in known else row for row in after)
    return tuple(row for row in rows if row.n_calls or row.n_interrupted)


def _less(row: UsageRow, before: UsageRow) -> UsageRow:
    return replace(
        row,
        n_calls=row.n_calls - before.n_calls,
        tokens=_fewer(row.tokens, before.tokens),
        cost=row.cost - before.cost,
        n_unpriced=row.n_unpriced - before.n_unpriced,
        n_interrupted=row.n_interrupted - before.n_interrupted,
        interrupted_tokens=_fewer(row.interrupted_tokens, before.interrupted_tokens),
        interrupted_cost=row.interrupted_cost - before.interrupted_cost,
    )


def _fewer(tokens: TokenCount, before: TokenCount) -> TokenCount:
    return TokenCount(
        input=tokens.input - before.input, cached=tokens.cached - before.cached, output=tokens.output - before.output
    )
