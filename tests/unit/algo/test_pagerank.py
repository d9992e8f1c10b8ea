"""Personalised PageRank against a dense solution, and the laws it keeps."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.algo.pagerank import GraphBlock, WeightedGraph, personalised_pagerank
from quipu.algo.sparse_matrix import sparse_matrix
from quipu.ports.topology import Floats

Full = npt.NDArray[np.float64]


def walk_on(full: Full) -> WeightedGraph:
    rows, columns = np.nonzero(full)
    n = len(full)
    return WeightedGraph(
        blocks=[GraphBlock(matrix=sparse_matrix(rows, columns, full[rows, columns], (n, n)))], n_entities=n
    )


def solved(full: Full, reset: Full, damping: float) -> Full:
    """Return the exact solution; a node without links leads to itself."""
    links = full + np.diag((full.sum(axis=0) == 0).astype(float))
    step = links / links.sum(axis=0)
    solution: Full = np.linalg.solve(np.eye(len(full)) - damping * step, (1 - damping) * reset)
    return solution


def random_graph(n: int, n_links: int, seed: int = 0) -> Full:
    chance = np.random.default_rng(seed)
    full = np.zeros((n, n))
    ends = np.minimum((n * chance.random((n_links, 2)) ** 2).astype(int), n - 1)  # some nodes have many links
    full[ends[:, 0], ends[:, 1]] = chance.random(n_links) + 0.1
    full = full + full.T
    np.fill_diagonal(full, 0)
    return full


@st.composite
def cases(draw: st.DrawFn) -> tuple[Full, Full, Full, float]:
    n = draw(st.integers(1, 12))
    weights = st.sampled_from([0.0, 0.0, 1.0, 3.0, 0.01])
    upper = np.triu(np.array(draw(st.lists(weights, min_size=n * n, max_size=n * n))).reshape(n, n), 1)
    starts = st.lists(st.sampled_from([0.0, 1.0, 0.25]), min_size=n, max_size=n)
    damping = draw(st.sampled_from([0.0, 0.5, 0.85, 0.99]))
    return upper + upper.T, np.array(draw(starts)), np.array(draw(starts)), damping


@given(case=cases())
def test_ranks_are_those_of_the_dense_solution(case: tuple[Full, Full, Full, float]) -> None:
    full, reset, _, damping = case
    ranks = personalised_pagerank(walk_on(full), reset, damping=damping, tolerance=1e-10)
    assert np.abs(ranks - solved(full, reset, damping)).sum() <= 2e-10 * reset.sum() + 1e-14


@pytest.mark.parametrize("damping", [0.5, 0.85])
@pytest.mark.parametrize("seed", range(3))
def test_larger_graphs_agree_with_the_dense_solution(damping: float, seed: int) -> None:
    full = random_graph(300, 900, seed)
    reset = np.zeros(300)
    reset[[3, 40, 299]] = [0.5, 0.3, 0.2]
    ranks = personalised_pagerank(walk_on(full), reset, damping=damping, tolerance=1e-8)
    assert np.abs(ranks - solved(full, reset, damping)).sum() <= 1e-8


@given(case=cases())
def test_ranks_are_linear_in_the_reset(case: tuple[Full, Full, Full, float]) -> None:
    full, first, second, damping = case
    walk = walk_on(full)
    both = personalised_pagerank(walk, first + 2 * second, damping=damping)
    apart = personalised_pagerank(walk, first, damping=damping) + 2 * personalised_pagerank(
        walk, second, damping=damping
    )
    assert np.allclose(both, apart, atol=1e-7)


@given(case=cases())
def test_mass_is_kept(case: tuple[Full, Full, Full, float]) -> None:
    full, reset, _, damping = case
    ranks = personalised_pagerank(walk_on(full), reset, damping=damping, tolerance=1e-10)
    assert ranks.sum() == pytest.approx(reset.sum(), rel=1e-9)
    assert ranks.min() >= 0


def test_an_isolated_node_keeps_what_starts_there() -> None:
    full = np.zeros((4, 4))
    full[0, 1] = full[1, 0] = 1.0
    ranks = personalised_pagerank(walk_on(full), np.array([0.5, 0.0, 0.5, 0.0]), damping=0.85)
    assert ranks[2] == 0.5
    assert ranks[3] == 0.0


def test_two_linked_nodes_by_hand() -> None:
    full = np.array([[0.0, 2.0], [2.0, 0.0]])
    ranks = personalised_pagerank(walk_on(full), np.array([1.0, 0.0]), damping=0.5)
    assert ranks == pytest.approx([2 / 3, 1 / 3])  # a = 1/2 b + 1/2, b = 1/2 a


def test_a_star_by_hand() -> None:
    full = np.zeros((4, 4))
    full[0, 1:] = full[1:, 0] = 1.0
    ranks = personalised_pagerank(walk_on(full), np.array([0.0, 1.0, 0.0, 0.0]), damping=0.85)
    hub = 0.85 / (1 + 0.85)  # h = d (1 - h)
    assert ranks == pytest.approx([hub, 0.15 + 0.85 * hub / 3, 0.85 * hub / 3, 0.85 * hub / 3])


def test_an_empty_reset_leads_nowhere() -> None:
    assert personalised_pagerank(walk_on(np.ones((3, 3))), np.zeros(3), damping=0.5).tolist() == [0, 0, 0]
    assert personalised_pagerank(walk_on(np.ones((0, 0))), np.zeros(0), damping=0.5).tolist() == []


@pytest.mark.parametrize("mass", [1e-200, 1.0, 1e200])
def test_a_reset_may_have_any_mass(mass: float) -> None:
    full, reset = random_graph(30, 60), np.zeros(30)
    reset[[3, 4]] = 0.5
    ranks = personalised_pagerank(walk_on(full), reset * mass, damping=0.85)
    assert np.allclose(ranks / mass, solved(full, reset, 0.85))


def test_what_no_start_reaches_has_no_rank() -> None:
    full = np.zeros((80, 80))
    full[:40, :40], full[40:, 40:] = random_graph(40, 120), random_graph(40, 120, 1)
    reset = np.zeros(80)
    reset[[0, 1]] = 0.5
    assert personalised_pagerank(walk_on(full), reset, damping=0.85)[40:].tolist() == [0.0] * 40


def test_how_nodes_are_numbered_makes_no_difference() -> None:
    full, reset = random_graph(300, 900), np.zeros(300)
    reset[[3, 40, 299]] = [0.5, 0.3, 0.2]
    order = np.random.default_rng(0).permutation(300)
    ranks = personalised_pagerank(walk_on(full), reset, damping=0.85)
    again = personalised_pagerank(walk_on(full[np.ix_(order, order)]), reset[order], damping=0.85)
    assert np.allclose(again, ranks[order], rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("damping", [-0.1, 1.0])
def test_a_damping_that_never_ends_is_refused(damping: float) -> None:
    with pytest.raises(ValueError, match=f"a damping of {damping}"):
        personalised_pagerank(walk_on(np.ones((2, 2))), np.ones(2), damping=damping)


def test_a_negative_reset_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        personalised_pagerank(walk_on(np.ones((2, 2))), np.array([1.0, -1.0]), damping=0.5)


@pytest.mark.parametrize("damping", [0.5, 0.999, 1 - 1e-12])
@pytest.mark.parametrize("full", [np.ones((2, 2)) - np.eye(2), random_graph(30, 60)], ids=["pair", "many"])
def test_no_tolerance_at_all_gives_what_doubles_give(full: Full, damping: float) -> None:
    reset = np.linspace(1, 2, len(full))
    ranks = personalised_pagerank(walk_on(full), reset, damping=damping, tolerance=0)
    assert np.abs(ranks - solved(full, reset, damping)).sum() <= reset.sum() * 1e-15 / (1 - damping)


@pytest.mark.parametrize("n", [2, 1_200])
def test_the_error_is_small_at_the_ends_of_the_range_too(n: int) -> None:
    way = np.diag(np.ones(n - 1), 1)  # a long way, where a walk takes most steps
    full, reset = way + way.T, np.eye(n)[0]
    ranks = personalised_pagerank(walk_on(full), reset, damping=0.999, tolerance=1e-12)
    assert np.abs(ranks - solved(full, reset, 0.999)).sum() <= 1e-12


def test_few_steps_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    walk, calls = walk_on(random_graph(300, 900)), 0
    gather = WeightedGraph.multiply

    def counted(self: WeightedGraph, weights: Floats) -> Floats:
        nonlocal calls
        calls += 1
        return gather(self, weights)

    monkeypatch.setattr(WeightedGraph, "multiply", counted)
    personalised_pagerank(walk, np.eye(300)[0], damping=0.85, tolerance=1e-8)
    assert calls <= 27  # plain power iteration takes 110
