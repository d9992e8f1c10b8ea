"""The layout of a graph: nothing overlaps, everything is inside its community, and numbers do not matter."""

import numpy as np
import pytest

from quipu.algo.edge_list import EdgeList, Ints, edge_list
from quipu.algo.graph_communities import find_communities
from quipu.algo.graph_layout import NODE_RADIUS, DiscTree, Floats, GraphLayout, lay_out

_TOLERANCE = 1e-3  # of float32


def _planted(n: int, seed: int = 1) -> EdgeList:
    """Return a graph of groups of about 40 nodes: two thirds of the edges are inside of groups."""
    random = np.random.default_rng(seed)
    group = np.sort(random.integers(0, max(n // 40, 1), n))
    starts, ends = np.searchsorted(group, group), np.searchsorted(group, group, side="right")
    first = random.integers(0, n, 3 * n)
    near = starts[first] + (random.random(3 * n) * (ends - starts)[first]).astype(np.int64)
    second = np.where(random.random(3 * n) < 0.66, near, random.integers(0, n, 3 * n))
    return edge_list(n, first, second, np.ones(3 * n))


def _tree(graph: EdgeList) -> DiscTree:
    communities = find_communities(graph, np.arange(graph.n, dtype=np.uint64) * np.uint64(2654435761))
    finest = np.full(graph.n, -1, dtype=np.int64)
    for place, community in enumerate(communities):
        if community.is_finest:
            finest[community.nodes] = place
    return DiscTree(parents=np.array([community.parent for community in communities], dtype=np.int64), finest=finest)


def _isolated(n: int) -> EdgeList:
    return edge_list(n, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


def _distances(points: np.ndarray) -> Floats:
    """Return the distance of each pair, [n, n]; infinite on the diagonal."""
    distances: Floats = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    np.fill_diagonal(distances, np.inf)
    return distances


@pytest.fixture(scope="module")
def planted() -> tuple[EdgeList, DiscTree, GraphLayout]:
    graph = _planted(4_000)
    tree = _tree(graph)
    return graph, tree, lay_out(graph, tree)


def test_discs_of_one_parent_do_not_overlap(planted: tuple[EdgeList, DiscTree, GraphLayout]) -> None:
    _, tree, layout = planted
    assert len(np.unique(tree.parents)) > 20
    for parent in np.unique(tree.parents):
        parts = np.flatnonzero(tree.parents == parent)
        gaps = _distances(layout.communities[parts].astype(np.float64)) - np.add.outer(
            layout.radii[parts], layout.radii[parts]
        )
        assert gaps.min() > -_TOLERANCE


def test_parts_and_members_lie_inside_their_community(planted: tuple[EdgeList, DiscTree, GraphLayout]) -> None:
    _, tree, layout = planted
    parts = np.flatnonzero(tree.parents >= 0)
    parents = tree.parents[parts]
    reach = np.hypot(*(layout.communities[parts] - layout.communities[parents]).T) + layout.radii[parts]
    assert (reach <= layout.radii[parents] + _TOLERANCE).all()
    reach = np.hypot(*(layout.nodes - layout.communities[tree.finest]).T) + NODE_RADIUS
    assert (reach <= layout.radii[tree.finest] + _TOLERANCE).all()


def test_no_two_nodes_overlap(planted: tuple[EdgeList, DiscTree, GraphLayout]) -> None:
    _, _, layout = planted
    assert _distances(layout.nodes.astype(np.float64)).min() > 2 * NODE_RADIUS - 0.01


def test_related_nodes_are_nearer_than_random_ones_and_than_without_turning(
    planted: tuple[EdgeList, DiscTree, GraphLayout],
) -> None:
    graph, tree, layout = planted
    unrelated = lay_out(_isolated(graph.n), tree)  # the same discs, ordered by number alone

    def mean_length(nodes: np.ndarray) -> float:
        return float(np.hypot(*(nodes[graph.sources] - nodes[graph.targets]).T).mean())

    pairs = np.random.default_rng(2).integers(0, graph.n, (2, 10_000))
    random_length = np.hypot(*(layout.nodes[pairs[0]] - layout.nodes[pairs[1]]).T).mean()
    assert mean_length(layout.nodes) < 0.6 * random_length
    assert mean_length(layout.nodes) < 0.95 * mean_length(unrelated.nodes)


def test_the_order_of_the_edges_does_not_matter() -> None:
    graph = _planted(500)
    tree = _tree(graph)
    order = np.random.default_rng(3).permutation(len(graph.weights))
    shuffled = EdgeList(graph.n, graph.sources[order], graph.targets[order], graph.weights[order])
    np.testing.assert_allclose(lay_out(shuffled, tree).nodes, lay_out(graph, tree).nodes, atol=_TOLERANCE)


def test_a_new_node_lies_at_the_mean_of_its_neighbours() -> None:
    graph = edge_list(5, np.array([0, 2, 0, 2]), np.array([1, 3, 4, 4]), np.ones(4))
    tree = DiscTree(parents=np.array([-1, -1]), finest=np.array([0, 0, 1, 1, -1]))
    nodes = lay_out(graph, tree).nodes
    middle = (nodes[0] + nodes[2]) / 2
    assert np.hypot(*(nodes[4] - middle)) == pytest.approx(NODE_RADIUS / 2, abs=_TOLERANCE)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 3_000])
def test_isolated_nodes_have_places_of_their_own(n: int) -> None:
    for finest in (np.full(n, -1, dtype=np.int64), np.arange(n)):
        parents: Ints = np.full(n if n and finest[0] >= 0 else 0, -1, dtype=np.int64)
        layout = lay_out(_isolated(n), DiscTree(parents=parents, finest=finest))
        assert layout.nodes.shape == (n, 2)
        assert layout.nodes.dtype == np.float32
        assert len(layout.radii) == len(parents)
        assert n < 2 or _distances(layout.nodes).min() > 2 * NODE_RADIUS


def test_nodes_beside_the_parts_of_a_community_lie_inside_it_and_outside_its_parts() -> None:
    tree = DiscTree(parents=np.array([-1, 0, 0]), finest=np.array([1, 1, 1, 2, 2, 0, 0, 0]))
    layout = lay_out(_isolated(8), tree)
    for node in (5, 6, 7):
        distances = np.hypot(*(layout.communities - layout.nodes[node]).T)
        assert distances[0] + NODE_RADIUS <= layout.radii[0] + _TOLERANCE
        assert (distances[1:] >= layout.radii[1:] + NODE_RADIUS - _TOLERANCE).all()


def test_few_equal_discs_share_one_ring() -> None:
    tree = DiscTree(parents=np.full(3, -1), finest=np.array([0, 0, 1, 1, 2, 2]))
    layout = lay_out(_isolated(6), tree)
    distances = np.hypot(*layout.communities.T)
    np.testing.assert_allclose(distances, distances[0], rtol=1e-5)
    assert distances[0] > 0
