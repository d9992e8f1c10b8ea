"""Routes: the shortest ways between two nodes of a graph, where a hub is far from everything.

A link between u and v is 1 + ln √(d(u)·d(v)) long, d being how many neighbours each has: to pass through what is linked
to everything says little. So paths are ordered by their number of steps and by the product of degrees along them, as in
D. S. Himmelstein, S. E. Baranzini, Heterogeneous network edge prediction (2015), the degree-weighted path count.

Lengths are whole numbers, so that equal ones are equal; of several shortest ways all are found, and a caller who knows
the nodes by name can choose one by name. Searched is from both ends at once, a band of distances at a time: no link is
shorter than a band is wide, so all nodes in one are settled together.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from quipu.ports.topology import Floats, Ints, Neighbours

UNIT = 1_000  # of length: a step between two nodes of degree 1
MAX_LINKS = 200_000  # looked at from both ends together; a search that goes further gives up

_FAR = np.iinfo(np.int64).max // 4

NeighboursOf = Callable[[Ints], Neighbours]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """All shortest ways from one node to another: `onward` are the next nodes of each node on any of them."""

    source: int
    target: int
    length: int
    onward: Mapping[int, tuple[int, ...]]

    def nodes(self) -> set[int]:
        """Return the nodes on any of the ways."""
        return {self.source, self.target, *self.onward}

    def way(self, name: Callable[[int], str]) -> list[int]:
        """Return one of the ways, from source to target: at each node the next is the first by name."""
        way = [self.source]
        while way[-1] != self.target:
            way.append(min(self.onward[way[-1]], key=name))
        return way


@dataclass(slots=True)
class _Side:
    """One end of a search: distances so far, what is settled, and what is not looked at yet."""

    distance: Ints
    frontier: Ints
    settled: list[Ints]
    least: int  # nothing that is not settled is nearer


class Routes:
    """Finds routes over one graph: `neighbours` reads its links, which are symmetric, `degrees` [n] counts them."""

    def __init__(self, neighbours: NeighboursOf, degrees: Floats, *, max_links: int = MAX_LINKS) -> None:
        self._neighbours = neighbours
        self._half_length = np.rint(UNIT * 0.5 * (1 + np.log(np.maximum(degrees, 1)))).astype(np.int64)
        self._max_links = max_links
        self._distances = [np.full(len(degrees), _FAR, dtype=np.int64) for _ in range(2)]

    def between(self, source: int, target: int) -> Route | None:
        """Return the shortest ways, None where there is none within the bounds."""
        if source == target:
            return Route(source=source, target=target, length=0, onward={})
        sides = [self._side(distance, end) for distance, end in zip(self._distances, (source, target), strict=True)]
        try:
            length = self._meet(sides)
            return None if length is None else self._route(source, target, length, sides)
        finally:
            for side in sides:
                side.distance[np.concatenate([*side.settled, side.frontier])] = _FAR

    def _side(self, distance: Ints, end: int) -> _Side:
        distance[end] = 0
        return _Side(distance=distance, frontier=np.array([end], dtype=np.int64), settled=[], least=0)

    def _meet(self, sides: list[_Side]) -> int | None:
        """Settle nodes from both ends until no other way can be as short; return the length of the shortest."""
        shortest, n_links = _FAR, 0
        while sides[0].least + sides[1].least <= shortest:
            if not all(len(side.frontier) for side in sides) or n_links > self._max_links:
                return None
            nearer = 0 if sides[0].least <= sides[1].least else 1
            side, other = sides[nearer], sides[1 - nearer]
            reached, n_read = self._settle_band(side)
            n_links += n_read
            shortest = min(shortest, int((side.distance[reached] + other.distance[reached]).min(initial=_FAR)))
        return shortest if shortest < _FAR else None

    def _settle_band(self, side: _Side) -> tuple[Ints, int]:
        """Settle the nearest nodes of a side; return the nodes they led to, and how many links were looked at."""
        distances = side.distance[side.frontier]
        is_near = distances < side.least + UNIT
        band = side.frontier[is_near]
        side.settled.append(band)
        links = self._neighbours(band)
        reached_at = side.distance[band[links.of]] + self._half_length[band[links.of]] + self._half_length[links.to]
        is_better = reached_at < side.distance[links.to]
        to = links.to[is_better]
        np.minimum.at(side.distance, to, reached_at[is_better])
        side.frontier = np.union1d(side.frontier[~is_near], to)
        side.least = int(side.distance[side.frontier].min(initial=_FAR))
        return to, len(links.to)

    def _route(self, source: int, target: int, length: int, sides: list[_Side]) -> Route:
        """Return all shortest ways: each passes a node settled from the target whose distances make `length`."""
        forwards, backwards = sides
        settled = np.concatenate(backwards.settled)
        middle = settled[forwards.distance[settled] + backwards.distance[settled] == length]
        onward: defaultdict[int, set[int]] = defaultdict(set)
        for node, before in self._trace(middle, forwards.distance):
            onward[before].add(node)
        for node, after in self._trace(middle, backwards.distance):
            onward[node].add(after)
        return Route(
            source=source,
            target=target,
            length=length,
            onward={node: tuple(sorted(after)) for node, after in onward.items()},
        )

    def _trace(self, nodes: Ints, distance: Ints) -> list[tuple[int, int]]:
        """Return the links by which nodes got their distances, each from the farther to the nearer end."""
        links_found: list[tuple[int, int]] = []
        seen = set(nodes.tolist())
        while len(nodes):
            links = self._neighbours(nodes)
            at = nodes[links.of]
            is_way = distance[links.to] + self._half_length[at] + self._half_length[links.to] == distance[at]
            links_found += zip(at[is_way].tolist(), links.to[is_way].tolist(), strict=True)
            new = sorted(set(links.to[is_way].tolist()) - seen)
            seen.update(new)
            nodes = np.array(new, dtype=np.int64)
        return links_found
