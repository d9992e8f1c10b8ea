"""Status: how much the index holds, which derived data is stale, and what a refresh or a removal would change."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

from quipu.answer.answer_input import stale_notes
from quipu.derive.catalog import resolve_needs
from quipu.derive.derivation import Derivation
from quipu.engine.components import Components
from quipu.engine.refresh import RefreshScope, derivations_in_scope
from quipu.errors import Stale
from quipu.model.chat import Role, TokenCount
from quipu.model.cluster import Hierarchy
from quipu.model.derivation import DerivationState, Freshness, RefreshCost
from quipu.model.graph import ClaimMention, EntityMention, IndexCounts, RelationMention
from quipu.model.ids import relation_id
from quipu.model.results import IndexStatus, RefreshResult, RemovalPreview
from quipu.model.usage import Price
from quipu.ports.store import ReadView
from quipu.retrieve.strategy import Strategy
from quipu.text.formatting import format_cost, format_count

_FLOAT16_BYTES = 2  # vectors are stored as float16


@dataclass(frozen=True, slots=True)
class DerivationStates:
    """Knows the state of every derivation of the catalog; each state is computed once per revision."""

    components: Components
    _state_by_name: dict[str, tuple[int, DerivationState]] = field(default_factory=dict)

    async def read(self, view: ReadView, derivations: Sequence[Derivation]) -> tuple[DerivationState, ...]:
        """Return the state of these derivations in an unfiltered view, with the cost of refreshing each."""
        existing = await view.derivations()
        return tuple(
            [await self._state(view, derivation, is_kept=derivation.name in existing) for derivation in derivations]
        )

    async def read_rebuilt(self, view: ReadView, derivations: Sequence[Derivation]) -> tuple[DerivationState, ...]:
        """Return the state of these derivations, with the approximate cost of computing each from the start."""
        states = await self.read(view, derivations)
        return tuple(
            [
                await self._with_rebuild_cost(view, derivation, state)
                for derivation, state in zip(derivations, states, strict=True)
            ]
        )

    async def missing(self, strategy: Strategy) -> tuple[DerivationState, ...]:
        """Return the states of the derivations that a strategy needs and that were never computed."""
        return tuple(state for state in await self._needed(strategy) if state.freshness is Freshness.MISSING)

    async def check(self, strategy: Strategy) -> tuple[str, ...]:
        """Return a note for each stale derivation a strategy needs. Raises Stale where one is missing."""
        states = await self._needed(strategy)
        if missing := [state for state in states if state.freshness is Freshness.MISSING]:
            raise self.missing_error(strategy, missing)
        return tuple(_stale_note(state) for state in states if state.freshness is Freshness.STALE)

    async def make_missing(
        self, strategy: Strategy, refresh: Callable[[Sequence[str]], Awaitable[RefreshResult]]
    ) -> RefreshResult | None:
        """Let `refresh` compute the missing derivations that a strategy needs; None if nothing is missing.

        Raises Stale where it could not be made.
        """
        if not (missing := await self.missing(strategy)):
            return None
        result = await refresh([state.name for state in missing])
        if result.stopped and (still_missing := await self.missing(strategy)):
            message = f"The derivations that the strategy '{strategy.name}' needs could not be computed."
            raise Stale(message, remedy=result.stopped, missing=tuple(state.name for state in still_missing))
        return result

    def missing_error(self, strategy: Strategy, missing: Sequence[DerivationState]) -> Stale:
        """Return the error that names the missing derivations of a strategy, the command that computes them, and the
        cost."""
        names = tuple(state.name for state in missing)
        cost = reduce(RefreshCost.__add__, (state.cost for state in missing))
        implied = {
            need for derivation in self.components.catalog if derivation.name in names for need in derivation.needs
        }
        arguments = " ".join(name for name in names if name not in implied)
        hindrances = dict.fromkeys(state.unavailable_reason for state in missing if state.unavailable_reason)
        command = f"un `quipu refresh {arguments}` ({format_cost(cost)}), or ask with --auto-refresh."
        return Stale(
            f"The strategy '{strategy.name}' needs derivations that are missing: {', '.join(names)}.",
            remedy=f"{' '.join(hindrances)} Then r{command}" if hindrances else f"R{command}",
            missing=names,
        )

    async def _needed(self, strategy: Strategy) -> tuple[DerivationState, ...]:
        catalog = self.components.catalog
        names = {derivation.name for derivation in catalog}
        derivations = resolve_needs([need for need in strategy.needs if need in names], catalog)
        if not derivations:
            return ()
        async with self.components.store.view() as view:
            return await self.read(view, derivations)

    async def _state(self, view: ReadView, derivation: Derivation, *, is_kept: bool) -> DerivationState:
        revision, state = self._state_by_name.get(derivation.name, (-1, None))
        if state is None or revision != view.revision:
            state = await derivation.read_state(view, self.components.derivation_context())
            self._state_by_name[derivation.name] = view.revision, state
        # A derivation that is not kept up to date counts as missing, even if some of its rows are still there.
        freshness = state.freshness if is_kept else Freshness.MISSING
        cost = self._with_price(state.cost)
        return replace(state, freshness=freshness, cost=cost, unavailable_reason=derivation.unavailable_reason())

    async def _with_rebuild_cost(
        self, view: ReadView, derivation: Derivation, state: DerivationState
    ) -> DerivationState:
        if (
            derivation.estimate_rebuild is None or state.freshness is Freshness.MISSING
        ):  # then refreshing it costs the same
            return replace(state, is_rebuild=True)
        rebuild = await derivation.estimate_rebuild(view, self.components.derivation_context())
        holds = "; ".join(filter(None, (state.contents, rebuild.note)))
        return replace(state, is_rebuild=True, contents=holds, cost=self._with_price(rebuild.cost))

    def _with_price(self, cost: RefreshCost) -> RefreshCost:
        return with_price(cost, self.components.models.price(Role.REPORT))


def with_remedy(stale: str) -> str:
    """Return a note about stale data, with the command that brings it up to date."""
    return f"{stale}; `quipu resume` finishes it."


def with_price(cost: RefreshCost, price: Price | None) -> RefreshCost:
    """Return a cost with its amount of money, where the price is known."""
    if price is None or not cost.n_calls:
        return cost
    money = price.cost(TokenCount(input=cost.input_tokens, output=cost.output_tokens))
    return replace(cost, money=money, currency=price.currency)


def _stale_note(state: DerivationState) -> str:
    n_stale = f" ({state.n_stale:,} to do)" if state.n_stale else ""  # a share would mislead: not all items exist yet
    note = f"not up to date: {state.name}{n_stale}"
    return f"{note}; {state.unavailable_reason}" if state.unavailable_reason else with_remedy(note)


async def read_status(components: Components, states: DerivationStates) -> IndexStatus:
    """Return the size of the index, its queue and its stale data."""
    configured = (components.embedder.identity, components.embedder.dimension)
    async with components.store.view() as view:
        counts = await view.counts()
        on_demand = await states.read(view, components.catalog)
        revision = view.revision
    identity, dimension = counts.embedder or configured
    always = await asyncio.to_thread(_always_derived, components, counts)
    behind = [state.name for state in on_demand if state.freshness is Freshness.STALE]
    return IndexStatus(
        path=components.place,
        revision=revision,
        n_documents=counts.documents,
        n_chunks=counts.chunks,
        n_entities=counts.entities,
        n_relations=counts.relations,
        n_mentions=counts.mentions,
        n_links=counts.links,
        n_vectors=counts.vectors,
        n_replies=counts.replies,
        jobs=tuple(counts.jobs.items()),
        stale=(
            *stale_notes(counts),
            *_unsummarised_note(components, counts),
            *(f"not up to date: {name}" for name in behind),
        ),
        extractor=f"{components.ingest_config.extractor.identity} ({components.ingest_config.extractor.description})",
        embedder=identity,
        dimension=dimension,
        other_embedder=configured[0] if configured != (identity, dimension) else "",
        n_bytes=counts.database_bytes + await asyncio.to_thread(folder_size, components.path),
        schema=counts.schema,
        models=components.models.names(),
        extractors=tuple(counts.extractors.items()),
        derivations=(*always, *on_demand),
        n_questions_waiting=components.retrieval_turns.n_waiting,
        currency=components.models.currency,
    )


async def plan_refresh(
    components: Components, states: DerivationStates, scope: RefreshScope
) -> tuple[DerivationState, ...]:
    """Return what a refresh of this scope would compute, with the cost of each; nothing is changed.

    Raises NotFound for an unknown derivation in the scope.
    """
    async with components.store.view() as view:
        counts = await view.counts()
        derivations = await derivations_in_scope(view, scope, components.catalog)
        rebuilt_names = scope.rebuilt(components.catalog)
        state_by_name = {state.name: state for state in await states.read(view, derivations)}
        rebuilt = [derivation for derivation in derivations if derivation.name in rebuilt_names]
        state_by_name |= {state.name: state for state in await states.read_rebuilt(view, rebuilt)}
    always = await asyncio.to_thread(_always_derived, components, counts)
    text = (_full_text(counts),) if scope.rebuild and not scope.names else ()
    planned: list[DerivationState] = [*text, *always, *state_by_name.values()]
    return tuple(state for state in planned if state.is_rebuild or state.freshness is not Freshness.FRESH)


async def preview_removal(view: ReadView, documents: Sequence[str], k: int) -> RemovalPreview:
    """Return what removing these documents takes away, with at most `k` entities, relations and reports by name."""
    n_chunks, n_claims, entity_mentions, relation_mentions = await _count_facts(view, documents)
    # Nothing stays of what only these documents mention.
    entities = sorted(await view.entities(sorted(entity_mentions)), key=lambda entity: (-entity.degree, entity.key))
    lone_entities = [entity for entity in entities if entity.n_mentions == entity_mentions[entity.key]]
    shared_entities = [entity for entity in entities if entity.n_mentions > entity_mentions[entity.key]]
    relations = sorted(await view.relations(sorted(relation_mentions)), key=lambda r: (-r.weight, r.id))
    lone_relations = [r for r in relations if r.n_mentions == relation_mentions[r.id]]
    shared_relations = [r for r in relations if r.n_mentions > relation_mentions[r.id]]
    clusters = await _clusters_above(view, list(entity_mentions))
    reports = sorted(report.cluster for report in await view.cluster_reports(clusters, with_text=False))
    return RemovalPreview(
        documents=tuple(documents),
        n_chunks=n_chunks,
        n_claims=n_claims,
        n_entities=len(lone_entities),
        n_entities_changed=len(shared_entities),
        n_relations=len(lone_relations),
        n_relations_changed=len(shared_relations),
        n_clusters_changed=len(clusters),
        n_reports=len(reports),
        n_replies=(await view.counts("replies", of=documents)).replies,
        entities=tuple(lone_entities[:k]),
        entities_changed=tuple(shared_entities[:k]),
        relations=tuple(lone_relations[:k]),
        relations_changed=tuple(shared_relations[:k]),
        reports=tuple([(report.cluster, report.title) for report in await view.cluster_reports(reports[:k])]),
    )


async def _count_facts(view: ReadView, documents: Sequence[str]) -> tuple[int, int, Counter[str], Counter[str]]:
    """Return the numbers of chunks and claims in documents, and how often they mention each entity and relation."""
    n_chunks, n_claims, entities, relations = 0, 0, Counter[str](), Counter[str]()
    for document in documents:
        chunks = [chunk.id for chunk in await view.chunks(document_id=document)]
        n_chunks += len(chunks)
        n_claims += sum(map(len, (await view.mentions(ClaimMention, chunks)).values()))
        for entity_mentions in (await view.mentions(EntityMention, chunks)).values():
            entities.update(mention.key for mention in entity_mentions)
        for relation_mentions in (await view.mentions(RelationMention, chunks)).values():
            relations.update(relation_id(mention.source, mention.target) for mention in relation_mentions)
    return n_chunks, n_claims, entities, relations


async def _clusters_above(view: ReadView, entities: Sequence[str]) -> list[str]:
    """Return the clusters of both hierarchies that contain one of these entities, at any level."""
    clusters: set[str] = set()
    for hierarchy in Hierarchy:
        parents = {cluster.id: cluster.parent for cluster in await view.clusters(hierarchy, with_members=False)}
        for cluster in await view.clusters(hierarchy, entities=entities) if parents else ():
            ancestor = cluster.id
            while ancestor and ancestor not in clusters:
                clusters.add(ancestor)
                ancestor = parents[ancestor]
    return sorted(clusters)


def folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder and below; a file that is replaced meanwhile is not counted."""
    n_bytes = 0
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):
            n_bytes += file.stat().st_size if file.is_file() else 0
    return n_bytes


