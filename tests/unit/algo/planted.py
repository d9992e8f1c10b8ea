"""Graphs with communities planted in them, for tests of what finds communities."""

import numpy as np

from quipu.algo.edge_list import EdgeList, edge_list
from quipu.algo.leiden import Community, PreviousPartition


def planted(n: int, n_groups: int, n_links: int, seed: int, *, mixing: float = 0.15) -> EdgeList:
    """Return a graph of groups of about equal size, with this share of links between any two nodes."""
    random = np.random.default_rng(seed)
    group = random.integers(0, n_groups, n)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(n_groups + 1))
    first = random.integers(0, n, n_links)
    size = starts[group[first] + 1] - starts[group[first]]
    near = order[starts[group[first]] + (random.random(n_links) * size).astype(np.int64)]
    second = np.where(random.random(n_links) < mixing, random.integers(0, n, n_links), near)
    return edge_list(n, first, second, random.integers(1, 4, n_links).astype(np.float64))


def grown(
    pairs: EdgeList, found: list[Community], seed: int, *, n_new: int = 8
) -> tuple[EdgeList, PreviousPartition, set[int]]:
    """Return the graph with a document's worth of new nodes and links, and how it was divided before.

    Third are the communities, by place, that hold a node the document links, and those above them.
    """
    random = np.random.default_rng(seed)
    coarse = [each for each in found if each.level == 0]
    home = coarse[random.integers(0, len(coarse))].nodes
    known = np.concatenate([random.choice(home, min(6, len(home)), replace=False), random.integers(0, pairs.n, 2)])
    pool = np.concatenate([known, np.arange(pairs.n, pairs.n + n_new)])
    first, second = random.choice(pool, 3 * n_new), random.choice(pool, 3 * n_new)
    larger = edge_list(
        pairs.n + n_new,
        np.concatenate([pairs.sources, first]),
        np.concatenate([pairs.targets, second]),
        np.concatenate([pairs.weights, np.ones(3 * n_new)]),
    )
    before = before_of(found, pairs.n, larger.n)
    touched: set[int] = set()
    for node in known.tolist():
        place = next(at for at, each in enumerate(found) if each.is_finest and node in each.nodes)
        before.free[found[place].nodes] = True
        while place >= 0:
            touched.add(place)
            place = found[place].parent
    return larger, before, touched


def before_of(found: list[Community], n: int, n_now: int) -> PreviousPartition:
    """Return how a graph was divided, for one that has grown to `n_now` nodes: those that came are free."""
    levels = [np.full(n_now, -1, dtype=np.int64) for _ in range(max(each.level for each in found) + 1)]
    for place, each in enumerate(found):
        levels[each.level][each.nodes] = place
    return PreviousPartition(levels, np.arange(n_now) >= n)
