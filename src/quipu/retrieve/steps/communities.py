"""Communities: the communities that entities belong to, and the reports on them."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from quipu.model.cluster import Cluster, ClusterReport, Hierarchy
from quipu.model.evidence import Scored
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.steps.vector_search import Vector
from quipu.retrieve.strategy import Tools

OVERSAMPLING = 4


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
