"""Derivation: the interface of every derivation that is made on demand, its inputs, and its record in the store.

Vectors, which many derivations need, are computed here as well: `embed_stale`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from quipu.errors import Unavailable
from quipu.model.chat import PromptText
from quipu.model.delta import Delta, SynonymUpdate, VectorRow
from quipu.model.derivation import DerivationRecord, DerivationResult, DerivationState, Freshness, RefreshCost
from quipu.model.event import EventSink, Progress, ignore_event
from quipu.ports.derivation_view import DerivationCounts
from quipu.ports.providers import LLM, Embedder, Tokenizer
from quipu.ports.store import ReadView, Store
from quipu.ports.topology import TopologyIndex
from quipu.ports.vector_index import VectorIndex
from quipu.text.formatting import format_count

TEXTS_PER_COMMIT = 1_024
TEXTS_PER_CALL = 128  # also the step of progress events


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationContext:
    """What derivations may use. Without a model (`llm` is None) texts are written from sentences of the documents.

    `llm` must cache its replies, so that a repeated request costs nothing. With `language` "" texts are in the language
    of the documents. `prompts` are the user's own instructions. `n_ahead` is how many requests should be waiting for a
    reply at any time. `on_embedded` receives the number of vectors in each commit of vectors.
    """

    store: Store
    vectors: VectorIndex
    embedder: Embedder
    topology: TopologyIndex
    tokenizer: Tokenizer
    llm: LLM | None = None
    language: str = ""
    prompts: tuple[PromptText, ...] = ()
    n_ahead: int = 1
    on_event: EventSink = ignore_event
    on_embedded: Callable[[int], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildEstimate:
    """The approximate cost of a rebuild; `note` says in words what the rebuild keeps or loses."""

    cost: RefreshCost = field(default_factory=RefreshCost)
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """Something computed from the facts when it is first needed, and kept up to date from then on.

    `read_state` compares it with a view, without a model. `refresh` brings it up to date, or rebuilds all of it if its
    second argument is True. It commits results as they are made, and reports what it could not make. `needs` are the
    names of derivations to refresh first. `estimate_rebuild` returns the cost of a rebuild; without it a rebuild costs
    as much as a refresh, because vectors of unchanged texts are kept. `check_installed` raises Unavailable if an
    optional library is missing.
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
        """Return why it cannot be refreshed on this system, with the remedy; "" if it can."""
        try:
            self.check_installed()
        except Unavailable as error:
            return str(error)
        return ""


async def read_row_state(
    view: ReadView, name: str, identity: str, *, noun: str, bytes_per_item: int = 0
) -> DerivationState:
    """Return the state of a derivation whose items the store counts; `noun` names one of them, as in "sentence"."""
    record, counts = (await view.derivations()).get(name), await view.derivation_counts(name)
    is_stale = counts.n_stale > 0 or (record is not None and record.identity != identity)
    return DerivationState(
        name=name,
        freshness=Freshness.MISSING if record is None else Freshness.STALE if is_stale else Freshness.FRESH,
        contents=format_count(counts.n_items, noun) if record is not None else "",
        n_items=counts.n_items,
        n_stale=counts.n_stale,
        n_bytes=counts.n_items * bytes_per_item,
        cost=RefreshCost(n_texts=counts.n_texts),
    )


async def read_counts(store: Store, name: str) -> DerivationCounts:
    """Return how many items a derivation has now, and how many of them are stale."""
    async with store.view() as view:
        return await view.derivation_counts(name)


async def read_identity(store: Store, name: str) -> str:
    """Return the identity (algorithm, version, parameters) a derivation was made with, "" if it was never made."""
    async with store.view() as view:
        record = (await view.derivations()).get(name)
    return record.identity if record is not None else ""


async def record_derivation(
    store: Store, name: str, identity: str, *, synonym_update: SynonymUpdate | None = None
) -> None:
    """Record that a derivation is kept with this identity; a synonym update is part of the same commit."""
    async with store.view() as view:
        revision = view.revision
    record = DerivationRecord(name=name, identity=identity, revision=revision)
    await store.commit(Delta(derivations=[record], synonyms=synonym_update))


async def embed_stale(
    store: Store,
    embedder: Embedder,
    on_event: EventSink,
    on_embedded: Callable[[int], None] = lambda _: None,
    *,
    texts_per_call: int = TEXTS_PER_CALL,
) -> int:
    """Compute the missing vectors of this embedder and commit them batch by batch; return how many.

    If the embedder fails or the task is cancelled, the vectors computed by then are committed first. `on_embedded`
    receives the number of vectors in each commit. Raises Unavailable if a vector has the wrong shape.
    """
    n_done, is_full = 0, True
    while is_full and (text_by_hash := await store.texts_without_vector(embedder.identity, TEXTS_PER_COMMIT)):
        # Texts of similar length go together, because models pad a batch to its longest text.
        ordered = sorted(text_by_hash.items(), key=lambda pair: (len(pair[1]), pair[0]))
        is_full = len(ordered) == TEXTS_PER_COMMIT  # then this may not be the last batch
        rows: list[VectorRow] = []
        try:
            for start in range(0, len(ordered), texts_per_call):
                rows += await _embed(dict(ordered[start : start + texts_per_call]), embedder)
                on_event(Progress(stage="embed", n_done=n_done + len(rows), n_total=n_done + len(ordered) + is_full))
        finally:
            if rows:
                await store.commit(Delta(vectors=sorted(rows, key=lambda row: row.text_hash)))
                on_embedded(len(rows))
        n_done += len(rows)
    return n_done


async def _embed(text_by_hash: Mapping[str, str], embedder: Embedder) -> list[VectorRow]:
    vectors = await embedder.embed(list(text_by_hash.values()))
    if vectors.shape != (len(text_by_hash), embedder.dimension):
        raise Unavailable(
            f"The embedder {embedder.identity} returned vectors of shape {vectors.shape} for {len(text_by_hash)} texts "
            f"of dimension {embedder.dimension}.",
            remedy="Check the model behind it.",
        )
    return [
        VectorRow(model=embedder.identity, text_hash=text_hash, vector=vector.astype(np.float16))
        for text_hash, vector in zip(text_by_hash, vectors, strict=True)
    ]
