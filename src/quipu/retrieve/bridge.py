"""bridge: what a question is near to, the communities most of it is in, and the ways between their key entities.

Source: H. Huang et al., Retrieval-augmented generation with hierarchical knowledge (HiRAG, 2025), mode "hi". The 20
entities nearest to the question give communities and passages; of each community the first 10 of the 200 nearest are
key entities, and the bridge is what lies on the shortest ways from each to the next. Otherwise than in their code, key
entities come in the order of similarity instead of that of a Python set, hubs are far from everything, and what is on
the ways comes before what only lies beside them, which there fills the budget.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quipu.algo.ranking import n_fitting
from quipu.model.cluster import Cluster, ClusterReport, report_text
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.query import Query
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import EdgeWeight, Topology
from quipu.retrieve.steps.bridging import bridge
from quipu.retrieve.steps.communities import branches
from quipu.retrieve.steps.passages import MAX_CHUNKS_PER_ENTITY
from quipu.retrieve.steps.search import embed, near_hits, nearest
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count

MAX_ENTITIES, WIDER = 20, 10
MAX_COMMUNITIES, KEYS_PER_COMMUNITY = 10, 10
MAX_KEYS = 30  # in the chain: each costs a search for a way
REPORT_SHARE = 12_500 / 65_000  # of all that HiRAG sends


@dataclass(frozen=True, slots=True, kw_only=True)
class _Community:
    """A community, how many of the nearest entities are in it, and its report where that may be shown."""

    cluster: str
    n_entities: int
    report: ClusterReport | None


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the nearest entities, the reports on their communities, the bridge between these, and passages."""
    vectors = await embed([query.text], tools.embedder)
    n = min(query.top_k, MAX_ENTITIES)
    wide = await nearest(VectorSpace.ENTITY, vectors[query.text], query=query, k=WIDER * n, view=view, tools=tools)
    near = wide[:n]
    within = await branches([entity.id for entity in wide], view)
    communities = await _communities(near, within, query, view)
    used = communities[: _n_fitting(communities, query, tools)][:MAX_COMMUNITIES]
    keys = _key_entities(wide, used, within)
    topology = await tools.topology.open(view)
    ways = await bridge(keys[:MAX_KEYS], view, topology)
    return Evidence(
        chunks=(await _passages(near, topology, view))[: query.chunk_top_k],
        entities=near_hits(near),
        relations=ways.relations,
        reports=tuple(_report_hit(each) for each in used if each.report),
        seeds=(Seed(text=query.text, kind="vector", matches=near),),
        notes=tuple(_notes(near, used, n_keys=len(keys), n_apart=ways.n_apart)),
    )


async def _communities(
    near: Sequence[Scored], within: Mapping[str, Sequence[Cluster]], query: Query, view: ReadView
) -> list[_Community]:
    """Return the communities no finer than the query's level, by how many of the entities they hold, then by rating."""
    counts = Counter(
        cluster.id for entity in near for cluster in within.get(entity.id, ()) if cluster.level <= query.community_level
    )
    reports = {report.cluster: report for report in await view.cluster_reports(sorted(counts))} if counts else {}
    rating = {cluster: reports[cluster].rating if cluster in reports else 0.0 for cluster in counts}
    ranked = sorted(counts, key=lambda cluster: (-counts[cluster], -rating[cluster], cluster))
    return [_Community(cluster=each, n_entities=counts[each], report=reports.get(each)) for each in ranked]


def _n_fitting(communities: Sequence[_Community], query: Query, tools: Tools) -> int:
    """Return how many communities are used: those whose reports fit their share; one that has none costs nothing."""
    costs = (tools.tokenizer.count(report_text(each.report)) if each.report else 0 for each in communities)
    return n_fitting(costs, int(REPORT_SHARE * query.budget.total))


def _key_entities(
    wide: Sequence[Scored], used: Sequence[_Community], within: Mapping[str, Sequence[Cluster]]
) -> list[str]:
    """Return the key entities of all communities used, most similar first; without any, the most similar of all."""
    keys: set[str] = set()
    for community in used:
        members = [e.id for e in wide if any(c.id == community.cluster for c in within.get(e.id, ()))]
        keys.update(members[:KEYS_PER_COMMUNITY])
    return [each.id for each in wide if each.id in keys] or [each.id for each in wide[:KEYS_PER_COMMUNITY]]


async def _passages(near: Sequence[Scored], topology: Topology, view: ReadView) -> tuple[Hit, ...]:
    """Return the passages that name the entities: of the first entity first, those that name most of its neighbours."""
    keys = [entity.id for entity in near]
    naming = await view.chunks_of_entities(keys, MAX_CHUNKS_PER_ENTITY) if keys else {}
    numbers = await view.numbers(NodeKind.ENTITY, keys)
    chunks = await view.numbers(NodeKind.CHUNK, sorted({chunk for each in naming.values() for chunk in each}))
    relations, namings = topology.relations(EdgeWeight.ONE), topology.occurrences_by_chunk()
    hits: dict[str, Hit] = {}
    for entity in near:
        own = sorted(chunk for chunk in naming.get(entity.id, ()) if chunk in chunks)
        if entity.id not in numbers or not own:
            continue
        neighbours = relations.neighbours(np.array([numbers[entity.id]], dtype=np.int64)).columns
        named = namings.neighbours(np.array([chunks[chunk] for chunk in own], dtype=np.int64))
        shared = np.bincount(named.positions[np.isin(named.columns, neighbours)], minlength=len(own))
        for n, chunk in sorted(zip((-shared).tolist(), own, strict=True)):
            related = f" and {format_count(-n, 'entity')} related to it" if n else ""
            reason = f"names {entity.id}{related}"
            hits.setdefault(chunk, Hit(id=chunk, score=entity.score, reason=reason))
    return tuple(hits.values())


def _report_hit(community: _Community) -> Hit:
    reason = f"on a community of {community.n_entities} of the entities"
    return Hit(id=community.cluster, score=float(community.n_entities), reason=reason)


def _notes(near: Sequence[Scored], used: Sequence[_Community], *, n_keys: int, n_apart: int) -> list[str]:
    if not near:
        return ["no entity is near to the question"]
    notes = [] if any(each.report for each in used) else ["no report on their communities may be shown"]
    if n_keys > MAX_KEYS:
        notes.append(f"of {n_keys} key entities the first {MAX_KEYS} are connected")
    return [*notes, f"{format_count(n_apart, 'key entity')} without a way to the next"] if n_apart else notes


STRATEGY = Strategy(
    name="bridge",
    retrieve=retrieve,
    summary="reports on the communities of the nearest entities, and the ways that connect their key entities",
    after="HiRAG (hi)",
    when="the question asks how distant things hang together",
    needs=("topology", "communities", "reports", "entity vectors"),
)
