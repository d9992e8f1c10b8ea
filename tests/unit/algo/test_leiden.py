"""Leiden: the planted partition is found, and the same graph gives the same labels."""

import subprocess
import sys

import numpy as np

from quipu.algo.edge_list import edge_list, modularity
from quipu.algo.leiden import leiden, renumbered
from tests.unit.algo.planted import planted

_PRINT_LABELS = "from tests.unit.algo.planted import planted\nfrom quipu.algo.leiden import leiden\n"
_PRINT_LABELS += "print(leiden(planted(300, 10, 1500, 3)).tolist())"


def test_cliques_that_hang_together_by_one_link_are_told_apart() -> None:
    links = [(a, b) for start in (0, 5) for a in range(start, start + 5) for b in range(a + 1, start + 5)] + [(4, 5)]
    first, second = np.array(links).T
    assert leiden(edge_list(11, first, second, np.ones(len(links)))).tolist() == [0] * 5 + [1] * 5 + [2]


def test_a_graph_without_links_falls_apart() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert leiden(edge_list(3, none, none, np.zeros(0))).tolist() == [0, 1, 2]
    assert leiden(edge_list(0, none, none, np.zeros(0))).tolist() == []


def test_modularity_is_near_that_of_the_planted_groups_and_above_that_of_none() -> None:
    for seed in range(5):
        graph = planted(400, 8, 2_000, seed, mixing=0.1)
        found = leiden(graph)
        assert modularity(graph, found) > 0.7
        assert 8 <= found.max() + 1 <= 12


def test_the_same_graph_gets_the_same_labels_in_every_process() -> None:
    said = {
        subprocess.run([sys.executable, "-c", _PRINT_LABELS], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert said == {f"{leiden(planted(300, 10, 1500, 3)).tolist()}\n"}


def test_labels_count_from_zero_in_the_order_of_first_nodes() -> None:
    assert renumbered(np.array([9, 4, 9, 7, 4])).tolist() == [0, 1, 0, 2, 1]
