"""Graphs with communities planted in them, for tests of what finds communities."""

import numpy as np

from quipu.algo.edge_list import EdgeList, Ints, edge_list


def planted(n: int, n_groups: int, n_links: int, seed: int, *, mixing: float = 0.15) -> tuple[EdgeList, Ints]:
    """Return a graph of groups of about equal size, with this share of links between any two nodes, and the groups."""
    random = np.random.default_rng(seed)
    group = random.integers(0, n_groups, n)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(n_groups + 1))
    first = random.integers(0, n, n_links)
    size = starts[group[first] + 1] - starts[group[first]]
    near = order[starts[group[first]] + (random.random(n_links) * size).astype(np.int64)]
    second = np.where(random.random(n_links) < mixing, random.integers(0, n, n_links), near)
    return edge_list(n, first, second, random.integers(1, 4, n_links).astype(np.float64)), group


def with_document(graph: EdgeList, home: Ints, seed: int, *, n_new: int = 4) -> tuple[EdgeList, Ints]:
    """Return the graph with a document's worth of new nodes and links, and the known nodes that it links.

    The known nodes are six of `home` and one other. The new nodes have the last numbers.
    """
    random = np.random.default_rng(seed)
    known = np.unique(np.append(random.choice(home, min(6, len(home)), replace=False), random.integers(0, graph.n)))
    pool = np.concatenate([known, np.arange(graph.n, graph.n + n_new)])
    first, second = random.choice(pool, 4 * n_new), random.choice(pool, 4 * n_new)
    larger = edge_list(
        graph.n + n_new,
        np.concatenate([graph.sources, first]),
        np.concatenate([graph.targets, second]),
        np.concatenate([graph.weights, np.ones(4 * n_new)]),
    )
    return larger, known
