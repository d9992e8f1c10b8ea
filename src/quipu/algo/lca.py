"""Lowest common ancestors in trees that are stored as arrays of parents."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Forest:
    """Trees over the nodes 0 to n - 1, with jump pointers to the ancestors 1, 2, 4, ... levels above each node.

    Building it takes n log(depth) steps, and each query log(depth). Source: M. Bender, M. Farach-Colton, The Level
    Ancestor Problem Simplified (2004), section 3.
    """

    def __init__(self, parents: Ints) -> None:
        """Build the pointers from the parent of each node, [n], -1 for a root. Raises ValueError for a cycle."""
        n = len(parents)
        above = np.append(np.where(parents < 0, n, parents), n)  # an extra node n is the parent of every root
        self._parents = above
        self._jumps: list[Ints] = []
        depths = np.append(np.ones(n, dtype=np.int64), 0)
        while (above != n).any():
            if len(self._jumps) > n.bit_length():
                raise ValueError("A node is its own ancestor.")
            self._jumps.append(above)
            depths = depths + depths[above]
            above = above[above]
        self._depths = depths

    def lca(self, first: Ints, second: Ints) -> Ints:
        """Return the lowest common ancestor of each pair of nodes, -1 where there is none.

        A node counts as its own ancestor.
        """
        low = np.where(self._depths[first] >= self._depths[second], first, second)
        high = np.where(self._depths[first] >= self._depths[second], second, first)
        steps = self._depths[low] - self._depths[high]
        for power, jump in enumerate(self._jumps):
            low = np.where(steps >> power & 1, jump[low], low)
        for jump in reversed(self._jumps):
            is_below = jump[low] != jump[high]
            low, high = np.where(is_below, jump[low], low), np.where(is_below, jump[high], high)
        ancestors = np.where(low == high, low, self._parents[low])
        return np.where(ancestors == len(self._parents) - 1, -1, ancestors)
