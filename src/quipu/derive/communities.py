"""Communities: groups of entities that are related to each other more than to the rest, level by level.

Source: D. Edge et al., "From Local to Global: A Graph RAG Approach" (2024). Deviation: there, Leiden divides the graph.
Here communities are found by rules that look at their neighbourhood only (`algo.graph_communities`). So they depend on
the documents and imports alone, not on the history of the index, and one more document leaves nearly all as they were.
Imported communities stay as they were imported, and the rules are applied to all other entities.
"""

import asyncio
from collections.abc import Sequence

from quipu.derive.community_partition import partition_graph, partition_identity, read_community_graph
from quipu.derive.derivation import Derivation, DerivationContext, RebuildEstimate
from quipu.derive.imported_communities import has_imported_communities, load_communities, read_imported_reports
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import (
    COMMUNITIES,
    IMPORTED_GRAPH,
    REPORTS,
    DerivationRecord,
    DerivationResult,
    DerivationState,
    Freshness,
)
from quipu.ports.store import ReadView
from quipu.text.formatting import format_count

_ROW_BYTES = 60  # of a cluster, or of an entity in one


async def read_state(view: ReadView, _context: DerivationContext) -> DerivationState:
    """Return how many communities there are, and how many contain a change."""
    record, counts = (await view.derivations()).get(COMMUNITIES), await view.derivation_counts(COMMUNITIES)
    n, n_levels = counts.n_items, len(counts.levels)
    if record is None:
        freshness = Freshness.MISSING
    else:
        freshness = Freshness.STALE if await _is_stale(view, record) else Freshness.FRESH
    return DerivationState(
        name=COMMUNITIES,
        freshness=freshness,
        contents=f"{format_count(n, 'community')} in {format_count(n_levels, 'level')}" if record is not None else "",
        n_items=n,
        n_stale=counts.n_stale,
        n_bytes=_ROW_BYTES * (n + counts.levels[0].n_entities) if counts.levels else 0,
    )


async def refresh(context: DerivationContext, rebuild: bool) -> DerivationResult:
    """Compute the communities. A rebuild also computes all input hashes again; it gives the same communities."""
    async with context.store.view() as view:
        records = await view.derivations()
        record = records.get(COMMUNITIES)
        stored = await view.clusters(Hierarchy.COMMUNITIES, with_members=False)
        is_rebuild = rebuild or record is None or record.identity != partition_identity()
        if not is_rebuild and record is not None and not await _is_stale(view, record):
            return DerivationResult(name=COMMUNITIES, n_unchanged=len(stored))
        graph = await read_community_graph(view, await context.topology.open(view))
        imported = await load_communities(graph.keys, view, context.store)
        plan = await asyncio.to_thread(partition_graph, graph, [] if is_rebuild else stored, imported)
        clusters = await asyncio.to_thread(plan.clusters, await plan.read_hashes(view))
        may_lose = is_rebuild or (IMPORTED_GRAPH in records and not imported)
        reports = await _current_imported_reports(view, stored) if may_lose else []
        revision = view.revision
    partition = Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=revision)
    new_record = DerivationRecord(name=COMMUNITIES, identity=partition_identity(), revision=revision)
    await context.store.commit(Delta(partition=partition, derivations=[new_record]))
    old_states = {(cluster.id, cluster.inputs_hash) for cluster in stored}
    n_kept = len(old_states & {(cluster.id, cluster.inputs_hash) for cluster in clusters})
    n_lost = len({report.inputs_hash for report in reports} - {cluster.inputs_hash for cluster in clusters})
    kept_note = f"{format_count(len(imported), 'imported community')} kept" if imported else ""
    return DerivationResult(
        name=COMMUNITIES,
        n_built=len(clusters) - n_kept,
        n_unchanged=n_kept,
        notes=tuple(filter(None, (kept_note, _lost_note(n_lost)))),
    )


async def estimate_rebuild(view: ReadView, context: DerivationContext) -> RebuildEstimate:
    """Return whether a rebuild keeps the imported communities; it needs no model and so costs nothing."""
    if await has_imported_communities(view, context.store):
        return RebuildEstimate(note="imported communities are kept")
    lost = await _current_imported_reports(view, await view.clusters(Hierarchy.COMMUNITIES, with_members=False))
    return RebuildEstimate(note=_lost_note(len(lost)))


async def _is_stale(view: ReadView, record: DerivationRecord) -> bool:
    if record.identity != partition_identity() or (await view.derivation_counts(COMMUNITIES)).n_stale:
        return True
    changes = await view.changes_since(record.revision)
    return changes is None or len(changes.chunks) > 0


async def _current_imported_reports(view: ReadView, stored: Sequence[Cluster]) -> list[ClusterReport]:
    return await read_imported_reports(view, stored) if REPORTS in await view.derivations() else []


def _lost_note(n_reports: int) -> str:
    if not n_reports:
        return ""
    return (
        f"lost: {format_count(n_reports, 'imported report')}, because their imported communities are no longer recorded"
    )


DERIVATION = Derivation(
    name=COMMUNITIES,
    summary="groups of entities that are related to each other more than to the rest",
    read_state=read_state,
    refresh=refresh,
    estimate_rebuild=estimate_rebuild,
)
