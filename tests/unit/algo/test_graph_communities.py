"""Communities of a graph: every node is covered, planted groups are found, and a small change changes little."""

import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

from quipu.algo import graph_communities
from quipu.algo.edge_list import EdgeList, Floats, Ints, edge_list, modularity
from quipu.algo.graph_communities import MAX_SIZE, Community, Marks, find_communities
from tests.unit.algo.planted import planted, with_document

_PRINT = "from tests.unit.algo import test_graph_communities as test\nprint(test.example())"


def _marks(n: int) -> Marks:
    return np.random.default_rng(7).integers(0, 1 << 32, n, dtype=np.uint64)


def _found(graph: EdgeList) -> list[Community]:
    return find_communities(graph, _marks(graph.n))


def _sets(communities: Sequence[Community]) -> set[tuple[int, ...]]:
    return {tuple(community.nodes.tolist()) for community in communities}


def example() -> list[tuple[int, ...]]:
    """Return the communities of one graph, in order."""
    return sorted(_sets(_found(planted(300, 10, 1500, 3)[0])))


def _labels(communities: Sequence[Community], n: int) -> Ints:
    labels = np.full(n, -1, dtype=np.int64)
    for place, community in enumerate(communities):
        if community.level == 0:
            labels[community.nodes] = place
    return labels


def _links(n: int, *links: tuple[int, int]) -> EdgeList:
    first, second = (np.array(side, dtype=np.int64) for side in (zip(*links, strict=True) if links else ((), ())))
    return edge_list(n, first, second, np.ones(len(links)))


def _clique(*nodes: int) -> list[tuple[int, int]]:
    return [(first, second) for first in nodes for second in nodes if first < second]


@pytest.mark.parametrize("seed", range(4))
def test_every_node_is_covered_on_the_coarsest_level_and_on_the_finest(seed: int) -> None:
    graph, _ = planted(400, 6, 700, seed)  # sparse: many components, some of one node
    communities = _found(graph)
    for selected in ([c for c in communities if c.level == 0], [c for c in communities if c.is_finest]):
        assert sorted(np.concatenate([c.nodes for c in selected]).tolist()) == list(range(graph.n))
    for place, community in enumerate(communities):
        parts = [part for part in communities if part.parent == place]
        assert bool(parts) != community.is_finest
        assert all(part.level == community.level + 1 for part in parts)
        if parts:
            assert len(parts) > 1
            assert sorted(np.concatenate([part.nodes for part in parts]).tolist()) == community.nodes.tolist()
    assert max(len(c.nodes) for c in communities if c.is_finest) < 3 * MAX_SIZE


@pytest.mark.parametrize("seed", range(5))
def test_modularity_is_about_that_of_the_planted_groups(seed: int) -> None:
    graph, group = planted(600, 20, 3_000, seed, mixing=0.1)
    communities = _found(graph)
    assert modularity(graph, _labels(communities, graph.n)) > 0.97 * modularity(graph, group)
    assert 15 <= sum(community.level == 0 for community in communities) <= 22


def test_cliques_that_are_connected_by_one_link_are_separate_communities() -> None:
    graph = _links(11, *_clique(*range(5)), *_clique(*range(5, 10)), (4, 5))
    assert _sets(_found(graph)) == {tuple(range(5)), tuple(range(5, 10)), (10,)}


def test_a_hub_and_its_leaves_are_one_community_however_many_they_are() -> None:
    graph = _links(60, *((0, leaf) for leaf in range(1, 60)))
    assert _sets(_found(graph)) == {tuple(range(60))}


def test_a_ring_is_divided_into_finest_communities_in_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    n_rounds = 0
    merge_targets = graph_communities._merge_targets

    def counted(links: graph_communities._Links) -> tuple[Ints, Floats]:
        nonlocal n_rounds
        n_rounds += 1
        return merge_targets(links)

    monkeypatch.setattr(graph_communities, "_merge_targets", counted)
    graph = _links(5_000, *((node, (node + 1) % 5_000) for node in range(5_000)))
    assert max(len(community.nodes) for community in _found(graph) if community.is_finest) <= MAX_SIZE + 2
    assert 0 < n_rounds < 50


def test_a_graph_without_edges_or_nodes_has_no_communities_of_several_nodes() -> None:
    assert [community.nodes.tolist() for community in _found(_links(3))] == [[0], [1], [2]]
    assert _found(_links(0)) == []


def test_the_order_of_nodes_decides_nothing() -> None:
    graph, _ = planted(500, 12, 2_000, 5)
    weights = graph.weights + np.random.default_rng(1).random(len(graph.weights))  # no two edges are equal
    marks, order = _marks(graph.n), np.random.default_rng(2).permutation(graph.n)
    place = np.argsort(order)
    plain = find_communities(edge_list(graph.n, graph.sources, graph.targets, weights), marks)
    shuffled = find_communities(edge_list(graph.n, place[graph.sources], place[graph.targets], weights), marks[order])
    assert {tuple(sorted(order[community.nodes].tolist())) for community in shuffled} == _sets(plain)


def test_the_same_graph_has_the_same_communities_in_every_process() -> None:
    printed = {
        subprocess.run([sys.executable, "-c", _PRINT], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert printed == {f"{example()}\n"}


def _share_unchanged(seed: int) -> float:
    """Return the share of communities without a node of a new document that are still communities with it."""
    graph, group = planted(6_000, 120, 24_000, seed)
    before = _sets(_found(graph))
    larger, known = with_document(graph, np.flatnonzero(group == seed), seed)
    marks = np.append(_marks(graph.n), _marks(larger.n)[graph.n :])
    untouched = {nodes for nodes in before if not set(nodes) & set(known.tolist())}
    return len(untouched & _sets(find_communities(larger, marks))) / len(untouched)


def test_nearly_all_communities_stay_when_a_document_is_added() -> None:
    assert np.median([_share_unchanged(seed) for seed in range(5)]) >= 0.97


def test_they_would_not_stay_if_the_marks_of_nodes_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(3)
    monkeypatch.setitem(globals(), "_marks", lambda n: chance.integers(0, 1 << 32, n, dtype=np.uint64))
    assert np.median([_share_unchanged(seed) for seed in range(3)]) < 0.97
