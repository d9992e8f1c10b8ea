"""Derivation: what every derivation that is made on demand is, and what it is made with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quipu.errors import Unavailable
from quipu.model.derivation import DerivationResult, DerivationState, RefreshCost
from quipu.model.event import EventSink, ignore_event
from quipu.ports.providers import LLM, Embedder, Tokenizer
from quipu.ports.store import ReadView, Store
from quipu.ports.topology import TopologyIndex
from quipu.ports.vector_index import VectorIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationContext:
    """What derivations are made with. `llm` is None where there is no model: then rules and quotes stand in.

    `llm` keeps its replies, so that what was asked before costs nothing. `language` "" is that of the texts. `n_ahead`
    is how many calls should be waiting for a reply at any time. `on_embedded` is told of vectors that are kept.
    """

    store: Store
    vectors: VectorIndex
    embedder: Embedder
    topology: TopologyIndex
    tokenizer: Tokenizer
    llm: LLM | None = None
    language: str = ""
    n_ahead: int = 1
    on_event: EventSink = ignore_event
    on_embedded: Callable[[int], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildEstimate:
    """What making all of a derivation anew would cost, about, and in words what is not made anew, or given up."""

    cost: RefreshCost = field(default_factory=RefreshCost)
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """Something made of the facts when it is first asked for, and kept up to date from then on.

    `refresh` brings it up to date, or with True makes all of it anew; what it has made is committed as it comes, and
    what stands in the way of the rest is reported. `state` compares it with the view, without a model. `needs` are the
    names of derivations to be refreshed before. `anew` tells about what making all of it anew would cost; without it
    that is what bringing it up to date costs, as vectors of texts that stay are kept. `check` raises Unavailable where
    something it takes is not installed.
    """

    name: str
    summary: str
    read_state: Callable[[ReadView, DerivationContext], Awaitable[DerivationState]]
    refresh: Callable[[DerivationContext, bool], Awaitable[DerivationResult]]
    needs: tuple[str, ...] = ()
    asks_model: bool = False
    estimate_rebuild: Callable[[ReadView, DerivationContext], Awaitable[RebuildEstimate]] | None = None
    check_installed: Callable[[], None] = lambda: None

    def unavailable_reason(self) -> str:
        """Return why it cannot be refreshed as things stand, with the remedy; "" where it can."""
        try:
            self.check_installed()
        except Unavailable as error:
            return str(error)
        return ""
