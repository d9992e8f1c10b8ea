"""Layers of clusters: vectors are clustered, then the clusters, up to one root: the tree of LeanRAG's hierarchy."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from quipu.algo.vector_clusters import CLUSTER_SIZE, Grouping, cluster_means, nearest_centres, to_grid

Ints = npt.NDArray[np.int64]

_MIN_CLUSTERS = 4  # a layer with this many clusters or fewer is left out: the root takes its members
_MIN_NODES = 2  # this many nodes or fewer are not clustered


@dataclass(frozen=True, slots=True)
class ClusterLayers:
    """A tree: the leaves 0 to n - 1, then the clusters, lower layers first; the last node is the root.

    `parents` [n_nodes] is -1 for the root. `levels` [n_nodes] is 0 for leaves and rises. A cluster of one member is not
    made: the member is clustered in a higher layer, so its parent is more than one level above it.
    """

    parents: Ints
    levels: Ints

    def ancestors(self, level: int) -> Ints:
        """Return, for each leaf [n], the highest of itself and its ancestors that is not above `level`."""
        nodes = np.arange(int((self.levels == 0).sum()), dtype=np.int64)
        while True:
            above = np.where(self.parents[nodes] >= 0, self.parents[nodes], nodes)
            above = np.where(self.levels[above] <= level, above, nodes)
            if (above == nodes).all():
                return nodes
            nodes = above


def max_layers(n: int) -> int:
    """Return the largest number of layers that LeanRAG puts over n leaves, without the root."""
    return round(log(n, CLUSTER_SIZE)) + 1 if n > 1 else 0


def cluster_layers(
    keys: Sequence[str], vectors: npt.NDArray[np.float16], grouping: Grouping = nearest_centres
) -> ClusterLayers:
    """Return the layers over leaves with these `keys` (distinct, ascending) and unit vectors [n, d].

    A cluster's vector is the mean of its leaves' vectors. In the next layer, a cluster has the key of its centre. So
    the tree depends only on keys and vectors. Source: LeanRAG (Y. Zhang et al., 2025), with the stop rules of its code.
    Deviation: LeanRAG embeds a summary that a model writes of the cluster.
    """
    layer_keys, rows = list(keys), to_grid(vectors)
    leaves, position = rows, np.arange(len(keys), dtype=np.int64)  # `position`: each leaf's cluster in this layer
    tree = _TreeBuilder(len(keys))
    for layer in range(1, max_layers(len(keys)) + 1):
        if len(layer_keys) <= _MIN_NODES:
            break
        centres, groups, sizes = np.unique(grouping(layer_keys, rows, layer), return_inverse=True, return_counts=True)
        if len(centres) <= _MIN_CLUSTERS or len(centres) == len(layer_keys):
            break
        tree.add_layer(groups, sizes)
        position = groups[position]
        layer_keys = [layer_keys[centre] for centre in centres]  # still ascending, because the centres are
        rows = cluster_means(leaves, position, len(layer_keys))
    if len(layer_keys) > 1:
        tree.add_layer(np.zeros(len(layer_keys), dtype=np.int64), np.array([len(layer_keys)]))
    return ClusterLayers(tree.parents, tree.levels)


class _TreeBuilder:
    """Adds layers to a tree, from the lowest up."""

    def __init__(self, n: int) -> None:
        self.parents = np.full(n, -1, dtype=np.int64)
        self.levels = np.zeros(n, dtype=np.int64)
        self._nodes = np.arange(n, dtype=np.int64)  # the nodes of the highest layer, in order

    def add_layer(self, groups: Ints, sizes: Ints) -> None:
        """Put clusters of `sizes` [k] over the highest layer; `groups` assigns its nodes. A single node is not a
        cluster."""
        is_new = sizes > 1
        above = np.where(is_new, len(self.parents) + np.cumsum(is_new) - 1, -1)
        has_parent = is_new[groups]
        above[groups[~has_parent]] = self._nodes[~has_parent]
        self.parents[self._nodes[has_parent]] = above[groups[has_parent]]
        n_new = int(is_new.sum())
        self.parents = np.append(self.parents, np.full(n_new, -1, dtype=np.int64))
        self.levels = np.append(self.levels, np.full(n_new, self.levels.max(initial=0) + 1))
        self._nodes = above
