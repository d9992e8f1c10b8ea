"""Components: everything an engine is made of, the models it may ask, and the counters of their calls."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from quipu.derive.catalog import CATALOG
from quipu.derive.derivation import Derivation, DerivationContext
from quipu.derive.summaries import SummaryOptions
from quipu.engine.reopenable_view import RetrievalTurns
from quipu.errors import InvalidInput
from quipu.ingest.documents import IngestConfig
from quipu.ingest.workers import shared_limits
from quipu.model.chat import ChatRequest, Completion, Role
from quipu.model.event import EventSink, ignore_event
from quipu.model.query import Filter, Query
from quipu.model.usage import MICRO, USD, Price, SpendingLimit
from quipu.ports.conversations import ConversationStore
from quipu.ports.history import ArchiveStore, EditStore
from quipu.ports.ingest import Extractor
from quipu.ports.providers import LLM, Embedder, Reranker, TextSink, Tokenizer, ignore_text
from quipu.ports.store import ReadView, Store, WorkerLedger
from quipu.ports.topology import TopologyIndex
from quipu.ports.vector_index import VectorIndex
from quipu.wrap.embedder import Vectors
from quipu.wrap.meter import Meter, SpendingBudget

if TYPE_CHECKING:
    from quipu.engine.past import PastIndexes
    from quipu.wrap.chain import EmbedderChain, LLMChain, RerankerChain
    from quipu.wrap.concurrency import AdaptiveLimit


async def check_nothing(_meter: Meter) -> tuple[str, ...]:
    """Check no model: rules cannot fail."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionModel:
    """The model that reads chunks: its name ("": none), its price (None: unknown) and how many calls run at once."""

    model: str = ""
    price: Price | None = None
    concurrency: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models of an engine. Without any, everything is computed in this process.

    `meter` counts every call; a child of it counts the calls of one question or one run. `check` asks the models that
    documents need and counts these calls by the meter it is given. It raises Unavailable where a model does not answer,
    and returns notes for the user. `n_ahead` is how many calls wait for a reply at once while summaries and reports are
    written, `n_pictures_ahead` while pictures are described. `reader` returns the extractor that counts its calls by a
    meter; None where the extractor asks no model. `currency` is that of all prices.
    """

    meter: Meter = field(default_factory=Meter)
    chains: "Mapping[Role, LLMChain]" = field(default_factory=dict)
    embedder_chain: "EmbedderChain | None" = None
    reranker_chain: "RerankerChain | None" = None
    local_reranker: Reranker | None = None  # runs in this process: neither counted nor limited
    reading: ExtractionModel = ExtractionModel()
    check: Callable[[Meter], Awaitable[tuple[str, ...]]] = check_nothing
    reader: Callable[[Meter], Extractor] | None = None
    n_ahead: int = 1
    n_pictures_ahead: int = 1
    currency: str = USD
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()
    limits: "Sequence[AdaptiveLimit]" = ()  # of calls at once, one per service

    @property
    def asks_services(self) -> bool:
        """Whether any model runs outside of this process, where a call takes time and may cost money."""
        return bool(self.chains or self.embedder_chain or self.reranker_chain)

    def llm(self, role: Role, meter: Meter | None = None) -> LLM | None:
        """Return the model for this role, counted by `meter`; None where no model is set for it."""
        chain = self.chains.get(role)
        return chain.llm(meter or self.meter) if chain else None

    def price(self, role: Role) -> Price | None:
        """Return the price of the model for this role; None where there is no model or its price is unknown."""
        chain = self.chains.get(role)
        return chain.pricing.price if chain else None

    def without_keeping_replies(self) -> "Models":
        """Return the same models, whose replies are paid for and counted, but not kept in the index."""
        return replace(self, chains={role: chain.without_keeping_replies() for role, chain in self.chains.items()})

    def share_calls(self, n_workers: int) -> None:
        """Leave the same part of the calls at once to each of `n_workers` processes."""
        for limit in self.limits:
            limit.share(n_workers)

    def names(self) -> tuple[tuple[str, str], ...]:
        """Return each role that has a model, with the name of the model."""
        return tuple((role.value, chain.identity) for role, chain in self.chains.items())

    def embedder(self, local: Embedder, meter: Meter) -> Embedder:
        """Return the remote embedder, counted by `meter`; without one, the `local` embedder, which costs nothing."""
        return self.embedder_chain.embedder(meter) if self.embedder_chain else local

    def reranker(self, meter: Meter) -> Reranker | None:
        """Return the reranker, counted by `meter`; None where there is none."""
        return self.reranker_chain.reranker(meter) if self.reranker_chain else self.local_reranker

    async def close(self) -> None:
        """Close every connection."""
        for close in self.closing:
            await close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Everything an engine is made of; `quipu.wiring` puts it together from settings.

    `place` is where the index is, for messages: a folder or an address. `path` is the folder of the files beside the
    store. Ids of added files are paths below `outer_folder` unless the caller names another.
    `bulk_embedder` computes the same vectors as `embedder`, for many texts at a time; None: `embedder` computes all.
    `tokenizer` counts the tokens of contexts, None: the one that measures chunks. The index never depends on it.
    `make_query` turns the text of a question into a Query by the settings. `is_index` says whether a file is the
    database of an index: such a file is not read as a document when its folder is added. `retrieval_turns` lets one
    question search at a time, because Python runs one thread at a time, and more only add switches. `conversations`,
    `edits`, `archives` and `worker_ledger` are None for a store that has none, and so is `past`, the index at dates.
    `keeps_history` says whether what is replaced and removed stays until a purge. Entities that look like one with at
    least the score `merge_duplicates_above` are merged after documents are added; 0: never.
    """

    path: Path
    store: Store
    vectors: VectorIndex
    topology: TopologyIndex
    embedder: Embedder
    ingest_config: IngestConfig
    make_query: Callable[[str], Query]
    bulk_embedder: Embedder | None = None
    models: Models = field(default_factory=Models)
    summaries: SummaryOptions = field(default_factory=SummaryOptions)
    catalog: tuple[Derivation, ...] = CATALOG
    is_index: Callable[[Path], bool] = lambda _: False
    tokenizer: Tokenizer | None = None
    retrieval_turns: RetrievalTurns = field(default_factory=RetrievalTurns)
    conversations: ConversationStore | None = None
    edits: EditStore | None = None
    archives: ArchiveStore | None = None
    worker_ledger: Callable[[], WorkerLedger] | None = None
    place: str = ""
    outer_folder: Path = Path()
    merge_duplicates_above: float = 0.0
    past: "PastIndexes | None" = None
    keeps_history: bool = False

    @property
    def context_tokenizer(self) -> Tokenizer:
        """What counts the tokens of contexts."""
        return self.tokenizer or self.ingest_config.tokenizer

    def within(self, max_cost: float) -> "Components":
        """Return the same components, whose models may cost at most `max_cost` units of money; 0: as these.

        The limits of these components hold, too. Raises InvalidInput for what is no amount of money.
        """
        if not max_cost:
            return self
        if not 0 < max_cost < math.inf:
            raise InvalidInput(f"max_cost = {max_cost!r} is not allowed.", remedy="Use a positive number, or 0.")
        limit = SpendingLimit(cost=round(max_cost * MICRO), currency=self.models.currency)
        meter = self.models.meter.child(budget=SpendingBudget(limit))
        return replace(self, models=replace(self.models, meter=meter))

    @asynccontextmanager
    async def at(self, as_of: str) -> AsyncIterator[tuple["Components", str]]:
        """Return what shows, under an `as_of` filter, what held at a date, and a note for the trace; "" for now."""
        if not as_of or self.past is None:
            yield self, ""
            return
        async with self.past.at(as_of, self) as (components, note):
            yield components, note

    @asynccontextmanager
    async def view_at(self, allowed: Filter) -> AsyncIterator[tuple["Components", ReadView]]:
        """Open a view of what a filter allows, as of its date, and return it with the components that it belongs to."""
        async with self.at(allowed.as_of) as (then, _), then.store.view(allowed) as view:
            yield then, view

    @asynccontextmanager
    async def sharing_limits(self) -> AsyncIterator["Components"]:
        """Be a worker in this context: all workers share the budget of these components, and the calls at once."""
        if self.worker_ledger is None or not self.models.asks_services:
            yield self
            return
        ledger = self.worker_ledger()
        async with shared_limits(ledger, self.models.share_calls):
            yield replace(self, models=replace(self.models, meter=self.models.meter.sharing(ledger)))

    async def drop_past(self) -> None:
        """Delete the copies of the index at dates, of all processes."""
        if self.past is not None and (self.past.copies or self.past.folder.exists()):
            await self.past.drop()

    async def close_past(self) -> None:
        """Delete the copies that this process has made."""
        if self.past is not None and self.past.copies:
            await self.past.close()

    def derivation_context(self, on_event: EventSink = ignore_event) -> DerivationContext:
        """Return what derivations are computed with."""
        return DerivationContext(
            store=self.store,
            vectors=self.vectors,
            embedder=self.embedder,
            topology=self.topology,
            tokenizer=self.ingest_config.tokenizer,
            llm=self.models.llm(Role.REPORT),
            language=self.summaries.language,
            prompts=self.summaries.prompts,
            n_ahead=self.models.n_ahead,
            on_event=on_event,
        )

    def metered_by(self, meter: Meter) -> "Components":
        """Return the same components, with every model call made for documents counted by `meter`."""
        models, ingest_config = replace(self.models, meter=meter), self.ingest_config
        extractor = models.reader(meter) if models.reader else ingest_config.extractor
        pictures, llm = ingest_config.pictures, models.llm(Role.VISION)
        ingest_config = replace(
            ingest_config,
            extractor=extractor,
            embedder=models.embedder(ingest_config.embedder, meter),
            pictures=replace(pictures, llm=llm) if pictures and llm else None,
        )
        return replace(self, models=models, ingest_config=ingest_config, embedder=models.embedder(self.embedder, meter))


