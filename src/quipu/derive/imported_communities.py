"""Imported communities: communities and reports of another system, which replace the ones that Quipu computed.

Communities stay as they were imported: all other entities form communities among themselves, and an imported report is
written again once the facts about its community change. Communities and reports are stored in the reply cache, where
each refresh finds them. They name no removed document: entities are stored as digests of their keys, and a report is
deleted with the first of its documents that is changed or removed.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from quipu.algo.graph_communities import Community
from quipu.derive.community_partition import offset_parents, partition_graph, partition_identity, read_community_graph
from quipu.derive.derivation import DerivationContext
from quipu.derive.report_writer import IMPORTED_MODEL, REPORTS_IDENTITY
from quipu.errors import Busy
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.cluster import Cluster, ClusterReport, Finding, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import COMMUNITIES, IMPORTED_COMMUNITIES, IMPORTED_GRAPH, REPORTS, DerivationRecord
from quipu.model.ids import digest
from quipu.model.imported_graph import ImportedCommunity, ImportedGraph, ImportedReport
from quipu.ports.store import CallReply, OccurrenceKind, ReadView, ReplyCache, Store
from quipu.text.names import entity_key

MAX_CHUNKS = 8  # that a report cites
CHUNKS_PER_ENTITY = 32  # that are considered for the report of a community
MAX_ATTEMPTS = 5  # while other processes change facts about the entities

_REQUEST = ChatRequest(messages=(), role=Role.REPORT, max_output_tokens=0)  # never sent: the reply cache needs one


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityImportResult:
    """How many communities and reports were imported; `unknown` are entity names in them that no document has."""

    n_communities: int = 0
    n_reports: int = 0
    unknown: tuple[str, ...] = ()


async def is_imported(graph: ImportedGraph, store: Store) -> bool:
    """Return whether the present communities come from this graph."""
    async with store.view() as view:
        records = await view.derivations()
    has_all = COMMUNITIES in records and (REPORTS in records or not graph.reports)
    return has_all and IMPORTED_GRAPH in records and records[IMPORTED_GRAPH].identity == graph.identity


async def import_communities(context: DerivationContext, graph: ImportedGraph) -> CommunityImportResult:
    """Replace the communities and reports by the ones of an imported graph; do nothing if it has no known entity.

    All other entities, such as the entities of other documents, form communities among themselves. They do not join
    imported communities, because that would invalidate imported reports. The import is recorded last, so that an
    interrupted one is repeated. Raises Busy if other processes keep changing facts about the entities.
    """
    for _ in range(MAX_ATTEMPTS):
        async with context.store.view() as view:
            plan = await _plan_import(graph, view, context)
        if not plan.result.n_communities:
            return plan.result
        records = _records(plan)
        commit = await context.store.commit(Delta(partition=plan.partition, reports=plan.reports, derivations=records))
        if not commit.n_outdated:
            break  # otherwise facts changed after the view was opened, and the store dropped some reports
    else:
        raise Busy(
            f"The reports on {commit.n_outdated:,} communities were not imported, because other processes kept changing"
            " facts about their entities.",
            remedy="Import the same again when nothing is being added.",
        )
    import_record = DerivationRecord(name=IMPORTED_GRAPH, identity=graph.identity, revision=plan.partition.revision)
    async with context.store.view() as view:
        await _store_reports(plan.reports, view, context.store)
        communities_record = await _store_communities(plan.originals, plan.keys, view, context.store)
    await context.store.commit(Delta(derivations=[import_record, communities_record]))
    return plan.result


@dataclass(frozen=True, slots=True, kw_only=True)
class _ImportPlan:
    """What an import commits. `originals` are all communities ever imported; their nodes are places in `keys`."""

    partition: Partition
    reports: Sequence[ClusterReport]
    result: CommunityImportResult
    originals: Sequence[Community]
    keys: Sequence[str]


def _records(plan: _ImportPlan) -> list[DerivationRecord]:
    identities = {COMMUNITIES: partition_identity()} | ({REPORTS: REPORTS_IDENTITY} if plan.reports else {})
    revision = plan.partition.revision
    return [DerivationRecord(name=name, identity=identity, revision=revision) for name, identity in identities.items()]


async def _plan_import(graph: ImportedGraph, view: ReadView, context: DerivationContext) -> _ImportPlan:
    community_graph = await read_community_graph(view, await context.topology.open(view))
    keys = community_graph.keys
    place_by_key = {key: place for place, key in enumerate(keys)}
    community_by_id = _known_communities(graph.communities, place_by_key)
    originals = _add_earlier(list(community_by_id.values()), await load_communities(keys, view, context.store))
    record = (await view.derivations()).get(COMMUNITIES)
    is_current = record is not None and record.identity == partition_identity()
    stored = await view.clusters(Hierarchy.COMMUNITIES) if is_current else []
    plan = await asyncio.to_thread(partition_graph, community_graph, stored, originals)
    clusters = plan.clusters(await plan.read_hashes(view))
    cluster_by_id = dict(zip(community_by_id, clusters, strict=False))  # the communities of this graph come first
    reports: list[ClusterReport] = []
    for report in graph.reports:
        if report.community in cluster_by_id:
            members = [keys[node] for node in community_by_id[report.community].nodes.tolist()]
            chunks = await _cited_chunks(view, members)
            reports.append(_cluster_report(report, cluster_by_id[report.community], chunks))
    names = {name for community in graph.communities for name in community.entities}
    unknown = sorted(name for name in names if entity_key(name) not in place_by_key)
    return _ImportPlan(
        partition=Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=view.revision),
        reports=reports,
        result=CommunityImportResult(
            n_communities=len(community_by_id), n_reports=len(reports), unknown=tuple(unknown)
        ),
        originals=originals,
        keys=keys,
    )


def _known_communities(imported: Sequence[ImportedCommunity], place_by_key: Mapping[str, int]) -> dict[str, Community]:
    """Return communities by their imported ids, coarsest first, with the places of their known entities.

    A community keeps only entities that its parent has, and that no earlier community of the level has. Communities
    without a known entity are left out; their children move to the coarsest level.
    """
    community_by_id: dict[str, Community] = {}
    place_by_id: dict[str, int] = {}
    assigned: set[tuple[int, int]] = set()  # level, node
    for community in sorted(imported, key=lambda community: (community.level, community.id)):
        parent_place = place_by_id.get(community.parent, -1)
        parent = community_by_id[community.parent] if parent_place >= 0 else None
        level = parent.level + 1 if parent else 0
        nodes = {place_by_key[key] for key in map(entity_key, community.entities) if key in place_by_key}
        nodes = {node for node in nodes if (level, node) not in assigned}
        nodes = nodes & set(parent.nodes.tolist()) if parent else nodes
        if not nodes:
            continue
        assigned.update((level, node) for node in nodes)
        place_by_id[community.id] = len(community_by_id)
        community_by_id[community.id] = Community(level, parent_place, np.array(sorted(nodes), dtype=np.int64), True)
    parents = {community.parent for community in community_by_id.values()}
    return {
        identifier: replace(community, is_finest=place_by_id[identifier] not in parents)
        for identifier, community in community_by_id.items()
    }


async def _cited_chunks(view: ReadView, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the chunks that name most of a community's entities."""
    n_entities_by_chunk: Counter[str] = Counter()
    for counts in (await view.occurrences(OccurrenceKind.ENTITY, keys, CHUNKS_PER_ENTITY)).values():
        n_entities_by_chunk.update(counts.keys())
    return tuple(sorted(n_entities_by_chunk, key=lambda chunk: (-n_entities_by_chunk[chunk], chunk))[:MAX_CHUNKS])


