"""Local search: the communities of entities, the reports on them, and the relations and passages around entities.

Relations and passages are selected as in the local search of Microsoft GraphRAG.
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from quipu.model.cluster import Cluster, ClusterReport, Hierarchy
from quipu.model.evidence import Hit, Scored
from quipu.model.graph import IncidentRelation
from quipu.ports.store import OccurrenceKind, ReadView, VectorSpace
from quipu.retrieve.steps.passages import MAX_CHUNKS_PER_ENTITY
from quipu.retrieve.steps.seeds import Vector
from quipu.retrieve.strategy import Tools

OVERSAMPLING = 4

MAX_RELATIONS_READ = 2_000  # those with the best connected ends first


async def communities_of(keys: Sequence[str], view: ReadView) -> dict[str, tuple[Cluster, ...]]:
    """Return the communities of each entity, coarsest first. An entity added after the last clustering has none."""
    communities = await view.clusters(Hierarchy.COMMUNITIES, entities=keys)
    finest = {key: community.id for community in communities for key in community.members}
    cluster_by_id = {community.id: replace(community, members=()) for community in communities}
    ids = {community.parent for community in communities if community.parent} - cluster_by_id.keys()
    while ids:
        clusters = await view.clusters(Hierarchy.COMMUNITIES, sorted(ids), with_members=False)
        cluster_by_id |= {cluster.id: cluster for cluster in clusters}
        ids = {cluster.parent for cluster in clusters if cluster.parent} - cluster_by_id.keys()
    return {key: tuple(reversed(_with_parents(finest[key], cluster_by_id))) for key in keys if key in finest}


async def reports_of(
    keys: Sequence[str], level: int, view: ReadView, *, all_levels: bool = False
) -> list[tuple[ClusterReport, int]]:
    """Return the reports on the communities of entities, each with the number of entities in it, highest first.

    An entity's community is the finest one that is not finer than `level`. If its report is not available, the next
    finer community with a report is used. With `all_levels`, an entity has a community on each level that is not finer
    than `level`, as in Microsoft GraphRAG. Reports with equal numbers are ordered by rating, then by id.
    """
    candidates = [
        [cluster.id for cluster in branch if cluster.level <= level]
        if all_levels
        else list(_report_candidates(branch, level))
        for branch in (await communities_of(keys, view)).values()
    ]
    ids = sorted({cluster for clusters in candidates for cluster in clusters})
    reports = {report.cluster: report for report in await view.cluster_reports(ids)} if ids else {}
    with_report = ([cluster for cluster in clusters if cluster in reports] for clusters in candidates)
    n_entities = Counter(cluster for clusters in with_report for cluster in (clusters if all_levels else clusters[:1]))
    ranked = sorted(n_entities, key=lambda cluster: (-n_entities[cluster], -reports[cluster].rating, cluster))
    return [(reports[cluster], n_entities[cluster]) for cluster in ranked]


async def find_nearest_clusters(
    select: Callable[[Sequence[str]], Awaitable[Set[str]]], vector: Vector, n: int, view: ReadView, tools: Tools
) -> list[Scored]:
    """Return the n clusters whose reports are nearest to a vector, best first, of those that `select` returns.

    Reports on communities and on aggregates share one vector space. `select` gets ids and returns the wanted ones.
    """
    k = OVERSAMPLING * n
    while True:
        (nearest,) = await tools.vectors.nearest(view, VectorSpace.REPORT, vector[np.newaxis, :], k=k)
        selected = await select([scored.id for scored in nearest])
        matches = [scored for scored in nearest if scored.id in selected]
        if len(matches) >= n or len(nearest) < k:
            return matches[:n]
        k *= OVERSAMPLING


def _with_parents(cluster: str, cluster_by_id: Mapping[str, Cluster]) -> list[Cluster]:
    chain: list[Cluster] = []
    while cluster in cluster_by_id:
        chain.append(cluster_by_id[cluster])
        cluster = cluster_by_id[cluster].parent
    return chain


def _report_candidates(branch: Sequence[Cluster], level: int) -> Iterator[str]:
    """Yield the finest cluster of a branch (coarsest first) that is not finer than `level`, then the finer ones."""
    start = max((position for position, cluster in enumerate(branch) if cluster.level <= level), default=0)
    yield from (cluster.id for cluster in branch[start:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """Entities, nearest to the question first, and the relations of these entities; `n_unread` more were not read."""

    entities: tuple[Scored, ...]
    relations: tuple[IncidentRelation, ...]
    n_unread: int


async def read_neighbourhood(entities: Sequence[Scored], view: ReadView) -> Neighbourhood:
    """Return entities with their relations."""
    keys = [entity.id for entity in entities]
    relations, n = await view.strongest_relations(keys, MAX_RELATIONS_READ) if keys else ([], 0)
    return Neighbourhood(entities=tuple(entities), relations=tuple(relations), n_unread=n - len(relations))


async def rank_passages(area: Neighbourhood, vector: Vector, view: ReadView, tools: Tools) -> tuple[Hit, ...]:
    """Return the passages that mention the entities, in the order of the entities.

    Passages of one entity are ordered by how many of its relations they state, then by their similarity to the
    question, whose vector is `vector`.
    """
    keys = [entity.id for entity in area.entities]
    chunks_by_key = await view.occurrences(OccurrenceKind.ENTITY, keys, MAX_CHUNKS_PER_ENTITY) if keys else {}
    chunks_by_relation = (
        await view.occurrences(OccurrenceKind.RELATION, [r.id for r in area.relations]) if area.relations else {}
    )
    n_stated = _count_stated_relations(area.relations, chunks_by_relation)
    mentioning = sorted({chunk for chunks in chunks_by_key.values() for chunk in chunks})
    cosines = await tools.vectors.similarities(view, VectorSpace.CHUNK, vector, mentioning)
    hits: dict[str, Hit] = {}
    for entity in area.entities:
        counts = n_stated[entity.id]
        chunks = chunks_by_key.get(entity.id, ())
        for chunk in sorted(chunks, key=lambda chunk: (-counts[chunk], -cosines.get(chunk, 0.0), chunk)):
            stated = f", states {counts[chunk]} of its relations" if counts[chunk] else ""
            hits.setdefault(chunk, Hit(id=chunk, score=entity.score, reason=f"mentions {entity.id}{stated}"))
    return tuple(hits.values())


def _count_stated_relations(
    relations: Sequence[IncidentRelation], chunks_by_relation: Mapping[str, Iterable[str]]
) -> Mapping[str, Counter[str]]:
    """Return, for each entity, how many of its relations each chunk states."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for relation in relations:
        for end in (relation.source, relation.target):
            counts[end].update(chunks_by_relation.get(relation.id, ()))
    return counts
