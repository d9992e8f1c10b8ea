"""Communities: the reports that stand for all of an index, and the communities that entities belong to."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from quipu.model.cluster import Cluster, ClusterReport, Hierarchy
from quipu.model.evidence import Scored
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.steps.search import Vector
from quipu.retrieve.strategy import Tools
from quipu.text.formatting import format_count

OVERSAMPLE = 4

Near = Sequence[tuple[Scored, ClusterReport]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """All communities of a view, those at each level and beneath each other in the order of their ids."""

    by_id: Mapping[str, Cluster]
    children: Mapping[str, Sequence[str]]

    def at(self, level: int) -> list[str]:
        """Return the communities of one level."""
        return [each.id for each in self.by_id.values() if each.level == level]

    def beneath(self, cluster: str) -> Sequence[str]:
        """Return the communities a community is divided into."""
        return self.children.get(cluster, ())

    def finest(self, level: int) -> list[str]:
        """Return the finest community of each branch that is no finer than `level`: together they hold everything.

        Microsoft GraphRAG means to do so and sends the reports of all levels instead, each thing several times.
        """
        return [
            each.id
            for each in self.by_id.values()
            if each.level == level or (each.level < level and not self.beneath(each.id))
        ]


async def read_tree(view: ReadView) -> Tree:
    """Return all communities of a view."""
    clusters = await view.clusters(Hierarchy.COMMUNITIES, with_members=False)
    children: defaultdict[str, list[str]] = defaultdict(list)
    for each in clusters:
        if each.parent:
            children[each.parent].append(each.id)
    return Tree(by_id={each.id: each for each in clusters}, children=children)


async def reported_at(level: int, tree: Tree, view: ReadView) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the finest communities no finer than `level` with the ratings of their reports, and notes on the others.

    Where a report may not be shown, because the filter leaves out some of what it was made from, or is not written yet,
    those of the communities beneath stand in.
    """
    found: dict[str, float] = {}
    sought, n_without = tree.finest(level), 0
    while sought:
        reports = await view.cluster_reports(sought, with_text=False)
        ratings = {report.cluster: report.rating for report in reports}
        found |= ratings
        bare = [cluster for cluster in sought if cluster not in ratings]
        n_without += sum(not tree.beneath(cluster) for cluster in bare)
        sought = [child for cluster in bare for child in tree.beneath(cluster)]
    notes = (f"{format_count(n_without, 'community')} without a report that may be shown",) if n_without else ()
    return found, notes


async def branches(keys: Sequence[str], view: ReadView) -> dict[str, tuple[Cluster, ...]]:
    """Return, for each entity, the communities it is in, the coarsest first; none for what came since the last run."""
    finest = await view.clusters_of(Hierarchy.COMMUNITIES, keys)
    known: dict[str, Cluster] = {}
    sought = set(finest.values())
    while sought:
        read = await view.clusters(Hierarchy.COMMUNITIES, sorted(sought), with_members=False)
        known |= {each.id: each for each in read}
        sought = {each.parent for each in read if each.parent} - known.keys()
    return {key: tuple(reversed(_upwards(finest[key], known))) for key in keys if key in finest}


def _upwards(cluster: str, known: Mapping[str, Cluster]) -> list[Cluster]:
    above: list[Cluster] = []
    while cluster in known:
        above.append(known[cluster])
        cluster = known[cluster].parent
    return above


async def nearest_reports(vector: Vector, n: int, level: int, view: ReadView, tools: Tools) -> Near:
    """Return the n reports nearest to a vector, best first, on communities no finer than `level`.

    Reports on finer communities, and on other groups of entities, have vectors in the same space and are passed over.
    """

    async def are_shown(ids: Sequence[str]) -> Set[str]:
        clusters = await view.clusters(Hierarchy.COMMUNITIES, ids, with_members=False)
        coarse = [cluster.id for cluster in clusters if cluster.level <= level]
        return {report.cluster for report in await view.cluster_reports(coarse, with_text=False)}

    near = await nearest_reports_that(are_shown, vector, n, view, tools)
    reports = {report.cluster: report for report in await view.cluster_reports([each.id for each in near])}
    return [(each, reports[each.id]) for each in near]


async def nearest_reports_that(
    are_sought: Callable[[Sequence[str]], Awaitable[Set[str]]], vector: Vector, n: int, view: ReadView, tools: Tools
) -> list[Scored]:
    """Return the n nearest to a vector, best first, of what has a report and is among those `are_sought` keeps."""
    k = OVERSAMPLE * n
    while True:
        (near,) = await tools.vectors.nearest(view, VectorSpace.REPORT, vector[np.newaxis, :], k=k)
        sought = await are_sought([each.id for each in near])
        found = [each for each in near if each.id in sought]
        if len(found) >= n or len(near) < k:
            return found[:n]
        k *= OVERSAMPLE