def _cluster_report(report: ImportedReport, cluster: Cluster, chunks: tuple[str, ...]) -> ClusterReport:
    return ClusterReport(
        cluster=cluster.id,
        title=report.title,
        summary=report.summary,
        findings=report.findings,
        rating=report.rating,
        chunks=chunks,
        inputs_hash=cluster.inputs_hash,
        model=IMPORTED_MODEL,
    )


def _add_earlier(imported: Sequence[Community], earlier: Sequence[Community]) -> list[Community]:
    """Return the communities of this import and of earlier ones, without the entities that this import has."""
    n_nodes = max((int(community.nodes[-1]) + 1 for community in (*imported, *earlier)), default=0)
    is_free = np.ones(n_nodes, dtype=np.bool_)
    for community in imported:
        is_free[community.nodes] = False
    rest = [replace(community, nodes=community.nodes[is_free[community.nodes]]) for community in earlier]
    return _without_empty([*imported, *offset_parents(rest, len(imported))])


def _without_empty(communities: Sequence[Community]) -> list[Community]:
    """Return the communities that have entities; each follows its parent, and those without children are finest."""
    new_place_by_place: dict[int, int] = {}
    remaining: list[Community] = []
    for place, community in enumerate(communities):
        if len(community.nodes):
            new_place_by_place[place] = len(remaining)
            remaining.append(replace(community, parent=new_place_by_place.get(community.parent, -1)))
    parents = {community.parent for community in remaining}
    return [replace(community, is_finest=place not in parents) for place, community in enumerate(remaining)]


async def load_communities(keys: Sequence[str], view: ReadView, reply_cache: ReplyCache) -> list[Community]:
    """Return all communities ever imported, coarsest first, with the places in `keys` of the entities that exist."""
    payload = await _communities_payload(view, reply_cache)
    return await asyncio.to_thread(_decode_communities, payload, keys) if payload else []


