"""Incremental Leiden: update a partition where its graph changed, and leave every other node where it is.

Free nodes, then groups of free nodes, make the local moves of Louvain and Leiden, as in dynamic frontier methods (S.
Sahu: DF Louvain, 2024). The cost depends on the change, and a community that did not change keeps its label.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quipu.algo.edge_list import EdgeList, Ints, adjacency_lists

MIN_GAIN = 1e-9  # weight; a smaller gain is rounding
MAX_MOVES = 32  # per free node on average; a bound that is hardly ever met


def update_partition(graph: EdgeList, labels: Ints, free: npt.NDArray[np.bool_], *, resolution: float = 1.0) -> Ints:
    """Return the labels [n] after the free nodes have moved to where modularity is higher.

    `labels` [n] is the earlier partition, -1 for a node without a community; such a node must be free. New labels are
    higher than all earlier ones.
    """
    if not free.any():
        return labels
    state = _initial_state(graph, labels, free, resolution)
    touched = sorted({state.labels[node] for node in state.free})
    state.move_nodes()
    while state.merge_groups():
        state.move_nodes()
    state.split_unconnected(touched)
    return np.array(state.labels, dtype=np.int64)


def _initial_state(graph: EdgeList, labels: Ints, free: npt.NDArray[np.bool_], resolution: float) -> "_PartitionState":
    adjacency, degrees = adjacency_lists(graph), graph.degrees()
    first = int(labels.max(initial=-1)) + 1
    new = np.flatnonzero(labels < 0)
    labels = labels.copy()
    labels[new] = first + np.arange(len(new))
    totals: dict[int, float] = defaultdict(float)
    totals.update(enumerate(np.bincount(labels, weights=degrees).tolist()))
    return _PartitionState(
        starts=adjacency.starts.tolist(),
        ends=adjacency.ends.tolist(),
        weights=adjacency.weights.tolist(),
        degrees=degrees.tolist(),
        labels=labels.tolist(),
        free=np.flatnonzero(free).tolist(),
        totals=totals,
        sizes=Counter(labels.tolist()),
        next_label=first + len(new),
        per_degree=resolution / max(float(degrees.sum()), MIN_GAIN),
    )


@dataclass(slots=True)
class _PartitionState:
    """A partition while it changes. `totals` are the summed degrees of each label's nodes, `sizes` their number."""

    starts: list[int]
    ends: list[int]
    weights: list[float]
    degrees: list[float]
    labels: list[int]
    free: list[int]
    totals: dict[int, float]
    sizes: Counter[int]
    next_label: int
    per_degree: float  # resolution / total weight of all edges, both directions

    def move_nodes(self) -> None:
        """Move each free node to the community with the highest gain, until no node gains; equal gains by label."""
        queue, queued = deque(self.free), set(self.free)
        is_free = frozenset(self.free)
        for _ in range(MAX_MOVES * len(self.free)):
            if not queue:
                return
            node = queue.popleft()
            queued.discard(node)
            if self._move(node):
                ends = self.ends[self.starts[node] : self.starts[node + 1]]
                neighbours = [end for end in ends if end in is_free and end not in queued]
                queue.extend(neighbours)
                queued.update(neighbours)

    def merge_groups(self) -> bool:
        """Merge each community that has only free nodes where it gains most; say whether any was merged."""
        members: dict[int, list[int]] = {}
        for node in self.free:
            members.setdefault(self.labels[node], []).append(node)
        has_merged = False
        for label in sorted(label for label, nodes in members.items() if len(nodes) == self.sizes[label]):
            nodes = members[label]
            weights = self._weight_by_label(nodes)
            weights.pop(label, None)
            best = self._best_label(weights, self.totals[label])
            if best is not None:
                for node in nodes:
                    self._relabel(node, best)
                if best in members:
                    members[best] += nodes
                has_merged = True
        return has_merged

    def split_unconnected(self, labels: Sequence[int]) -> None:
        """Where a community fell apart, give every connected part but the largest a label of its own."""
        is_touched = frozenset(labels)
        members: dict[int, set[int]] = {label: set() for label in labels}
        for node, label in enumerate(self.labels):
            if label in is_touched:
                members[label].add(node)
        for label in labels:
            parts = sorted(self._connected_parts(members[label]), key=lambda part: (-len(part), min(part)))
            for part in parts[1:]:
                for node in sorted(part):
                    self._relabel(node, self.next_label)
                self.next_label += 1

    def _move(self, node: int) -> bool:
        own, degree = self.labels[node], self.degrees[node]
        weights = self._weight_by_label([node])
        staying = weights.pop(own, 0.0) - self.per_degree * degree * (self.totals[own] - degree)
        best = self._best_label(weights, degree, above=max(staying, 0.0))  # a node alone has a gain of 0
        if best is None and staying < -MIN_GAIN and self.sizes[own] > 1:
            best = self.next_label
            self.next_label += 1
        if best is None:
            return False
        self._relabel(node, best)
        return True

    def _best_label(self, weights: Mapping[int, float], degree: float, *, above: float = 0.0) -> int | None:
        """Return the label with the highest gain for nodes of this summed degree, None if no gain is over `above`."""
        best, highest = None, above
        for label in sorted(weights):
            gain = weights[label] - self.per_degree * degree * self.totals[label]
            if gain > highest + MIN_GAIN:
                best, highest = label, gain
        return best

    def _weight_by_label(self, nodes: Iterable[int]) -> dict[int, float]:
        """Return the weight of the edges from these nodes to each community."""
        weights: dict[int, float] = defaultdict(float)
        for node in nodes:
            for edge in range(self.starts[node], self.starts[node + 1]):
                weights[self.labels[self.ends[edge]]] += self.weights[edge]
        return weights

    def _relabel(self, node: int, label: int) -> None:
        own, degree = self.labels[node], self.degrees[node]
        self.labels[node] = label
        self.totals[own] -= degree
        self.totals[label] += degree
        self.sizes[own] -= 1
        self.sizes[label] += 1

    def _connected_parts(self, nodes: set[int]) -> list[set[int]]:
        parts: list[set[int]] = []
        unvisited = set(nodes)
        while unvisited:
            start = min(unvisited)
            unvisited.discard(start)
            part, frontier = {start}, [start]
            while frontier:
                node = frontier.pop()
                ends = [end for end in self.ends[self.starts[node] : self.starts[node + 1]] if end in unvisited]
                unvisited.difference_update(ends)
                part.update(ends)
                frontier += ends
            parts.append(part)
        return parts
