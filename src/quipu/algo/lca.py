"""Trees as arrays of parents: lowest common ancestors."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Forest:
    """Trees over the nodes 0 to n - 1, with the ancestors 1, 2, 4, ... steps above each.

    Source: M. Bender, M. Farach-Colton, The Level Ancestor Problem Simplified (2004), section 3: jump pointers. Making
    it takes n log(depth), each pair of nodes log(depth).
    """

    def __init__(self, parents: Ints) -> None:
        """Take the parent of each node, [n], -1 for a root. Raises ValueError where one is among its own ancestors."""
        n = len(parents)
        above = np.append(np.where(parents < 0, n, parents), n)  # all roots hang on a node that is not there
        self._parents = above
        self._jumps: list[Ints] = []
        depths = np.append(np.ones(n, dtype=np.int64), 0)
        while (above != n).any():
            if len(self._jumps) > n.bit_length():
                raise ValueError("A node is among its own ancestors.")
            self._jumps.append(above)
            depths = depths + depths[above]
            above = above[above]
        self._depths = depths

    def lca(self, first: Ints, second: Ints) -> Ints:
        """Return the lowest common ancestor of each pair, a node being one of its own; -1 where there is none."""
        low = np.where(self._depths[first] >= self._depths[second], first, second)
        high = np.where(self._depths[first] >= self._depths[second], second, first)
        steps = self._depths[low] - self._depths[high]
        for power, jump in enumerate(self._jumps):
            low = np.where(steps >> power & 1, jump[low], low)
        for jump in reversed(self._jumps):
            is_below = jump[low] != jump[high]
            low, high = np.where(is_below, jump[low], low), np.where(is_below, jump[high], high)
        found = np.where(low == high, low, self._parents[low])
        return np.where(found == len(self._parents) - 1, -1, found)
