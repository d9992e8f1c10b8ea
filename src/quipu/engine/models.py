"""Models: the chat models, embedder and reranker an engine may ask, and the meter that counts what they cost."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quipu.model.chat import Role
from quipu.model.usage import Price
from quipu.ports.embedder import Embedder
from quipu.ports.extractor import Extractor
from quipu.ports.llm import LLM
from quipu.ports.reranker import Reranker
from quipu.wrap.meter import Meter

if TYPE_CHECKING:
    from quipu.wrap.chain import EmbedderChain, LLMChain, RerankerChain


async def no_check(_meter: Meter) -> tuple[str, ...]:
    """Check nothing: there is nothing that could fail."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What reading with a model costs: its name, its price (None: unknown), and how many calls it takes at once."""

    model: str = ""
    price: Price | None = None
    concurrency: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models of an engine; without any, all is done in this process.

    `meter` counts everything; what belongs to one question or one run is counted by a child of it. `check` asks the
    models that documents need, counted by the meter it is given: it raises Unavailable where one cannot be had, and
    returns what a user should look at. `n_ahead` is how many calls should be waiting for a reply while summaries
    and reports are written. `reader` gives the extractor counted by a meter, where it asks a model.
    """

    meter: Meter = field(default_factory=Meter)
    chains: "Mapping[Role, LLMChain]" = field(default_factory=dict)
    embedder_chain: "EmbedderChain | None" = None
    reranker_chain: "RerankerChain | None" = None
    reading: Reading = Reading()
    check: Callable[[Meter], Awaitable[tuple[str, ...]]] = no_check
    reader: Callable[[Meter], Extractor] | None = None
    n_ahead: int = 1
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()

    @property
    def asks_services(self) -> bool:
        """Whether anything is asked that is waited for, and may be paid for."""
        return bool(self.chains or self.embedder_chain or self.reranker_chain)

    def llm(self, role: Role, meter: Meter | None = None) -> LLM | None:
        """Return the model for this work, counted by `meter`; None where there is none."""
        chain = self.chains.get(role)
        return chain.llm(meter or self.meter) if chain else None

    def price(self, role: Role) -> Price | None:
        """Return the price of the model for this work; None where there is none, or it is not known."""
        chain = self.chains.get(role)
        return chain.price if chain else None

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
