"""Settling: free nodes go where modularity is higher, and nothing else moves."""

import numpy as np
import pytest

from quipu.algo.edge_list import edge_list, modularity
from quipu.algo.incremental_leiden import update_partition
from quipu.algo.leiden import leiden
from tests.unit.algo.planted import planted


def _cliques(*sizes: int) -> tuple[list[tuple[int, int]], list[int]]:
    links: list[tuple[int, int]] = []
    labels: list[int] = []
    for label, size in enumerate(sizes):
        start = len(labels)
        links += [(a, b) for a in range(start, start + size) for b in range(a + 1, start + size)]
        labels += [label] * size
    return links, labels


def _settled(links: list[tuple[int, int]], labels: list[int], free: list[int]) -> list[int]:
    first, second = np.array(links).T
    graph = edge_list(len(labels), first, second, np.ones(len(links)))
    is_free = np.isin(np.arange(len(labels)), free)
    return [int(label) for label in update_partition(graph, np.array(labels), is_free)]


def test_a_new_node_joins_those_it_is_linked_to() -> None:
    links, labels = _cliques(4, 4)
    assert _settled([*links, (8, 5), (8, 6), (8, 0)], [*labels, -1], [8]) == [*labels, 1]


def test_new_nodes_that_are_linked_to_each_other_become_a_community() -> None:
    links, labels = _cliques(4, 4, 4)
    found = _settled([*links, (11, 0)], [*labels[:8], -1, -1, -1, -1], [8, 9, 10, 11])
    assert found[:8] == labels[:8]
    assert len(set(found[8:])) == 1
    assert found[8] > 1


def test_a_node_without_links_is_alone() -> None:
    links, labels = _cliques(3, 3)
    found = _settled(links, [*labels, -1, -1], [6, 7])
    assert found[:6] == labels
    assert len(set(found)) == 4


def test_a_node_that_lost_its_links_leaves_and_what_falls_apart_is_told_apart() -> None:
    links = [(0, 1), (1, 2), (0, 2), (4, 5), (5, 6), (4, 6)]
    found = _settled(links, [0] * 7, [3])  # node 3 held the triangles together
    assert found[3] not in (found[0], found[4])
    assert [len({found[node] for node in some}) for some in ((0, 1, 2), (4, 5, 6))] == [1, 1]
    assert found[0] != found[4]


def test_nothing_moves_where_nothing_is_free() -> None:
    links, _ = _cliques(3, 3)
    assert _settled(links, [5, 5, 0, 0, 1, 1], []) == [5, 5, 0, 0, 1, 1]


@pytest.mark.parametrize("seed", range(6))
def test_nodes_that_were_misplaced_find_back_and_the_others_stay(seed: int) -> None:
    graph = planted(200, 8, 1_200, seed, mixing=0.05)
    random = np.random.default_rng(seed + 100)
    good = leiden(graph)
    free = random.random(200) < 0.3
    start = np.where(free, random.integers(0, good.max() + 1, 200), good)
    found = update_partition(graph, start, free)
    assert modularity(graph, found) > modularity(graph, start) + 0.05
    assert modularity(graph, found) > modularity(graph, good) - 0.01
    assert found[~free].tolist() == good[~free].tolist()
