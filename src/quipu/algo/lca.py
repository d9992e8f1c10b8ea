"""Trees as arrays of parents: lowest common ancestors, and the paths between nodes that turn there."""

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

    @property
    def depths(self) -> Ints:
        """How many nodes lie above each node, [n]."""
        return self._depths[:-1] - 1

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

    def path(self, first: int, second: int) -> list[int]:
        """Return the nodes from one to the other by way of their lowest common ancestor; none where there is none."""
        top = int(self.lca(np.array([first]), np.array([second]))[0])
        return [] if top < 0 else [*self._climb(first, top), top, *reversed(self._climb(second, top))]

    def _climb(self, node: int, top: int) -> list[int]:
        """Return the nodes from `node` up to below `top`."""
        nodes = []
        while node != top:
            nodes.append(node)
            node = int(self._parents[node])
        return nodes
