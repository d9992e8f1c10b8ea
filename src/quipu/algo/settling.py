"""Settling: a partition brought up to date where its graph changed, while all the rest of it stays as it is.

The local moves of Louvain and Leiden for the nodes that are free to move, then for groups of such nodes, as in dynamic
frontier methods (S. Sahu: DF Louvain, 2024). It costs what changed, and what did not change keeps its label.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quipu.algo.pairs import Ints, Pairs, rows_of

MIN_GAIN = 1e-9  # of weight: less is rounding
MAX_MOVES = 32  # of each free node on average; a bound, hardly ever met


def settle(pairs: Pairs, labels: Ints, free: npt.NDArray[np.bool_], *, resolution: float = 1.0) -> Ints:
    """Return labels, [n], after the free nodes have moved to where modularity is higher.

    `labels` are those before, -1 for nodes that had none, which must be free. New labels are above all others.
    """
    if not free.any():
        return labels
    state = _state(pairs, labels, free, resolution)
    may_lose = sorted({state.labels[node] for node in state.free})
    state.move_nodes()
    while state.merge_groups():
        state.move_nodes()
    state.split_unconnected(may_lose)
    return np.array(state.labels, dtype=np.int64)


def _state(pairs: Pairs, labels: Ints, free: npt.NDArray[np.bool_], resolution: float) -> "_State":
    rows, degrees = rows_of(pairs), pairs.degrees()
    first = int(labels.max(initial=-1)) + 1
    new = np.flatnonzero(labels < 0)
    labels = labels.copy()
    labels[new] = first + np.arange(len(new))
    totals: dict[int, float] = defaultdict(float)
    totals.update(enumerate(np.bincount(labels, weights=degrees).tolist()))
    return _State(
        starts=rows.starts.tolist(),
        ends=rows.ends.tolist(),
        weights=rows.weights.tolist(),
        degrees=degrees.tolist(),
        labels=labels.tolist(),
        free=np.flatnonzero(free).tolist(),
        totals=totals,
        sizes=Counter(labels.tolist()),
        next_label=first + len(new),
        per_degree=resolution / max(float(degrees.sum()), MIN_GAIN),
    )


@dataclass(slots=True)
class _State:
    """A partition while it changes. `totals` and `sizes` are those of the nodes with a label."""

    starts: list[int]
    ends: list[int]
    weights: list[float]
    degrees: list[float]
    labels: list[int]
    free: list[int]
    totals: dict[int, float]
    sizes: Counter[int]
    next_label: int
    per_degree: float  # resolution / total weight of all links, both ways

    def move_nodes(self) -> None:
        """Move each free node to the community it gains most by, until none gains; equal ones by label."""
        queue, waiting = deque(self.free), set(self.free)
        is_free = frozenset(self.free)
        for _ in range(MAX_MOVES * len(self.free)):
            if not queue:
                return
            node = queue.popleft()
            waiting.discard(node)
            if self._move(node):
                ends = self.ends[self.starts[node] : self.starts[node + 1]]
                again = [end for end in ends if end in is_free and end not in waiting]
                queue.extend(again)
                waiting.update(again)

    def merge_groups(self) -> bool:
        """Merge communities of free nodes alone with those they gain most by; say whether any was."""
        members: dict[int, list[int]] = {}
        for node in self.free:
            members.setdefault(self.labels[node], []).append(node)
        merged = False
        for label in sorted(label for label, nodes in members.items() if len(nodes) == self.sizes[label]):
            nodes = members[label]
            links = self._links(nodes)
            links.pop(label, None)
            best = self._best(links, self.totals[label])
            if best is not None:
                for node in nodes:
                    self._relabel(node, best)
                if best in members:
                    members[best] += nodes
                merged = True
        return merged

    def split_unconnected(self, labels: Sequence[int]) -> None:
        """Give every part of these communities but the largest a label of its own, where they fell apart."""
        wanted = frozenset(labels)
        members: dict[int, set[int]] = {label: set() for label in labels}
        for node, label in enumerate(self.labels):
            if label in wanted:
                members[label].add(node)
        for label in labels:
            parts = sorted(self._parts(members[label]), key=lambda part: (-len(part), min(part)))
            for part in parts[1:]:
                for node in sorted(part):
                    self._relabel(node, self.next_label)
                self.next_label += 1

    def _move(self, node: int) -> bool:
        own, degree = self.labels[node], self.degrees[node]
        links = self._links([node])
        staying = links.pop(own, 0.0) - self.per_degree * degree * (self.totals[own] - degree)
        best = self._best(links, degree, above=max(staying, 0.0))  # alone it gains nothing, and loses nothing
        if best is None and staying < -MIN_GAIN and self.sizes[own] > 1:
            best = self.next_label
            self.next_label += 1
        if best is None:
            return False
        self._relabel(node, best)
        return True

    def _best(self, links: Mapping[int, float], degree: float, *, above: float = 0.0) -> int | None:
        """Return the community that something of this degree gains most by joining, None where no gain is `above`."""
        best, most = None, above
        for label in sorted(links):
            gain = links[label] - self.per_degree * degree * self.totals[label]
            if gain > most + MIN_GAIN:
                best, most = label, gain
        return best

    def _links(self, nodes: Iterable[int]) -> dict[int, float]:
        """Return the weight of the links of these nodes to each community."""
        links: dict[int, float] = defaultdict(float)
        for node in nodes:
            for at in range(self.starts[node], self.starts[node + 1]):
                links[self.labels[self.ends[at]]] += self.weights[at]
        return links

    def _relabel(self, node: int, label: int) -> None:
        own, degree = self.labels[node], self.degrees[node]
        self.labels[node] = label
        self.totals[own] -= degree
        self.totals[label] += degree
        self.sizes[own] -= 1
        self.sizes[label] += 1

    def _parts(self, nodes: set[int]) -> list[set[int]]:
        parts: list[set[int]] = []
        left = set(nodes)
        while left:
            start = min(left)
            left.discard(start)
            part, edge = {start}, [start]
            while edge:
                node = edge.pop()
                found = [end for end in self.ends[self.starts[node] : self.starts[node + 1]] if end in left]
                left.difference_update(found)
                part.update(found)
                edge += found
            parts.append(part)
        return parts
