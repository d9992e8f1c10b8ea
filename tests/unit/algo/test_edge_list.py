"""Graphs as arrays: parts, components, modularity."""

import numpy as np
import pytest

from quipu.algo.edge_list import (
    EdgeList,
    connected_components,
    edge_list,
    induced_subgraphs,
    members_by_label,
    modularity,
)


def _graph(n: int, *links: tuple[int, int, float]) -> EdgeList:
    first, second, weights = zip(*links, strict=True) if links else ((), (), ())
    return edge_list(
        n, np.array(first, dtype=np.int64), np.array(second, dtype=np.int64), np.array(weights, dtype=float)
    )


TWO_TRIANGLES = _graph(
    7, (0, 1, 1), (1, 2, 1), (0, 2, 1), (3, 4, 1), (4, 5, 1), (3, 5, 1), (2, 3, 1)
)  # node 6 is alone


def test_links_of_one_pair_are_added_up_and_loops_are_left_out() -> None:
    graph = _graph(4, (2, 1, 1.5), (1, 2, 2.0), (3, 3, 9.0), (0, 3, 1.0))
    assert (graph.sources.tolist(), graph.targets.tolist()) == ([0, 1], [3, 2])
    assert graph.weights.tolist() == [1.0, 3.5]
    assert graph.degrees().tolist() == [1.0, 3.5, 3.5, 1.0]


def test_parts_are_ordered_by_their_first_node() -> None:
    parts = members_by_label(np.array([7, 3, 7, -1, 3]))
    assert [part.tolist() for part in parts] == [[0, 2], [1, 4], [3]]
    assert members_by_label(np.zeros(0, dtype=np.int64)) == []


def test_the_graph_within_a_part_counts_its_own_nodes() -> None:
    parts = [np.array([1, 2]), np.array([0, 3, 4, 5])]
    first, second = induced_subgraphs(TWO_TRIANGLES, parts)
    assert (first.n, first.sources.tolist(), first.targets.tolist()) == (2, [0], [1])
    assert (second.n, second.sources.tolist(), second.targets.tolist()) == (4, [1, 1, 2], [2, 3, 3])


@pytest.mark.parametrize("seed", range(20))
def test_components_are_those_a_plain_search_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, m = 40, int(random.integers(0, 45))
    graph = edge_list(n, random.integers(0, n, m), random.integers(0, n, m), np.ones(m))
    pairs = list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    first = [-1] * n
    for node in range(n):
        waiting = [node] if first[node] < 0 else []
        while waiting:
            at = waiting.pop()
            if first[at] < 0:
                first[at] = node
                waiting += [end for pair in pairs if at in pair for end in pair]
    assert connected_components(graph).tolist() == first


def test_modularity_is_that_of_the_formula() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1, 2])
    # 6 of 7 links are inside; both triangles have degree 7 of 14.
    assert modularity(TWO_TRIANGLES, labels) == pytest.approx(6 / 7 - 2 * (7 / 14) ** 2)
    assert modularity(TWO_TRIANGLES, labels, 2.0) == pytest.approx(6 / 7 - 4 * (7 / 14) ** 2)
    assert modularity(_graph(3), np.array([0, 1, 2])) == 0.0
