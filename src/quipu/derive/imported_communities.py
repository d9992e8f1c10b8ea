"""Adopting: communities and reports that another system made, in place of those that would be made here.

They are kept from then on like any others: what comes later finds its place among them, and a report is written anew
only when what it is made from has changed.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from quipu.algo.leiden import Community
from quipu.derive import communities, reports
from quipu.derive.community_hashes import plan_clusters
from quipu.derive.derivation import DerivationContext
from quipu.derive.imported import RECORDED, beside, find_communities, keep_communities, keep_reports
from quipu.derive.pair_graph import read_pair_graph
from quipu.errors import Busy
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import IMPORTED_GRAPH, DerivationRecord
from quipu.model.imported_graph import ImportedCommunity, ImportedGraph, ImportedReport
from quipu.ports.store import ReadView, Store
from quipu.text.names import entity_key

MAX_CHUNKS = 8  # a report rests on
CHUNKS_OF_EACH = 32  # looked at for each entity
MAX_TRIES = 5  # while others change what is said of the entities


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityImportResult:
    """How many communities and reports were taken over; `unknown` are names in them that no document has."""

    n_communities: int = 0
    n_reports: int = 0
    unknown: tuple[str, ...] = ()


async def is_imported(graph: ImportedGraph, store: Store) -> bool:
    """Say whether the communities there are, and what has grown of them since, are those of this graph."""
    async with store.view() as view:
        made = await view.derivations()
    are_kept = communities.NAME in made and (reports.NAME in made or not graph.reports)
    return are_kept and IMPORTED_GRAPH in made and made[IMPORTED_GRAPH].identity == graph.identity


async def import_communities(context: DerivationContext, graph: ImportedGraph) -> CommunityImportResult:
    """Put a graph's communities in place of those there are, with the reports on them; where none is known, nothing.

    What belongs to none of them, as the entities of other documents, is divided among itself, from the communities it
    was in before: within the graph's own, it would change those whose reports have just come. That they are adopted is
    noted last: what is cut short before is done again. Raises Busy where others never stop changing what is said of the
    entities.
    """
    for _ in range(MAX_TRIES):
        async with context.store.view() as view:
            plan = await _planned(graph, view, context)
        if not plan.adopted.n_communities:
            return plan.adopted
        partition, told = plan.partition, plan.told
        committed = await context.store.commit(
            Delta(partition=partition, reports=told, derivations=_notes(partition, told))
        )
        if not committed.n_outdated:
            break  # else something was said of the entities meanwhile, and reports were not taken
    else:
        raise Busy(
            f"The reports on {committed.n_outdated:,} communities were not taken: others kept changing what is said"
            " of their entities.",
            remedy="Import the same again when nothing is being added.",
        )
    made = DerivationRecord(name=IMPORTED_GRAPH, identity=graph.identity, revision=partition.revision)
    async with context.store.view() as view:
        await keep_reports(told, view, context.store)
        imported = await keep_communities(plan.came, plan.keys, view, context.store)
    await context.store.commit(Delta(derivations=[made, imported]))
    return plan.adopted


def _notes(partition: Partition, told: Sequence[ClusterReport]) -> list[DerivationRecord]:
    kept = {communities.NAME: communities.identity()} | ({reports.NAME: reports.IDENTITY} if told else {})
    return [
        DerivationRecord(name=name, identity=identity, revision=partition.revision) for name, identity in kept.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The communities of which entities are known with those of all else, the reports, and what these make.

    `came` are all that ever came with an import, by the places of their entities in `keys`.
    """

    partition: Partition
    told: Sequence[ClusterReport]
    adopted: CommunityImportResult
    came: Sequence[Community]
    keys: Sequence[str]


async def _planned(graph: ImportedGraph, view: ReadView, context: DerivationContext) -> _Plan:
    pairs = await read_pair_graph(view, await context.topology.open(view))
    place = {key: at for at, key in enumerate(pairs.keys)}
    names = {name for each in graph.communities for name in each.entities if entity_key(name) not in place}
    found = _communities(graph.communities, place)
    kept = (await view.derivations()).get(communities.NAME)
    is_kept = kept is not None and kept.identity == communities.identity()
    stored = await view.clusters(Hierarchy.COMMUNITIES) if is_kept else []
    divided = await asyncio.to_thread(communities.divide_rest, pairs, list(found.values()), stored)
    plan = plan_clusters(pairs.keys, pairs.relations, divided, stored)
    clusters = plan.clusters(await plan.read(view))
    cluster_by_id = dict(zip(found, clusters[: len(found)], strict=True))
    taken = [each for each in graph.reports if each.community in cluster_by_id]
    keys = {each.community: [pairs.keys[node] for node in found[each.community].nodes.tolist()] for each in taken}
    chunks = {community: await _chunks(view, members) for community, members in keys.items()}
    partition = Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=view.revision)
    told = [_report(each, cluster_by_id[each.community], chunks[each.community]) for each in taken]
    came = beside(list(found.values()), await find_communities(pairs.keys, view, context.store))
    adopted = CommunityImportResult(n_communities=len(found), n_reports=len(told), unknown=tuple(sorted(names)))
    return _Plan(partition=partition, told=told, adopted=adopted, came=came, keys=pairs.keys)


def _communities(recorded: Sequence[ImportedCommunity], place: Mapping[str, int]) -> dict[str, Community]:
    """Return communities by their recorded ids, coarsest first, with the places of their entities.

    One lies within its parent, and each entity in one of a level: the first that names it. Those of which no entity is
    known are left out; where a parent is, its parts stand on top.
    """
    found: dict[str, Community] = {}
    number: dict[str, int] = {}
    taken: set[tuple[int, int]] = set()
    for each in sorted(recorded, key=lambda each: (each.level, each.id)):
        parent = number.get(each.parent, -1)
        above = found[each.parent] if parent >= 0 else None
        level = above.level + 1 if above else 0
        nodes = {place[key] for key in map(entity_key, each.entities) if key in place}
        nodes = {node for node in nodes if (level, node) not in taken}
        nodes = nodes & set(above.nodes.tolist()) if above else nodes
        if not nodes:
            continue
        taken.update((level, node) for node in nodes)
        number[each.id] = len(found)
        found[each.id] = Community(level, parent, np.array(sorted(nodes), dtype=np.int64), -1, True)
    divided = {each.parent for each in found.values()}
    return {name: replace(each, is_finest=False) if number[name] in divided else each for name, each in found.items()}


async def _chunks(view: ReadView, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the chunks that name most of a community's entities."""
    named: Counter[str] = Counter()
    for counts in (await view.chunks_of_entities(keys, CHUNKS_OF_EACH)).values():
        named.update(counts.keys())
    return tuple(sorted(named, key=lambda chunk: (-named[chunk], chunk))[:MAX_CHUNKS])


def _report(written: ImportedReport, cluster: Cluster, chunks: tuple[str, ...]) -> ClusterReport:
    return ClusterReport(
        cluster=cluster.id,
        title=written.title,
        summary=written.summary,
        findings=written.findings,
        rating=written.rating,
        chunks=chunks,
        inputs_hash=cluster.inputs_hash,
        model=RECORDED,
    )
