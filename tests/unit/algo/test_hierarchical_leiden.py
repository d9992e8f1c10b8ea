"""Communities: every node is covered, level by level, and what did not change stays the same."""

import numpy as np
import pytest

from quipu.algo.edge_list import EdgeList, edge_list, modularity
from quipu.algo.leiden import Community, hierarchical_leiden, leiden, match_communities
from tests.unit.algo.planted import before_of, grown, planted

MAX_SIZE = 10


def _coarse_labels(found: list[Community], n: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    labels = np.full(n, -1, dtype=np.int64)
    for place, each in enumerate(found):
        if each.level == 0:
            labels[each.nodes] = place
    return labels


def _check_tree(found: list[Community], n: int) -> None:
    """Every node is in one community of the coarsest level and in one of the finest, and parts make up wholes."""
    assert sorted(np.concatenate([c.nodes for c in found if c.level == 0]).tolist()) == list(range(n))
    assert sorted(np.concatenate([c.nodes for c in found if c.is_finest]).tolist()) == list(range(n))
    for place, each in enumerate(found):
        parts = [part for part in found if part.parent == place]
        assert bool(parts) != each.is_finest
        assert all(part.level == each.level + 1 for part in parts)
        if parts:
            assert len(parts) > 1
            assert sorted(np.concatenate([part.nodes for part in parts]).tolist()) == each.nodes.tolist()


def _pairs(n: int, *links: tuple[int, int]) -> EdgeList:
    first, second = (np.array(side, dtype=np.int64) for side in (zip(*links, strict=True) if links else ((), ())))
    return edge_list(n, first, second, np.ones(len(links)))


@pytest.mark.parametrize("seed", range(4))
def test_every_node_is_covered_whatever_component_it_is_in(seed: int) -> None:
    graph = planted(150, 6, 260, seed)  # sparse: many components, some of one node
    found = hierarchical_leiden(graph, max_size=MAX_SIZE)
    _check_tree(found, graph.n)
    assert all(each.previous == -1 for each in found)
    assert max(len(each.nodes) for each in found if each.is_finest) < 30


def test_what_cannot_be_divided_stays_whole() -> None:
    clique = _pairs(14, *((a, b) for a in range(14) for b in range(a + 1, 14)))
    (only,) = hierarchical_leiden(clique, max_size=MAX_SIZE)
    assert (only.level, only.is_finest, only.nodes.tolist()) == (0, True, list(range(14)))
    assert hierarchical_leiden(_pairs(0), max_size=MAX_SIZE) == []


@pytest.mark.parametrize("seed", range(4))
def test_communities_keep_their_identity_when_a_document_is_added(seed: int) -> None:
    graph = planted(600, 20, 2_400, seed)
    found = hierarchical_leiden(graph, max_size=MAX_SIZE)
    for step in range(5):
        graph, before, touched = grown(graph, found, 10 * seed + step)
        warm = hierarchical_leiden(graph, max_size=MAX_SIZE, previous=before)
        _check_tree(warm, graph.n)
        kept = {each.previous: each for each in warm if each.previous >= 0}
        assert len(kept) == sum(each.previous >= 0 for each in warm)
        untouched = [place for place in range(len(found)) if place not in touched]
        same = [p for p in untouched if p in kept and np.array_equal(kept[p].nodes, found[p].nodes)]
        assert len(same) >= 0.95 * len(untouched)
        found = warm
    anew = modularity(graph, leiden(graph))
    assert modularity(graph, _coarse_labels(found, graph.n)) > 0.99 * anew


def test_nothing_moves_where_nothing_changed() -> None:
    graph = planted(300, 10, 1_200, 1)
    found = hierarchical_leiden(graph, max_size=MAX_SIZE)
    again = hierarchical_leiden(graph, max_size=MAX_SIZE, previous=before_of(found, graph.n, graph.n))
    assert {(each.level, tuple(each.nodes.tolist())) for each in again} == {
        (each.level, tuple(each.nodes.tolist())) for each in found
    }
    assert all(np.array_equal(found[each.previous].nodes, each.nodes) for each in again)


def test_what_is_divided_anew_takes_over_the_communities_it_has_most_in_common_with() -> None:
    graph = planted(300, 10, 1_200, 1)
    found = hierarchical_leiden(graph, max_size=MAX_SIZE)
    before = before_of(found, graph.n, graph.n)
    before.free[:] = True
    again = hierarchical_leiden(graph, max_size=MAX_SIZE, previous=before)
    assert all(np.array_equal(found[each.previous].nodes, each.nodes) for each in again)
    assert {each.previous for each in again} == set(range(len(found)))


def test_the_largest_overlap_is_matched_first_and_none_twice() -> None:
    old = np.array([5, 5, 5, 5, 8, 8, -1, 2])
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 2])
    # 0 with 5: 3 of 4; 1 with 8: 2 of 4; 1 with 5: 1 of 7; 2 with 2: 1 of 10, since most of it has left.
    sizes = np.array([0, 0, 10, 0, 0, 4, 0, 0, 2])
    assert match_communities(labels, old, sizes) == {0: 5, 1: 8}