def _always_derived(components: Components, counts: IndexCounts) -> tuple[DerivationState, ...]:
    """Return the states of the derivations that every index has."""
    identity, dimension = counts.embedder or (components.embedder.identity, components.embedder.dimension)
    has_model = components.models.llm(Role.SUMMARISE) is not None
    n_unsummarised = counts.n_unsummarised if has_model else 0
    return (
        DerivationState(
            name="summaries",
            freshness=_freshness(n_unsummarised),
            contents="for more descriptions than are shown" if has_model else "none written: no language model",
            n_items=counts.n_unsummarised,
            n_stale=n_unsummarised,
            cost=RefreshCost(n_calls=n_unsummarised),
        ),
        DerivationState(
            name="vectors",
            freshness=_freshness(counts.stale_vectors),
            contents=f"{counts.vectors:,} by {identity}",
            n_items=counts.vectors,
            n_stale=counts.stale_vectors,
            n_bytes=_FLOAT16_BYTES * dimension * counts.vectors + folder_size(components.path / "vectors"),
            cost=RefreshCost(n_texts=counts.stale_vectors),
        ),
        DerivationState(
            name="topology",
            freshness=Freshness.FRESH,  # what its file lacks is read from the store when it is used
            contents=f"{format_count(counts.entities, 'entity')} in {format_count(counts.chunks, 'chunk')}",
            n_items=counts.entities,
            n_bytes=folder_size(components.path / "topology"),
        ),
    )


def _full_text(counts: IndexCounts) -> DerivationState:
    """Return the state of full text and links: each commit updates them, and only a rebuild of all computes them."""
    return DerivationState(
        name="full text and links",
        freshness=Freshness.FRESH,
        contents=f"{format_count(counts.chunks, 'chunk')}, {format_count(counts.links, 'link')}",
        n_items=counts.chunks,
        is_rebuild=True,
    )


def _freshness(n_stale: int) -> Freshness:
    return Freshness.STALE if n_stale else Freshness.FRESH


def _unsummarised_note(components: Components, counts: IndexCounts) -> tuple[str, ...]:
    """Return a note about descriptions that wait for a summary, where there is a model to write it."""
    n = counts.n_unsummarised
    if not n or components.models.llm(Role.SUMMARISE) is None:
        return ()
    return (f"waiting for a summary: {format_count(n, 'description')}",)
