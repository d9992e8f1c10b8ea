"""Communities: groups of entities that are related to each other more than to the rest, level by level.

Hierarchical Leiden as in D. Edge et al., From Local to Global: A Graph RAG Approach (2024), on every component. This is
the one derivation with a memory: what changed is moved to where it belongs now, and all else stays as it was, so that a
community keeps its identity, and its report, while documents come and go. Made anew it depends on the documents alone.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from quipu.algo.edge_list import Ints, induced_subgraphs
from quipu.algo.leiden import VERSION, Community, PreviousPartition, hierarchical_leiden
from quipu.derive.community_hashes import Plan, plan_clusters
from quipu.derive.derivation import Derivation, DerivationContext, RebuildEstimate
from quipu.derive.imported import are_kept, behind, find_communities, standing_reports
from quipu.derive.pair_graph import PairGraph, read_pair_graph
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import REPORTS, DerivationRecord, DerivationResult, DerivationState, Freshness
from quipu.ports.store import ReadView
from quipu.text.formatting import format_count

NAME = "communities"
MAX_SIZE = 10  # entities: larger communities are divided again, as in Microsoft GraphRAG
_ROW_BYTES = 60  # of a cluster, or of an entity in one


def identity() -> str:
    """Return what communities are made by: another version of the library finds others."""
    return f"communities/1 {VERSION} {version('graspologic-native')} size {MAX_SIZE}"


async def read_state(view: ReadView, _context: DerivationContext) -> DerivationState:
    """Return how many communities there are, and how many hold something that changed."""
    made, counts = (await view.derivations()).get(NAME), await view.cluster_counts(Hierarchy.COMMUNITIES)
    n, n_levels = sum(each.n_clusters for each in counts), len(counts)
    if made is None:
        freshness = Freshness.MISSING
    else:
        freshness = Freshness.STALE if await _is_stale(view, made) else Freshness.FRESH
    return DerivationState(
        name=NAME,
        freshness=freshness,
        contents=f"{format_count(n, 'community')} in {format_count(n_levels, 'level')}" if made is not None else "",
        n_items=n,
        n_stale=sum(each.n_pending for each in counts),
        n_bytes=_ROW_BYTES * (n + counts[0].n_entities) if counts else 0,
    )


async def refresh(context: DerivationContext, rebuild: bool) -> DerivationResult:
    """Bring communities up to date, or find all of them anew."""
    async with context.store.view() as view:
        made = (await view.derivations()).get(NAME)
        stored = await view.clusters(Hierarchy.COMMUNITIES)
        is_anew = rebuild or made is None or made.identity != identity()
        if not is_anew and made is not None and not await _is_stale(view, made):
            return DerivationResult(name=NAME, n_unchanged=len(stored))
        graph = await read_pair_graph(view, await context.topology.open(view))
        came = await find_communities(graph.keys, view, context.store) if is_anew else []
        plan = await asyncio.to_thread(_divided, graph, [] if is_anew else stored, came, is_anew=is_anew)
        clusters = await asyncio.to_thread(plan.clusters, await plan.read(view))
        reports = await _imported_reports(view, stored) if is_anew else []
        revision = view.revision
    partition = Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=revision)
    await context.store.commit(
        Delta(partition=partition, derivations=[DerivationRecord(name=NAME, identity=identity(), revision=revision)])
    )
    n_kept = len({(each.id, each.inputs_hash) for each in stored} & {(each.id, each.inputs_hash) for each in clusters})
    n_lost = len({each.inputs_hash for each in reports} - {each.inputs_hash for each in clusters})
    notes = _notes(len(came), n_lost)
    return DerivationResult(name=NAME, n_built=len(clusters) - n_kept, n_unchanged=n_kept, notes=notes)


async def estimate_rebuild(view: ReadView, context: DerivationContext) -> RebuildEstimate:
    """Return what becomes of imported communities where all are found anew, which asks no model."""
    if await are_kept(view, context.store):
        return RebuildEstimate(note="imported ones stay")
    lost = await _imported_reports(view, await view.clusters(Hierarchy.COMMUNITIES, with_members=False))
    return RebuildEstimate(note=_given_up(len(lost)))


async def _imported_reports(view: ReadView, stored: Sequence[Cluster]) -> list[ClusterReport]:
    """Return the imported reports that stand, where reports are kept."""
    return await standing_reports(view, stored) if REPORTS in await view.derivations() else []


def _notes(n_came: int, n_lost: int) -> tuple[str, ...]:
    stay = f"{n_came:,} imported stay as they came" if n_came else ""
    return tuple(filter(None, (stay, _given_up(n_lost))))


def _given_up(n: int) -> str:
    return f"given up: {format_count(n, 'imported report')} on communities not known any more as they came" if n else ""


async def _is_stale(view: ReadView, made: DerivationRecord) -> bool:
    counts = await view.cluster_counts(Hierarchy.COMMUNITIES)
    if made.identity != identity() or any(each.n_pending for each in counts):
        return True
    changed = await view.changes_since(made.revision)
    return changed is None or len(changed.chunks) > 0


def divide_rest(graph: PairGraph, found: Sequence[Community], stored: Sequence[Cluster]) -> list[Community]:
    """Return communities, and behind them those of all that is in none, from those it was in before."""
    is_rest = np.ones(len(graph.keys), dtype=np.bool_)
    for each in found:
        is_rest[each.nodes] = False
    return [*found, *behind(len(found), _divided_rest(graph, np.flatnonzero(is_rest), stored))]


def _divided_rest(graph: PairGraph, rest: Ints, stored: Sequence[Cluster]) -> list[Community]:
    (within,) = induced_subgraphs(graph.tied, [rest])
    before = _before(stored, [graph.keys[place] for place in rest.tolist()])
    found = hierarchical_leiden(within, max_size=MAX_SIZE, previous=before)
    return [replace(each, nodes=rest[each.nodes]) for each in found]


def _divided(graph: PairGraph, stored: Sequence[Cluster], came: Sequence[Community], *, is_anew: bool) -> Plan:
    if came:
        found = divide_rest(graph, came, stored)
    else:
        found = hierarchical_leiden(
            graph.tied, max_size=MAX_SIZE, previous=None if is_anew else _before(stored, graph.keys)
        )
    return plan_clusters(graph.keys, graph.relations, found, stored)


def _before(stored: Sequence[Cluster], keys: Sequence[str]) -> PreviousPartition:
    """Return how the entities were divided; those of finest clusters in which something changed may move."""
    place = {key: at for at, key in enumerate(keys)}
    number = {each.id: at for at, each in enumerate(stored)}
    levels = [np.full(len(keys), -1, dtype=np.int64) for _ in range(max((c.level for c in stored), default=-1) + 1)]
    free = np.ones(len(keys), dtype=np.bool_)
    for each in stored:
        nodes = np.array([place[key] for key in each.members if key in place], dtype=np.int64)
        free[nodes] = not each.inputs_hash
        at: Cluster | None = each
        while at is not None and len(nodes):
            levels[at.level][nodes] = number[at.id]
            at = stored[number[at.parent]] if at.parent else None
    return PreviousPartition(levels, free)


DERIVATION = Derivation(
    name=NAME,
    summary="groups of entities that are related to each other more than to the rest",
    read_state=read_state,
    refresh=refresh,
    estimate_rebuild=estimate_rebuild,
)
