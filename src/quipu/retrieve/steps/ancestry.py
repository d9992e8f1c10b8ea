"""Ancestry: the aggregates above what a search begins with, and the paths that lead through them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from quipu.algo.lca import Forest
from quipu.model.cluster import Cluster, Hierarchy
from quipu.ports.store import ReadView


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePaths:
    """What lies on the tree paths between each two starts: aggregates, with how many steps each start is below them.

    A start is on its own paths; one that is an aggregate is so with 0 steps, also where it is alone.
    """

    clusters: Mapping[str, Cluster]
    steps: Mapping[str, Mapping[str, int]]  # of an aggregate, from each start whose path reaches it


async def paths_between(starts: Sequence[str], view: ReadView) -> TreePaths:
    """Return the paths between entities and aggregates by way of their lowest common ancestors.

    What came since the hierarchy was made is in none. LeanRAG walks names, where promoted members lose their ancestors.
    """
    above, clusters = await _ancestors(starts, view)
    nodes = list(dict.fromkeys([*(each for each in starts if each in above or each in clusters), *sorted(clusters)]))
    place = {node: at for at, node in enumerate(nodes)}
    parents = [place.get(above.get(node, ""), -1) for node in nodes]
    forest = Forest(np.array(parents, dtype=np.int64))
    known = [place[start] for start in dict.fromkeys(starts) if start in place]
    pairs = np.array(list(combinations(known, 2)), dtype=np.int64).reshape(-1, 2)
    tops = forest.lca(pairs[:, 0], pairs[:, 1])
    steps: dict[str, dict[str, int]] = {}
    for (first, second), top in zip(pairs.tolist(), tops.tolist(), strict=True):
        for start in (first, second) if top >= 0 else ():
            at, n = start, 0
            while True:
                if nodes[at] in clusters:
                    steps.setdefault(nodes[at], {})[nodes[start]] = n
                if at == top:
                    break
                at, n = parents[at], n + 1
    for at in known:
        if nodes[at] in clusters:
            steps.setdefault(nodes[at], {})[nodes[at]] = 0
    return TreePaths(clusters={node: clusters[node] for node in steps}, steps=steps)


async def _ancestors(starts: Sequence[str], view: ReadView) -> tuple[dict[str, str], dict[str, Cluster]]:
    """Return what is right above each start and each of its ancestors, and these: a read for each layer."""
    above = await view.clusters_of(Hierarchy.AGGREGATES, starts)
    clusters: dict[str, Cluster] = {}
    sought = set(above.values()) | {start for start in starts if start not in above}
    while sought:
        found = await view.clusters(Hierarchy.AGGREGATES, sorted(sought))
        clusters |= {each.id: each for each in found}
        above |= {each.id: each.parent for each in found if each.parent}
        sought = {each.parent for each in found if each.parent} - clusters.keys()
    return above, clusters
