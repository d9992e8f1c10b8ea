"""Hierarchy: layers of aggregates over entities that mean something alike, each told in words, and how they connect.

Source: Y. Zhang et al., LeanRAG: Knowledge-Graph-Based Generation with Semantic Aggregation and Hierarchical Retrieval
(2025), and its code. Ids are of content, never names; the shape depends on the entities' vectors alone, so that no word
of a model can move it; all relations that cross are found in one pass for each layer.
"""

from collections.abc import Callable
from functools import partial

from quipu.algo.vector_clusters import CLUSTER_SIZE, Grouping, nearest_centres
from quipu.derive.derivation import Derivation, DerivationContext, RebuildEstimate
from quipu.derive.embedding import embed_stale
from quipu.derive.hierarchy.planning import CUT, EXTRACTIVE, NAME, is_made_by, make_plan
from quipu.derive.hierarchy.refreshing import Refresh
from quipu.model.cluster import Hierarchy
from quipu.model.derivation import DerivationRecord, DerivationResult, DerivationState, Freshness, RefreshCost
from quipu.ports.store import ReadView
from quipu.text.formatting import format_count

MAX_TRIES = 3  # where facts change while it is told of them
_ROW_BYTES = 1_500  # of an aggregate with its report, of its relations, and its entities' places
_INPUT_TOKENS, _OUTPUT_TOKENS = 2_500, 600  # of a call, about


async def read_state(
    view: ReadView, context: DerivationContext, grouping: Grouping = nearest_centres
) -> DerivationState:
    """Return how many aggregates there are, and how many hold something that has changed or are not told.

    Relations between them that a model has yet to sum up wait too.
    """
    made = (await view.derivations()).get(NAME)
    counts = await view.cluster_counts(Hierarchy.AGGREGATES)
    n = sum(each.n_clusters for each in counts)
    n_layers = len(counts)
    if made is None:
        return DerivationState(name=NAME, freshness=Freshness.MISSING, cost=_cost(await _n_expected(view), context))
    holds = f"{format_count(n, 'aggregate')} in {format_count(n_layers, 'layer')}"
    if not is_made_by(made.identity, context.embedder.identity, grouping):
        return DerivationState(
            name=NAME,
            freshness=Freshness.STALE,
            contents=f"{holds}, made another way",
            n_items=n,
            n_stale=n,
            n_bytes=n * _ROW_BYTES,
            cost=_cost(await _n_expected(view), context),
        )
    waiting = await view.pending(NAME, not_by=EXTRACTIVE if context.llm else "")
    n_cut = len(await view.cluster_relations(by=CUT)) if context.llm else 0
    is_stale = bool(waiting) or n_cut > 0 or await _has_changed(view, made)
    return DerivationState(
        name=NAME,
        freshness=Freshness.STALE if is_stale else Freshness.FRESH,
        contents=holds,
        n_items=n + n_cut,
        n_stale=len(waiting) + n_cut,
        n_bytes=n * _ROW_BYTES,
        cost=_cost(len(waiting), context, n_relations=n_cut),
    )


async def refresh(context: DerivationContext, rebuild: bool, grouping: Grouping = nearest_centres) -> DerivationResult:
    """Bring the hierarchy up to date, or tell all of it anew. Where facts change meanwhile it is planned again."""
    # What has no vector would be left out.
    await embed_stale(context.store, context.embedder, context.on_event, context.on_embedded)
    async with context.store.view() as view:
        now = await read_state(view, context, grouping)
    if now.freshness is Freshness.FRESH and not rebuild:
        return DerivationResult(name=NAME, n_unchanged=now.n_items)
    for _ in range(MAX_TRIES):
        async with context.store.view() as view:
            plan = await make_plan(view, context, rebuild=rebuild, grouping=grouping)
        run = Refresh(context=context, plan=plan, is_rebuild=rebuild)
        await run.run()
        rebuild = False
        if not run.n_outdated:
            break
    return run.report()


async def estimate_rebuild(view: ReadView, context: DerivationContext) -> RebuildEstimate:
    """Return about what telling all of it would cost: of the aggregates there are, as others have yet to be found.

    Replies that are known from before cost nothing.
    """
    ids = [each.id for each in await view.clusters(Hierarchy.AGGREGATES, with_members=False)]
    long = [each for each in await view.cluster_relations(ids) if each.model != EXTRACTIVE] if context.llm else []
    return RebuildEstimate(cost=_cost(len(ids), context, n_relations=len(long)))


async def _has_changed(view: ReadView, made: DerivationRecord) -> bool:
    """Say whether chunks came or went since."""
    changed = await view.changes_since(made.revision)
    return changed is None or len(changed.chunks) > 0


async def _n_expected(view: ReadView) -> int:
    """Return about how many aggregates a hierarchy of all entities has."""
    return -(-(await view.counts()).entities // (CLUSTER_SIZE - 1))


def _cost(n: int, context: DerivationContext, *, n_relations: int = 0) -> RefreshCost:
    """Return what telling n aggregates takes, and relations that are known to be longer than their allowance."""
    if context.llm is None:
        return RefreshCost(n_texts=n)
    n_calls = n + n_relations
    return RefreshCost(
        n_calls=n_calls, input_tokens=n_calls * _INPUT_TOKENS, output_tokens=n_calls * _OUTPUT_TOKENS, n_texts=n
    )


def derivation(grouping: Grouping = nearest_centres, check_installed: Callable[[], None] = lambda: None) -> Derivation:
    """Return the derivation whose layers are grouped in this way, as by `quipu.algo.vector_clusters.gaussian_mixture`.

    `check` raises Unavailable where that cannot be done.
    """
    return Derivation(
        name=NAME,
        summary="layers of aggregates over entities that are alike, each told in words (LeanRAG)",
        read_state=partial(read_state, grouping=grouping),
        refresh=partial(refresh, grouping=grouping),
        needs=("vectors", "topology"),
        asks_model=True,
        estimate_rebuild=estimate_rebuild,
        check_installed=check_installed,
    )


DERIVATION = derivation()

__all__ = ["DERIVATION", "NAME", "derivation"]
