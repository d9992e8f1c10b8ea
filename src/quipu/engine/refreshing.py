"""Refreshing: derivations that are no part of a commit, brought up to date in order of need."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from quipu.derive.catalog import get_derivation, resolve_needs
from quipu.derive.communities import NAME as COMMUNITIES
from quipu.derive.derivation import Derivation
from quipu.derive.embedding import embed_stale
from quipu.derive.summaries import summarise_stale
from quipu.engine.components import Components
from quipu.errors import Mismatch, OverBudget, Overloaded, Refused, TooLong, Unavailable
from quipu.model.chat import Role
from quipu.model.delta import Delta
from quipu.model.derivation import ADOPTED, IMPORTED, DerivationResult
from quipu.model.event import EventSink, Progress
from quipu.model.results import RefreshResult
from quipu.ports.store import ReadView
from quipu.wrap.embedder import guarded_embedder
from quipu.wrap.guard import CircuitBreaker

# What a service may answer: reported, for what it is not needed for is done, and the next time may be better.
_STOPPING = (OverBudget, Overloaded, Refused, TooLong, Unavailable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is to be brought up to date: `names` beside what is kept; with `rebuild` these are made anew, or all.

    Without `with_derivations` only vectors are: as long as documents wait, all else would be made, and paid for, twice.
    """

    names: tuple[str, ...] = ()
    rebuild: bool = False
    with_derivations: bool = True


async def bring_up_to_date(parts: Components, on_event: EventSink, scope: Scope) -> RefreshResult:
    """Write the summaries that are missing, compute the vectors, then make what is kept or named, in order of need.

    The report says what stood in the way. Raises NotFound for a name there is no derivation of, and Unavailable
    where what is named takes what is not installed, before all else.
    """
    for each in resolve_needs(_known(scope.names, parts.catalog), parts.catalog):
        each.check_installed()
    report = await _summarise(parts, on_event) if scope.with_derivations else RefreshResult()
    embedder = guarded_embedder(parts.embedder, [CircuitBreaker()])  # an outage may cost minutes of retries: only once
    run = _Run(replace(parts, embedder=embedder), on_event, stopped=report.stopped)
    await run.embed()
    await run.catch_up()
    if scope.with_derivations:
        async with parts.store.view() as view:
            wanted = await in_order(view, scope.names, parts.catalog)
        await run.derive(wanted, made_anew(scope, parts.catalog))
    return replace(report, n_embedded=run.n_embedded, stopped=run.stopped, derivations=tuple(run.reports))


async def drop(parts: Components, names: Sequence[str]) -> tuple[str, ...]:
    """Keep these derivations no longer, nor those that need them; return what was dropped, in order of need."""
    gone: dict[str, None] = {get_derivation(name, parts.catalog).name: None for name in names}
    for each in parts.catalog:  # in order of need: whatever needs one comes after it
        if gone.keys() & each.needs:
            gone[each.name] = None
    async with parts.store.view() as view:
        kept = await view.derivations()
    dropped = tuple(each.name for each in parts.catalog if each.name in gone and each.name in kept)
    if dropped:
        imported = (ADOPTED, IMPORTED) if COMMUNITIES in dropped else ()  # else they would come back with the next
        await parts.store.commit(Delta(drop=(*dropped, *imported)))
    return dropped


async def in_order(view: ReadView, names: Sequence[str], catalog: Sequence[Derivation]) -> tuple[Derivation, ...]:
    """Return what is kept and what is named, with all it needs, in order of need. Raises NotFound for unknown names."""
    kept = await view.derivations()
    return resolve_needs([*(each.name for each in catalog if each.name in kept), *_known(names, catalog)], catalog)


def _known(names: Sequence[str], catalog: Sequence[Derivation]) -> list[str]:
    """Return these names of derivations. Raises NotFound for one that is not made on demand."""
    return [get_derivation(name, catalog).name for name in names]


def made_anew(scope: Scope, catalog: Sequence[Derivation]) -> Collection[str]:
    """Return the names of what is to be made anew, where it is kept or named."""
    if not scope.rebuild:
        return ()
    return scope.names or [each.name for each in catalog]


async def _summarise(parts: Components, on_event: EventSink) -> RefreshResult:
    llm = parts.models.llm(Role.SUMMARISE)
    if llm is None:
        return RefreshResult()
    try:
        done = await summarise_stale(
            parts.store, llm, on_event, tokenizer=parts.ingest_config.tokenizer, options=parts.summaries
        )
    except (OverBudget, Unavailable) as error:
        return RefreshResult(stopped=str(error))
    return RefreshResult(n_summarised=done.n_done, unsummarised=done.failed)


@dataclass(slots=True)
class _Run:
    """One run: what it has done by now, and why it stopped ("": it has not) or has no vectors to derive from."""

    parts: Components
    on_event: EventSink
    stopped: str = ""
    unmatched: str = ""
    n_embedded: int = 0
    reports: list[DerivationResult] = field(default_factory=list)

    async def embed(self) -> None:
        """Compute the vectors that are missing; where those there are of another embedder, none is."""
        store, embedder = self.parts.store, self.parts.embedder
        try:
            await store.use_embedder(embedder.identity, embedder.dimension)
            await embed_stale(self.parts.store, self.parts.embedder, self.on_event, self.count)
        except Mismatch as error:
            self.unmatched = str(error)
            async with store.view() as view:
                self.stopped = self.stopped or (self.unmatched if (await view.counts()).stale_vectors else "")
        except _STOPPING as error:
            self.stopped = self.stopped or str(error)

    def count(self, n_embedded: int) -> None:
        """Count vectors that are kept."""
        self.n_embedded += n_embedded

    async def catch_up(self) -> None:
        """Bring what is kept outside of the store up to it."""
        async with self.parts.store.view() as view:
            await self.parts.vectors.catch_up(view)
            await self.parts.topology.catch_up(view)

    async def derive(self, derivations: Sequence[Derivation], anew: Collection[str]) -> None:
        """Make these in order; after each the texts it wrote get their vectors, which the next may need.

        When the work has stopped, what asks no model is made all the same, unless it needs what was left out. What
        takes something that is not installed stays as it is, and so does what needs that.
        """
        left_out: set[str] = set()
        hindrance_by_name: dict[str, str] = {}
        for done, each in enumerate(derivations):
            self.on_event(Progress(stage="derive", done=done, total=len(derivations), detail=each.name))
            hindrances = [each.unavailable_reason(), *(hindrance_by_name.get(need, "") for need in each.needs)]
            if hindrance := next(filter(None, hindrances), ""):
                hindrance_by_name[each.name] = hindrance
                self.reports.append(DerivationResult(name=each.name, notes=(f"left as it was: {hindrance}",)))
                continue
            if self.unmatched or (self.stopped and (each.asks_model or left_out & set(each.needs))):
                left_out.add(each.name)
                self.reports.append(DerivationResult(name=each.name, stopped=self.unmatched or self.stopped))
                continue
            report = await self._made(each, is_rebuild=each.name in anew)
            self.reports.append(report)
            if report.stopped:
                left_out.add(each.name)
                self.stopped = self.stopped or report.stopped
            await self.embed()
            await self.catch_up()
        if derivations:
            self.on_event(Progress(stage="derive", done=len(derivations), total=len(derivations)))

    async def _made(self, derivation: Derivation, *, is_rebuild: bool) -> DerivationResult:
        try:
            derivation_context = replace(self.parts.derivation_context(self.on_event), on_embedded=self.count)
            return await derivation.refresh(derivation_context, is_rebuild)
        except _STOPPING as error:
            return DerivationResult(name=derivation.name, stopped=str(error))