class ModelAccess:
    """The methods of an engine that ask its models for anything: counted, and within the budget."""

    _components: Components

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text, shape [n, dimension], by the embedder of the index; nothing is kept."""
        components = self._components
        return await components.metered_by(components.models.meter.child("")).embedder.embed(texts)

    async def complete(self, request: ChatRequest) -> Completion:
        """Return the reply of the model of the request's role, from the cache if it is there.

        Raises InvalidInput if no model is set for the role, and what `LLM.complete` raises.
        """
        llm = self._components.models.llm(request.role)
        if llm is None:
            remedy = f"Set llm, or llm in [role.{request.role}] of quipu.toml."
            raise InvalidInput(f"No language model is set for the role {request.role}.", remedy=remedy)
        return await llm.complete(request)


class CallCounter:
    """Provides the chat models of one question and counts their calls in `n_calls`.

    `meter` counts only calls that were paid for. `n_calls` also counts replies that came from the cache, because they
    show how many calls a method takes. A call that failed is not counted.
    """

    def __init__(self, models: Models, meter: Meter) -> None:
        self.meter = meter
        self.n_calls = 0
        self._models = models

    def llm(self, role: Role) -> LLM | None:
        """Return the model for this role; None where there is none."""
        llm = self._models.llm(role, self.meter)
        return _CountedLLM(llm, self) if llm else None


class _CountedLLM:
    """A chat model whose calls are counted by a CallCounter."""

    def __init__(self, llm: LLM, counter: CallCounter) -> None:
        self._llm = llm
        self._counter = counter

    @property
    def identity(self) -> str:
        return self._llm.identity

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the model's reply and count the call."""
        completion = await self._llm.complete(request, on_text)
        self._counter.n_calls += 1
        return completion
