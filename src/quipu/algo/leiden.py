"""Leiden: the partition of a graph with the most modularity that can be found quickly, by graspologic-native.

V. A. Traag, L. Waltman, N. J. van Eck: From Louvain to Leiden: guaranteeing well-connected communities (2019).
"""

import numpy as np

from quipu.algo.pairs import Ints, Pairs

VERSION = "leiden/1"
SEED = 20260521
RANDOMNESS = 0.001
N_ROUNDS = 3  # of the whole algorithm, each from the result of the one before; further ones hardly add anything


def leiden(pairs: Pairs, *, resolution: float = 1.0) -> Ints:
    """Return a label for each node, [n]; nodes without links get one each.

    The same graph gets the same labels, which count from 0 in the order of their first nodes.
    """
    from graspologic_native import leiden as search  # noqa: PLC0415 - only rebuilding wants it

    labels = np.arange(pairs.n)
    if len(pairs.weights):
        names = [str(node) for node in range(pairs.n)]
        ends = (map(names.__getitem__, side.tolist()) for side in (pairs.sources, pairs.targets))
        _, found = search(
            edges=list(zip(*ends, pairs.weights.tolist(), strict=True)),
            starting_communities=None,
            resolution=resolution,
            randomness=RANDOMNESS,
            iterations=N_ROUNDS,
            use_modularity=True,
            seed=SEED,
            trials=1,
        )
        nodes = np.fromiter(map(int, found), np.int64, len(found))
        labels[nodes] = pairs.n + np.fromiter(found.values(), np.int64, len(found))
    return renumbered(labels)


def renumbered(labels: Ints) -> Ints:
    """Return the same partition with labels from 0, in the order of their first nodes."""
    _, first, at = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[at]
