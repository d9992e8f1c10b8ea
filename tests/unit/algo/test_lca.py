"""Tests of lowest common ancestors."""

import numpy as np
import pytest

from quipu.algo.lca import Forest

#         8
#      6     7        10
#     0 1   2 3       9     4, 5 alone
_PARENTS = np.array([6, 6, 7, 7, -1, -1, 8, 8, -1, 10, -1])


def _lca(first: int, second: int) -> int:
    return int(Forest(_PARENTS).lca(np.array([first]), np.array([second]))[0])


def test_a_small_tree_by_hand() -> None:
    assert [_lca(0, 1), _lca(0, 2), _lca(3, 6), _lca(2, 7), _lca(8, 1)] == [6, 8, 8, 7, 8]
    assert [_lca(4, 5), _lca(0, 9), _lca(9, 10)] == [-1, -1, 10]


def test_a_node_is_its_own_ancestor() -> None:
    nodes = np.arange(len(_PARENTS))
    assert Forest(_PARENTS).lca(nodes, nodes).tolist() == nodes.tolist()


def test_random_trees_agree_with_climbing_step_by_step() -> None:
    chance = np.random.default_rng(5)
    for n in (1, 2, 30, 200):
        parents = np.array([int(chance.integers(-1, i)) if i else -1 for i in range(n)])
        first, second = chance.integers(0, n, (2, 60))
        expected = [_climbed(parents.tolist(), a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
        assert Forest(parents).lca(first, second).tolist() == expected


def test_a_chain_is_climbed_in_powers_of_two() -> None:
    parents = np.arange(-1, 999)
    assert Forest(parents).lca(np.array([999]), np.array([640])).tolist() == [640]
    assert len(Forest(parents)._jumps) == 10


def test_a_node_above_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="own ancestor"):
        Forest(np.array([1, 2, 0]))


def test_nothing_is_a_forest() -> None:
    empty = np.empty(0, dtype=np.int64)
    assert Forest(empty).lca(empty, empty).tolist() == []


def _climbed(parents: list[int], first: int, second: int) -> int:
    above = set()
    while first >= 0:
        above.add(first)
        first = parents[first]
    while second >= 0 and second not in above:
        second = parents[second]
    return second
