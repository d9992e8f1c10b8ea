"""Layers: things grouped by likeness, the groups grouped again, up to one root; the skeleton of LeanRAG's hierarchy."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from quipu.algo.mixture import MEMBERS, Grouping, means, nearest_centres, on_grid

Ints = npt.NDArray[np.int64]

_FEWEST = 4  # a layer of so many groups or fewer is not made: the root lies above what would be grouped
_LEAST = 2  # nor are so few things grouped


@dataclass(frozen=True, slots=True)
class Layers:
    """Things 0 to n - 1, then groups, those of lower layers first; the last of several nodes is the root.

    `parents` [n_nodes] is -1 for the root; `levels` [n_nodes] is 0 for things, then rises. Where a group would have had
    one member, that stays as it is and is grouped in a higher layer: its parent is more than one level above it.
    """

    parents: Ints
    levels: Ints

    def ancestors(self, level: int) -> Ints:
        """Return what stands for each thing at a level, [n]: the highest of it and its ancestors up to there."""
        nodes = np.arange(int((self.levels == 0).sum()), dtype=np.int64)
        while True:
            above = np.where(self.parents[nodes] >= 0, self.parents[nodes], nodes)
            above = np.where(self.levels[above] <= level, above, nodes)
            if (above == nodes).all():
                return nodes
            nodes = above


def max_depth(n: int) -> int:
    """Return how many layers LeanRAG lays over n things at most, without the root."""
    return round(log(n, MEMBERS)) + 1 if n > 1 else 0


def layers_of(keys: Sequence[str], vectors: npt.NDArray[np.float16], grouping: Grouping = nearest_centres) -> Layers:
    """Return the layers over things with rising distinct `keys` and unit vectors [n, d].

    A group's vector is the mean of those of the things in it, and it goes on under the key of its centre: so the shape
    depends on keys and vectors alone. Source: LeanRAG (Zhang et al., 2025) and the stop rules of its code; there a
    group's vector is that of what a model wrote of it.
    """
    names, rows = list(keys), on_grid(vectors)
    things, place = rows, np.arange(len(keys), dtype=np.int64)  # `place`: where each thing is found in this layer
    growth = _Growth(len(keys))
    for layer in range(1, max_depth(len(keys)) + 1):
        if len(names) <= _LEAST:
            break
        centres, groups, sizes = np.unique(grouping(names, rows, layer), return_inverse=True, return_counts=True)
        if len(centres) <= _FEWEST or len(centres) == len(names):
            break
        growth.add_layer(groups, sizes)
        place = groups[place]
        names = [names[centre] for centre in centres]  # rising again, as places of centres are
        rows = means(things, place, len(names))
    if len(names) > 1:
        growth.add_layer(np.zeros(len(names), dtype=np.int64), np.array([len(names)]))
    return Layers(growth.parents, growth.levels)


class _Growth:
    """Layers as they come, from the lowest up."""

    def __init__(self, n: int) -> None:
        self.parents = np.full(n, -1, dtype=np.int64)
        self.levels = np.zeros(n, dtype=np.int64)
        self._nodes = np.arange(n, dtype=np.int64)  # of the layer reached, in order

    def add_layer(self, groups: Ints, sizes: Ints) -> None:
        """Lay groups of `sizes` [k] over the nodes of the layer reached, each in one of `groups`; one of one stays."""
        is_new = sizes > 1
        above = np.where(is_new, len(self.parents) + np.cumsum(is_new) - 1, -1)
        is_held = is_new[groups]
        above[groups[~is_held]] = self._nodes[~is_held]
        self.parents[self._nodes[is_held]] = above[groups[is_held]]
        n_new = int(is_new.sum())
        self.parents = np.append(self.parents, np.full(n_new, -1, dtype=np.int64))
        self.levels = np.append(self.levels, np.full(n_new, self.levels.max(initial=0) + 1))
        self._nodes = above
