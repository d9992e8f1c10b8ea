"""Refresh: summaries, vectors and derivations are brought up to date after documents have changed."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from quipu.derive.catalog import get_derivation, resolve_needs
from quipu.derive.derivation import TEXTS_PER_CALL, TEXTS_PER_COMMIT, Derivation, embed_stale
from quipu.derive.summaries import summarise_stale
from quipu.engine.components import Components, Models
from quipu.errors import Mismatch, OverBudget, Overloaded, Refused, TooLong, Unavailable
from quipu.ingest.workers import lease_heartbeat
from quipu.model.chat import Role
from quipu.model.delta import Delta
from quipu.model.derivation import COMMUNITIES, IMPORTED_COMMUNITIES, IMPORTED_GRAPH, DerivationResult
from quipu.model.event import EventSink, Progress, ignore_event
from quipu.model.results import RefreshResult
from quipu.ports.store import ReadView, Store
from quipu.wrap.embedder import guarded_embedder
from quipu.wrap.guard import CircuitBreaker
from quipu.wrap.meter import annotate, span

_log = logging.getLogger(__name__)

T = TypeVar("T")

POLL_S = 0.2  # how often to look whether another process has given back the derivation lease
# Errors of a service that end its work, not the refresh: they are reported, and the next refresh may succeed.
_STOPPING = (OverBudget, Overloaded, Refused, TooLong, Unavailable)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshScope:
    """What a refresh covers: everything that is kept up to date, and the derivations in `names`.

    With `rebuild`, the named derivations, or all where none is named, are computed again from the start. Without
    `with_derivations` only vectors are computed: while documents wait in the queue, all else would be computed, and
    paid for, twice.
    """

    names: tuple[str, ...] = ()
    rebuild: bool = False
    with_derivations: bool = True

    def rebuilt(self, catalog: Sequence[Derivation]) -> Collection[str]:
        """Return the names of the derivations that are computed from the start, if they are kept or named."""
        if not self.rebuild:
            return ()
        return self.names or [derivation.name for derivation in catalog]


@asynccontextmanager
async def derivation_lease(store: Store, models: Models) -> AsyncIterator[None]:
    """Hold the derivation lease of the index within this context, and wait for it first.

    Only one process at a time asks models to derive something, so nothing is paid for twice. The next process sees all
    that the one before it has derived. The lease of a process that died ends by itself. If no model is set, nothing
    costs money, and the lease is not needed.
    """
    if not models.chains and models.embedder_chain is None:
        yield
        return
    while True:
        async with store.derivation_lease() as is_held:
            if is_held:
                async with lease_heartbeat(store):
                    yield
                return
        await asyncio.sleep(POLL_S)  # no event reaches us from another process


async def refresh_index(components: Components, on_event: EventSink, scope: RefreshScope) -> RefreshResult:
    """Write missing summaries, compute missing vectors, then refresh the derivations in order of need.

    The result says what stopped the work. Raises NotFound for an unknown derivation in the scope, and Unavailable
    where a named derivation needs a library that is not installed; both before any work is done.
    """
    for derivation in resolve_needs(_checked(scope.names, components.catalog), components.catalog):
        derivation.check_installed()
    start = time.perf_counter()
    with span("quipu.refresh"):
        result = await _refreshed(components, on_event, scope)
        annotate(n_embedded=result.n_embedded, n_summarised=result.n_summarised)
    _log.info(
        "refreshed: %d vectors, %d summaries, %d derivations, %.1f s",
        *(result.n_embedded, result.n_summarised, len(result.derivations), time.perf_counter() - start),
    )
    if result.stopped or result.summary_failures:
        _log.warning("the refresh is not complete; its result says why")
    return result


async def _refreshed(components: Components, on_event: EventSink, scope: RefreshScope) -> RefreshResult:
    result = await _summarise(components, on_event) if scope.with_derivations else RefreshResult()
    # With retries an outage may take minutes, so a service that is unavailable is asked only once.
    embedder = guarded_embedder(components.bulk_embedder or components.embedder, [CircuitBreaker()])
    run = _RefreshRun(replace(components, embedder=embedder), on_event, stopped=result.stopped)
    await run.embed()
    await run.catch_up()
    if scope.with_derivations:
        async with components.store.view() as view:
            derivations = await derivations_in_scope(view, scope, components.catalog)
        await run.derive(derivations, scope.rebuilt(components.catalog))
    return replace(result, n_embedded=run.n_embedded, stopped=run.stopped, derivations=tuple(run.results))


async def refresh_without_chat(components: Components) -> None:
    """Bring vectors, files and derivations up to date, without asking a chat model and without its texts."""
    reason = "no chat model is asked" if components.models.chains else ""
    run = _RefreshRun(components, ignore_event, stopped=reason)
    await run.embed()
    await run.catch_up()
    async with components.store.view() as view:
        derivations = await derivations_in_scope(view, RefreshScope(), components.catalog)
    await run.derive(derivations, ())


async def drop_derivations(components: Components, names: Sequence[str]) -> tuple[str, ...]:
    """Drop these derivations and those that need them; return the names of what was dropped, in order of need."""
    chosen = {get_derivation(name, components.catalog).name for name in names}
    for derivation in components.catalog:  # in order of need: a derivation comes after those it needs
        if chosen.intersection(derivation.needs):
            chosen.add(derivation.name)
    async with components.store.view() as view:
        existing = await view.derivations()
    dropped = tuple(
        derivation.name
        for derivation in components.catalog
        if derivation.name in chosen and derivation.name in existing
    )
    if dropped:
        imported = (
            (IMPORTED_GRAPH, IMPORTED_COMMUNITIES) if COMMUNITIES in dropped else ()
        )  # else the next refresh would restore them
        await components.store.commit(Delta(drop=(*dropped, *imported)))
    return dropped


async def derivations_in_scope(
    view: ReadView, scope: RefreshScope, catalog: Sequence[Derivation]
) -> tuple[Derivation, ...]:
    """Return the derivations that exist or are named, with all they need, in order of need.

    Raises NotFound for an unknown name.
    """
    existing = await view.derivations()
    names = [derivation.name for derivation in catalog if derivation.name in existing]
    return resolve_needs([*names, *_checked(scope.names, catalog)], catalog)


def _checked(names: Sequence[str], catalog: Sequence[Derivation]) -> list[str]:
    """Return these names. Raises NotFound for one that no derivation of the catalog has."""
    return [get_derivation(name, catalog).name for name in names]


async def _summarise(components: Components, on_event: EventSink) -> RefreshResult:
    llm = components.models.llm(Role.SUMMARISE)
    if llm is None:
        return RefreshResult()
    return await summarise_stale(
        components.store, llm, on_event, tokenizer=components.ingest_config.tokenizer, options=components.summaries
    )


@dataclass(slots=True)
class _RefreshRun:
    """The state of one refresh: its results so far, and why it stopped ("" where it did not).

    `mismatch` says that the vectors of the index come from another embedder, so that nothing can be derived from them.
    """

    components: Components
    on_event: EventSink
    stopped: str = ""
    mismatch: str = ""
    n_embedded: int = 0
    results: list[DerivationResult] = field(default_factory=list)

    async def embed(self) -> None:
        """Compute the missing vectors; none where the vectors of the index come from another embedder."""
        store, embedder = self.components.store, self.components.embedder
        n = TEXTS_PER_COMMIT if self.components.bulk_embedder else TEXTS_PER_CALL
        try:
            await store.set_embedder(embedder.identity, embedder.dimension)
            await embed_stale(store, embedder, self.on_event, self.count_embedded, texts_per_call=n)
        except Mismatch as error:
            self.mismatch = str(error)
            async with store.view() as view:
                n_stale = (await view.counts("stale_vectors")).stale_vectors
            self.stopped = self.stopped or (self.mismatch if n_stale else "")
        except _STOPPING as error:
            self.stopped = self.stopped or str(error)

    def count_embedded(self, n_embedded: int) -> None:
        """Count vectors that were stored."""
        self.n_embedded += n_embedded

    async def catch_up(self) -> None:
        """Bring the files beside the store, vectors and topology, up to its revision."""
        async with self.components.store.view() as view:
            await self.components.vectors.catch_up(view)
            await self.components.topology.catch_up(view)

    async def derive(self, derivations: Sequence[Derivation], rebuilt: Collection[str]) -> None:
        """Refresh these in order; after each one, embed the texts it wrote, since the next may need their vectors.

        When the work has stopped, derivations that ask no model are still refreshed, unless they need one that was
        skipped. A derivation whose library is not installed stays as it is, and so do those that need it.
        """
        skipped: set[str] = set()
        reason_by_name: dict[str, str] = {}
        for n_done, derivation in enumerate(derivations):
            name = derivation.name
            self.on_event(Progress(stage="derive", n_done=n_done, n_total=len(derivations), detail=name))
            reasons = [derivation.unavailable_reason(), *(reason_by_name.get(need, "") for need in derivation.needs)]
            if reason := next(filter(None, reasons), ""):
                reason_by_name[name] = reason
                _log.warning("derivation %s is left as it was: it needs a library that is not installed", name)
                self.results.append(DerivationResult(name=name, notes=(f"left as it was: {reason}",)))
                continue
            if self.mismatch or (self.stopped and (derivation.asks_model or skipped & set(derivation.needs))):
                skipped.add(name)
                self.results.append(DerivationResult(name=name, stopped=self.mismatch or self.stopped))
                continue
            result = await self._refresh(derivation, is_rebuild=name in rebuilt)
            self.results.append(result)
            if result.stopped:
                skipped.add(name)
                self.stopped = self.stopped or result.stopped
            await self.embed()
            await self.catch_up()
        if derivations:
            self.on_event(Progress(stage="derive", n_done=len(derivations), n_total=len(derivations)))

    async def _refresh(self, derivation: Derivation, *, is_rebuild: bool) -> DerivationResult:
        context = replace(self.components.derivation_context(self.on_event), on_embedded=self.count_embedded)
        try:
            return await derivation.refresh(context, is_rebuild)
        except _STOPPING as error:
            return DerivationResult(name=derivation.name, stopped=str(error))
