"""Adopting: communities and reports that another system made, in place of those that would be made here.

They are kept from then on like any others: what comes later finds its place among them, and a report is written anew
only when what it is made from has changed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from quipu.algo.communities import Community
from quipu.derive import communities, reports
from quipu.derive.community_hashes import plan_clusters
from quipu.derive.derivation import Bench
from quipu.derive.pair_graph import read_pair_graph
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.made import Made
from quipu.model.recording import RecordedCommunity, RecordedReport
from quipu.ports.store import ReadView
from quipu.text.names import entity_key

MODEL = "recorded/1"
MAX_CHUNKS = 8  # a report rests on
CHUNKS_OF_EACH = 32  # looked at for each entity


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """How many communities and reports were taken over; `unknown` are names in them that no document has."""

    n_communities: int = 0
    n_reports: int = 0
    unknown: tuple[str, ...] = ()


async def adopt(bench: Bench, recorded: Sequence[RecordedCommunity], written: Sequence[RecordedReport]) -> Adopted:
    """Put recorded communities in place of those there are, with the reports on them.

    What belongs to none of them, as an entity without relations may, gets its place when documents are added: at once,
    it would change communities whose reports have just come.
    """
    async with bench.store.view() as view:
        graph = await read_pair_graph(view, await bench.topology.of(view))
        place = {key: at for at, key in enumerate(graph.keys)}
        found = _communities(recorded, place)
        plan = plan_clusters(graph.keys, graph.relations, list(found.values()), [])
        clusters = plan.clusters(await plan.read(view))
        cluster_by_id = dict(zip(found, clusters, strict=True))
        taken = [each for each in written if each.community in cluster_by_id]
        keys = {each.community: [graph.keys[node] for node in found[each.community].nodes.tolist()] for each in taken}
        chunks = {community: await _chunks(view, members) for community, members in keys.items()}
        revision = view.revision
    partition = Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=revision)
    notes = [
        Made(name=communities.NAME, identity=communities.identity(), revision=revision),
        Made(name=reports.NAME, identity=reports.IDENTITY, revision=revision),
    ]
    await bench.store.commit(Delta(partition=partition, made=notes[: 1 + bool(taken)]))
    told = [_report(each, cluster_by_id[each.community], chunks[each.community]) for each in taken]
    if told:
        await bench.store.commit(Delta(reports=told))
    names = {name for each in recorded for name in each.entities if entity_key(name) not in place}
    return Adopted(n_communities=len(clusters), n_reports=len(told), unknown=tuple(sorted(names)))


def _communities(recorded: Sequence[RecordedCommunity], place: Mapping[str, int]) -> dict[str, Community]:
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


def _report(written: RecordedReport, cluster: Cluster, chunks: tuple[str, ...]) -> ClusterReport:
    return ClusterReport(
        cluster=cluster.id,
        title=written.title,
        summary=written.summary,
        findings=written.findings,
        rating=written.rating,
        chunks=chunks,
        inputs_hash=cluster.inputs_hash,
        model=MODEL,
    )
