"""The state of an index: how much it holds, what waits, and what is fresh, stale or missing of all that is derived."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from quipu.engine.components import Components
from quipu.engine.needs import Needs
from quipu.engine.refreshing import Scope, in_order, made_anew
from quipu.model.chat import Role
from quipu.model.derivation import DerivationState, Freshness, RefreshCost
from quipu.model.results import IndexStatus
from quipu.ports.store import IndexCounts
from quipu.text.formatting import format_count

_FLOAT16 = 2  # bytes of a number in the store


async def status(parts: Components, needs: Needs) -> IndexStatus:
    """Return how much the index holds, what waits and what is stale."""
    is_set = (parts.embedder.identity, parts.embedder.dimension)
    identity, dimension = await parts.store.embedder() or is_set
    async with parts.store.view() as view:
        counts = await view.counts()
        made = await needs.states(view, parts.catalog)
        stale = await view.stale()
        revision = view.revision
    kept = await asyncio.to_thread(_kept_always, parts, counts, (identity, dimension))
    return IndexStatus(
        path=str(parts.path),
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
        stale=(*stale, *_unsummarised(parts, counts), *_behind(made)),
        extractor=f"{parts.ingest_config.extractor.identity} ({parts.ingest_config.extractor.description})",
        embedder=identity,
        dimension=dimension,
        other_embedder=is_set[0] if is_set != (identity, dimension) else "",
        n_bytes=await asyncio.to_thread(n_bytes, parts.path),
        schema=parts.store.schema,
        models=parts.models.names(),
        readers=tuple(counts.readers.items()),
        derivations=(*kept, *made),
    )


async def plan(parts: Components, needs: Needs, scope: Scope) -> tuple[DerivationState, ...]:
    """Return what a refresh of this scope would make, each with what that would cost.

    Raises NotFound for a name there is no derivation of.
    """
    async with parts.store.view() as view:
        counts = await view.counts()
        wanted = await in_order(view, scope.names, parts.catalog)
        anew = made_anew(scope, parts.catalog)
        states = {each.name: each for each in await needs.states(view, wanted)}
        rebuilt = await needs.states_anew(view, [each for each in wanted if each.name in anew])
    states |= {each.name: each for each in rebuilt}
    embedder = await parts.store.embedder() or (parts.embedder.identity, parts.embedder.dimension)
    always = await asyncio.to_thread(_kept_always, parts, counts, embedder)
    text = (_full_text(counts),) if scope.rebuild and not scope.names else ()
    planned = (*text, *always, *states.values())
    return tuple(state for state in planned if state.is_anew or state.freshness is not Freshness.FRESH)


def n_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder; one that is replaced meanwhile is left out."""
    total = 0
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def _kept_always(parts: Components, counts: IndexCounts, embedder: tuple[str, int]) -> tuple[DerivationState, ...]:
    """Return the state of what every index keeps; `embedder` is identity and dimension of whose vectors answer."""
    identity, dimension = embedder
    has_model = parts.models.llm(Role.SUMMARISE) is not None
    n_unsummarised = counts.n_unsummarised if has_model else 0
    return (
        DerivationState(
            name="summaries",
            freshness=_freshness(n_unsummarised),
            holds="of what has more descriptions than are shown" if has_model else "no language model: none written",
            n_items=counts.n_unsummarised,
            n_stale=n_unsummarised,
            cost=RefreshCost(n_calls=n_unsummarised),
        ),
        DerivationState(
            name="vectors",
            freshness=_freshness(counts.stale_vectors),
            holds=f"{counts.vectors:,} by {identity}",
            n_items=counts.vectors,
            n_stale=counts.stale_vectors,
            n_bytes=_FLOAT16 * dimension * counts.vectors + n_bytes(parts.path / "vectors"),
            cost=RefreshCost(n_texts=counts.stale_vectors),
        ),
        DerivationState(
            name="topology",
            freshness=Freshness.FRESH,  # whatever it lacks is read from the store when it is used
            holds=f"{format_count(counts.entities, 'entity')} in {format_count(counts.chunks, 'chunk')}",
            n_items=counts.entities,
            n_bytes=n_bytes(parts.path / "topology"),
        ),
    )


def _full_text(counts: IndexCounts) -> DerivationState:
    """Return the state of what is part of each commit, and made anew with all the rest alone."""
    return DerivationState(
        name="full text and links",
        freshness=Freshness.FRESH,
        holds=f"{format_count(counts.chunks, 'chunk')}, {format_count(counts.links, 'link')}",
        n_items=counts.chunks,
        is_anew=True,
    )


def _freshness(n_stale: int) -> Freshness:
    return Freshness.STALE if n_stale else Freshness.FRESH


def _unsummarised(parts: Components, counts: IndexCounts) -> tuple[str, ...]:
    """Say what waits for a summary, where there is a model to write it."""
    n = counts.n_unsummarised
    if not n or parts.models.llm(Role.SUMMARISE) is None:
        return ()
    return (f"waiting for a summary: {format_count(n, 'description')}",)


def _behind(states: Sequence[DerivationState]) -> tuple[str, ...]:
    """Say which derivations that are kept are not up to date."""
    return tuple(f"not up to date: {each.name}" for each in states if each.freshness is Freshness.STALE)
