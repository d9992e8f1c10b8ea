"""Shortest paths between two nodes of a graph, where a path through a hub is long.

An edge between u and v has length 1 + ln √(d(u)·d(v)), where d is the number of a node's neighbours: a path through a
node that is connected to everything says little. So paths are ordered by their number of edges and by the product of
the degrees on them, as in the degree-weighted path count of D. S. Himmelstein, S. E. Baranzini, Heterogeneous network
edge prediction (2015).

Lengths are integers, so that equal lengths compare equal. All shortest paths are found, and a caller that knows the
nodes' names can choose one by name. The search runs from both ends, and settles a whole band of distances at once: no
edge is shorter than the band is wide.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from quipu.ports.topology import Floats, Ints, Neighbours

UNIT = 1_000  # length of an edge between two nodes of degree 1
MAX_EDGES = 200_000  # edges read from both ends together before the search gives up

_MILLION = 1_000_000
_FAR = np.iinfo(np.int64).max // 4

NeighboursOf = Callable[[Ints], Neighbours]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortestPaths:
    """All shortest paths from one node to another: `successors` are the next nodes of each node on any of them."""

    source: int
    target: int
    length: int
    successors: Mapping[int, tuple[int, ...]]

    def nodes(self) -> set[int]:
        """Return the nodes on any of the paths."""
        return {self.source, self.target, *self.successors}

    def first_path(self, name: Callable[[int], str]) -> list[int]:
        """Return one path from source to target; each next node is the first by `name`."""
        path = [self.source]
        while path[-1] != self.target:
            path.append(min(self.successors[path[-1]], key=name))
        return path


@dataclass(slots=True)
class _SearchSide:
    """One end of the search: the distances so far, the settled nodes, and the frontier."""

    distance: Ints
    frontier: Ints
    settled: list[Ints]
    min_distance: int  # of the frontier


class ShortestPathSearch:
    """Searches one graph: `neighbours` reads its edges, which are symmetric, and `degrees` [n] counts them."""

    def __init__(self, neighbours: NeighboursOf, degrees: Floats, *, max_edges: int = MAX_EDGES) -> None:
        self._neighbours = neighbours
        self._half_length = np.rint(UNIT * 0.5 * (1 + np.log(np.maximum(degrees, 1)))).astype(np.int64)
        self._max_edges = max_edges
        self._distances = [np.full(len(degrees), _FAR, dtype=np.int64) for _ in range(2)]

    def between(self, source: int, target: int) -> ShortestPaths | None:
        """Return the shortest paths, or None where there is none within the bounds."""
        if source == target:
            return ShortestPaths(source=source, target=target, length=0, successors={})
        sides = [self._start(distance, end) for distance, end in zip(self._distances, (source, target), strict=True)]
        try:
            length = self._meet(sides)
            return None if length is None else self._collect(source, target, length, sides)
        finally:
            for side in sides:
                side.distance[np.concatenate([*side.settled, side.frontier])] = _FAR

    def _start(self, distance: Ints, end: int) -> _SearchSide:
        distance[end] = 0
        return _SearchSide(distance=distance, frontier=np.array([end], dtype=np.int64), settled=[], min_distance=0)

    def _meet(self, sides: list[_SearchSide]) -> int | None:
        """Settle nodes from both ends until no other path can be as short; return the shortest length."""
        shortest, n_edges = _FAR, 0
        while sides[0].min_distance + sides[1].min_distance <= shortest:
            if not all(len(side.frontier) for side in sides) or n_edges > self._max_edges:
                return None
            nearer = 0 if sides[0].min_distance <= sides[1].min_distance else 1
            side, other = sides[nearer], sides[1 - nearer]
            reached, n_read = self._settle_band(side)
            n_edges += n_read
            shortest = min(shortest, int((side.distance[reached] + other.distance[reached]).min(initial=_FAR)))
        return shortest if shortest < _FAR else None

    def _settle_band(self, side: _SearchSide) -> tuple[Ints, int]:
        """Settle the nearest nodes of a side; return the nodes reached from them, and how many edges were read."""
        distances = side.distance[side.frontier]
        is_near = distances < side.min_distance + UNIT
        band = side.frontier[is_near]
        side.settled.append(band)
        edges = self._neighbours(band)
        near, far = band[edges.positions], edges.columns
        distance = side.distance[near] + self._half_length[near] + self._half_length[far]
        is_shorter = distance < side.distance[far]
        reached = far[is_shorter]
        np.minimum.at(side.distance, reached, distance[is_shorter])
        side.frontier = np.union1d(side.frontier[~is_near], reached)
        side.min_distance = int(side.distance[side.frontier].min(initial=_FAR))
        return reached, len(far)

    def _collect(self, source: int, target: int, length: int, sides: list[_SearchSide]) -> ShortestPaths:
        """Return all shortest paths: each has a node, settled from the target, whose distances add up to `length`."""
        forwards, backwards = sides
        settled = np.concatenate(backwards.settled)
        middle = settled[forwards.distance[settled] + backwards.distance[settled] == length]
        successors: defaultdict[int, set[int]] = defaultdict(set)
        for node, previous in self._trace(middle, forwards.distance):
            successors[previous].add(node)
        for node, following in self._trace(middle, backwards.distance):
            successors[node].add(following)
        return ShortestPaths(
            source=source,
            target=target,
            length=length,
            successors={node: tuple(sorted(following)) for node, following in successors.items()},
        )

    def _trace(self, nodes: Ints, distance: Ints) -> list[tuple[int, int]]:
        """Return the edges on shortest paths from these nodes to an end, each from its farther to its nearer node."""
        path_edges: list[tuple[int, int]] = []
        visited = set(nodes.tolist())
        while len(nodes):
            edges = self._neighbours(nodes)
            far, near = nodes[edges.positions], edges.columns
            is_shortest = distance[near] + self._half_length[far] + self._half_length[near] == distance[far]
            path_edges += zip(far[is_shortest].tolist(), near[is_shortest].tolist(), strict=True)
            unvisited = sorted(set(near[is_shortest].tolist()) - visited)
            visited.update(unvisited)
            nodes = np.array(unvisited, dtype=np.int64)
        return path_edges


def best_paths(shortest: ShortestPaths, degrees: Ints, k: int) -> list[list[int]]:
    """Return the `k` paths with the smallest product of degrees, then by place: best first, from the target back."""
    if shortest.source == shortest.target:
        return [[shortest.source]]
    costs = np.rint(np.log(np.maximum(degrees, 1)) * _MILLION).astype(np.int64)  # integers, so that sums are exact
    remaining = _remaining_costs(shortest, costs)
    waiting = [(remaining[shortest.source], [shortest.source])]
    paths: list[list[int]] = []
    while waiting and len(paths) < k:
        total, path = heapq.heappop(waiting)
        if path[-1] == shortest.target:
            paths.append(path)
            continue
        for node in shortest.successors[path[-1]]:
            cost = total - remaining[path[-1]] + int(costs[node]) + remaining[node]
            heapq.heappush(waiting, (cost, [*path, node]))
    return paths


def _remaining_costs(shortest: ShortestPaths, costs: Ints) -> dict[int, int]:
    """Return the smallest cost of the nodes after each node, up to the target."""
    remaining = {shortest.target: 0}
    pending = [shortest.source]
    while pending:
        node = pending[-1]
        unknown = [following for following in shortest.successors.get(node, ()) if following not in remaining]
        if unknown:
            pending += unknown
            continue
        pending.pop()
        if node not in remaining:
            remaining[node] = min(int(costs[after]) + remaining[after] for after in shortest.successors[node])
    return remaining
