"""Shortest ways: hubs are far, equal ways are all found, and which is taken depends on names alone."""

import math
from itertools import combinations

import numpy as np
import pytest

from quipu.algo.shortest_paths import UNIT, ShortestPaths, ShortestPathSearch
from quipu.ports.topology import Floats, Ints, Neighbours


class Graph:
    """A graph of undirected links between numbers; `read` counts how many links were looked at."""

    def __init__(self, n: int, links: list[tuple[int, int]]) -> None:
        self.matrix = np.zeros((n, n), dtype=np.int64)
        for left, right in links:
            self.matrix[left, right] = self.matrix[right, left] = 1
        self.n_read = 0

    @property
    def degrees(self) -> Floats:
        return np.asarray(self.matrix.sum(axis=1), dtype=np.float64)

    def neighbours(self, numbers: Ints) -> Neighbours:
        of, to = np.nonzero(self.matrix[numbers])
        self.n_read += len(of)
        return Neighbours(positions=of, columns=to, weights=np.ones(len(of)))

    def routes(self, **bounds: int) -> ShortestPathSearch:
        return ShortestPathSearch(self.neighbours, self.degrees, **bounds)


def spell(number: int) -> str:
    return f"{number:03}"


def lengths(graph: Graph) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the lengths of all shortest ways, by Floyd and Warshall on the formula as it is written."""
    degrees, n = graph.degrees, len(graph.matrix)
    half = [round(UNIT * (1 + math.log(max(degree, 1))) / 2) for degree in degrees]
    table = np.full((n, n), np.inf)
    np.fill_diagonal(table, 0)
    for u, v in combinations(range(n), 2):
        if graph.matrix[u, v]:
            table[u, v] = table[v, u] = half[u] + half[v]
    for middle in range(n):
        table = np.minimum(table, table[:, middle, None] + table[None, middle, :])
    return table


def random_graph(seed: int, n: int = 14, n_links: int = 20) -> Graph:
    random = np.random.default_rng(seed)
    pairs = list(combinations(range(n), 2))
    return Graph(n, [pairs[place] for place in random.choice(len(pairs), n_links, replace=False)])


def test_a_link_is_as_long_as_its_ends_are_connected() -> None:
    # 0 - 1 - 2: degrees 1, 2, 1, so each link is 1 + ln √2 long
    route = Graph(3, [(0, 1), (1, 2)]).routes().between(0, 2)
    assert route is not None
    assert route.length == 2 * (round(UNIT / 2) + round(UNIT * (1 + math.log(2)) / 2))
    assert route.first_path(spell) == [0, 1, 2]


def test_the_way_leads_around_a_hub_but_not_for_any_price() -> None:
    spokes = [(9, leaf) for leaf in range(10, 60)]
    around = [(0, 9), (9, 3), (0, 1), (1, 2), (2, 3)]
    assert _way(Graph(60, spokes + around), 0, 3) == [0, 1, 2, 3]
    far = [(0, 9), (9, 8), *zip([0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 8], strict=True)]
    assert _way(Graph(60, spokes + far), 0, 8) == [0, 9, 8]


def test_of_equal_ways_the_first_by_name_is_taken_whatever_the_numbers() -> None:
    square = [(0, 1), (0, 2), (1, 3), (2, 3)]
    route = Graph(4, square).routes().between(0, 3)
    assert route is not None
    assert route.nodes() == {0, 1, 2, 3}
    assert route.first_path(spell) == [0, 1, 3]
    assert route.first_path(lambda number: spell(9 - number)) == [0, 2, 3]


def test_what_is_apart_has_no_way_and_what_is_the_same_has_one_of_no_length() -> None:
    routes = Graph(5, [(0, 1), (2, 3)]).routes()
    assert routes.between(0, 3) is None
    assert routes.between(0, 4) is None
    same = routes.between(2, 2)
    assert same is not None and (same.length, same.first_path(spell)) == (0, [2])


def test_a_search_that_looks_at_too_many_links_gives_up_and_leaves_nothing_behind() -> None:
    line = Graph(40, [(n, n + 1) for n in range(39)])
    routes = line.routes(max_edges=10)
    assert routes.between(0, 39) is None
    assert line.n_read <= 14
    near = routes.between(0, 2)
    assert near is not None and near.first_path(spell) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(12))
def test_all_shortest_ways_are_those_of_the_dense_table(seed: int) -> None:
    graph = random_graph(seed)
    table, routes = lengths(graph), graph.routes()
    for source, target in combinations(range(len(graph.matrix)), 2):
        route = routes.between(source, target)
        if route is None:
            assert np.isinf(table[source, target])
            continue
        assert route.length == table[source, target]
        assert _links(route) == _dense_links(graph, table, source, target)
        back = routes.between(target, source)
        assert back is not None and {(v, u) for u, v in _links(back)} == _links(route)


def _way(graph: Graph, source: int, target: int) -> list[int]:
    route = graph.routes().between(source, target)
    assert route is not None
    return route.first_path(spell)


def _links(route: ShortestPaths) -> set[tuple[int, int]]:
    return {(node, after) for node, onward in route.successors.items() for after in onward}


def _dense_links(
    graph: Graph, table: np.ndarray[tuple[int, int], np.dtype[np.float64]], source: int, target: int
) -> set[tuple[int, int]]:
    half = [round(UNIT * (1 + math.log(max(degree, 1))) / 2) for degree in graph.degrees]
    whole = table[source, target]
    return {
        (int(u), int(v))
        for u, v in zip(*np.nonzero(graph.matrix), strict=True)
        if table[source, u] + half[u] + half[v] + table[v, target] == whole
    }