async def has_imported_communities(view: ReadView, reply_cache: ReplyCache) -> bool:
    """Return whether the imported communities are still recorded, so that a rebuild can keep them."""
    return bool(await _communities_payload(view, reply_cache))


async def read_imported_reports(view: ReadView, clusters: Sequence[Cluster]) -> list[ClusterReport]:
    """Return the imported reports on these clusters whose inputs have not changed since the import."""
    hash_by_id = {cluster.id: cluster.inputs_hash for cluster in clusters if cluster.inputs_hash}
    reports = await view.cluster_reports(sorted(hash_by_id))
    return [
        report
        for report in reports
        if report.model == IMPORTED_MODEL and report.inputs_hash == hash_by_id[report.cluster]
    ]


async def load_reports(clusters: Sequence[Cluster], store: Store) -> dict[str, ClusterReport]:
    """Return the stored imported reports that fit these clusters, by input hash; their `cluster` is empty."""
    hash_by_cache_key = {
        _report_cache_key(cluster.inputs_hash): cluster.inputs_hash for cluster in clusters if cluster.inputs_hash
    }
    payload_by_cache_key = await store.find_replies(sorted(hash_by_cache_key))
    return {
        hash_by_cache_key[cache_key]: _decode_report(payload, hash_by_cache_key[cache_key])
        for cache_key, payload in payload_by_cache_key.items()
    }


async def _store_communities(
    communities: Sequence[Community], keys: Sequence[str], view: ReadView, reply_cache: ReplyCache
) -> DerivationRecord:
    """Store imported communities for as long as any of the present documents exists; return the record of them."""
    payload = await asyncio.to_thread(_encode_communities, communities, keys)
    documents = tuple(document.id for document in await view.documents() if document.version)
    identity = digest("imported", payload)
    request = replace(_REQUEST, documents=documents)
    await reply_cache.record_call((), CallReply(input_hash=identity, payload=payload, request=request))
    return DerivationRecord(name=IMPORTED_COMMUNITIES, identity=identity, revision=view.revision)


async def _store_reports(reports: Sequence[ClusterReport], view: ReadView, reply_cache: ReplyCache) -> None:
    """Store imported reports under their input hashes, each until one of its documents changes."""
    documents_by_cluster = await view.cluster_documents([report.cluster for report in reports])
    async with asyncio.TaskGroup() as tasks:
        for report in reports:
            documents = documents_by_cluster.get(report.cluster, ())
            if documents:
                request = replace(
                    _REQUEST, documents=documents, lifetime=ReplyLifetime.ALL_DOCUMENTS, revision=view.revision
                )
                cache_key = _report_cache_key(report.inputs_hash)
                reply = CallReply(input_hash=cache_key, payload=_encode_report(report), request=request)
                tasks.create_task(reply_cache.record_call((), reply))


async def _communities_payload(view: ReadView, reply_cache: ReplyCache) -> str:
    record = (await view.derivations()).get(IMPORTED_COMMUNITIES)
    return (await reply_cache.find_replies([record.identity])).get(record.identity, "") if record else ""


def _encode_communities(communities: Sequence[Community], keys: Sequence[str]) -> str:
    """Return communities as JSON: the place of each one's parent, and the digests of its entities."""
    digests = [_key_digest(key) for key in keys]
    return json.dumps(
        [[community.parent, [digests[node] for node in community.nodes.tolist()]] for community in communities]
    )


def _decode_communities(payload: str, keys: Sequence[str]) -> list[Community]:
    place_by_digest = {_key_digest(key): place for place, key in enumerate(keys)}
    communities: list[Community] = []
    for parent, digests in json.loads(payload):
        places = sorted(place_by_digest[key_digest] for key_digest in digests if key_digest in place_by_digest)
        level = communities[parent].level + 1 if parent >= 0 else 0
        communities.append(Community(level, parent, np.array(places, dtype=np.int64), True))
    return _without_empty(communities)


def _key_digest(key: str) -> str:
    return digest("entity", key)[:16]


def _report_cache_key(inputs_hash: str) -> str:
    return digest("imported report", inputs_hash)


def _encode_report(report: ClusterReport) -> str:
    findings = [[finding.summary, finding.explanation] for finding in report.findings]
    return json.dumps([report.title, report.summary, findings, report.rating, report.chunks])


def _decode_report(payload: str, inputs_hash: str) -> ClusterReport:
    title, summary, findings, rating, chunks = json.loads(payload)
    return ClusterReport(
        cluster="",
        title=title,
        summary=summary,
        findings=tuple(Finding(summary=text, explanation=explanation) for text, explanation in findings),
        rating=rating,
        chunks=tuple(chunks),
        inputs_hash=inputs_hash,
        model=IMPORTED_MODEL,
    )
