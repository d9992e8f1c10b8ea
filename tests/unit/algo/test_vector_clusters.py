"""Tests of the grouping of vectors."""

import sys

import numpy as np
import numpy.typing as npt
import pytest

from quipu.algo import vector_clusters
from quipu.algo.vector_clusters import CLUSTER_SIZE, Grid, cluster_means, gaussian_mixture, nearest_centres, to_grid
from quipu.errors import Unavailable

_DIMENSION = 24


def _cloud(n: int, seed: int = 0, n_places: int = 12) -> npt.NDArray[np.float16]:
    """Return unit vectors around a few places."""
    chance = np.random.default_rng(seed)
    places = chance.normal(size=(n_places, _DIMENSION))
    vectors = places[chance.integers(0, n_places, n)] + 0.6 * chance.normal(size=(n, _DIMENSION))
    unit: npt.NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit.astype(np.float16)


def _keys(n: int) -> list[str]:
    return [f"entity {i:05}" for i in range(n)]


def _groups(keys: list[str], places: npt.NDArray[np.int64]) -> set[frozenset[str]]:
    found: dict[int, set[str]] = {}
    for key, place in zip(keys, places.tolist(), strict=True):
        found.setdefault(place, set()).add(key)
    return {frozenset(group) for group in found.values()}


def test_a_grid_is_whole_numbers_of_one_norm_and_nearly_the_same_directions() -> None:
    vectors = _cloud(50)
    grid = to_grid(vectors)
    assert (grid == np.rint(grid)).all()
    assert np.allclose(np.linalg.norm(grid, axis=1), 4_000, rtol=1e-3)
    exact = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    assert np.allclose((grid.astype(np.float64) @ grid.astype(np.float64).T) / 4_000**2, exact, atol=2e-3)


def test_products_of_a_grid_are_exact_in_float32() -> None:
    chance = np.random.default_rng(1)
    vectors = chance.normal(size=(40, 1_024))
    grid = to_grid((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16))
    assert ((grid @ grid.T) == (grid.astype(np.int64) @ grid.astype(np.int64).T)).all()


def test_a_zero_vector_stays_zero() -> None:
    assert (to_grid(np.zeros((2, 3), dtype=np.float16)) == 0).all()
    assert nearest_centres(["a", "b"], to_grid(np.zeros((2, 3), dtype=np.float16)), 1).tolist() in ([0, 0], [1, 1])


def test_means_are_directions_and_those_of_nothing_are_zero() -> None:
    grid = to_grid(np.array([[1, 0], [0, 1], [0, 1]], dtype=np.float16))
    found = cluster_means(grid, np.array([0, 0, 2]), 3)
    assert found[0].tolist() == [round(4_000 / 2**0.5)] * 2
    assert found[1].tolist() == [0, 0]
    assert found[2].tolist() == [0, 4_000]


def test_every_row_joins_the_centre_nearest_to_it_after_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, written plainly: dense products, argmax, the mean of each group, argmax again."""
    keys, grid = _keys(300), to_grid(_cloud(300))
    found = nearest_centres(keys, grid, 1)
    monkeypatch.setattr(vector_clusters, "_ROUNDS", 0)
    first = nearest_centres(keys, grid, 1)
    chosen = np.unique(first)
    dense = grid.astype(np.int64)
    assert (first == chosen[(dense @ dense[chosen].T).argmax(axis=1)]).all()
    centres = np.array([dense[first == centre].mean(axis=0) for centre in chosen])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    cosines = dense @ centres.T
    best = cosines.argmax(axis=1)
    assert (np.take_along_axis(cosines, np.searchsorted(chosen, found)[:, None], 1)[:, 0] > cosines.max(1) - 4).all()
    assert (chosen[best] == found).mean() > 0.99


def test_about_a_twentieth_are_centres_whatever_their_number() -> None:
    for n in (400, 4_000):
        n_groups = len(np.unique(nearest_centres(_keys(n), to_grid(_cloud(n, n_places=n // 10)), 1)))
        assert n / CLUSTER_SIZE * 0.6 < n_groups < n / CLUSTER_SIZE * 1.4


def test_layers_choose_their_centres_apart() -> None:
    keys, grid = _keys(600), to_grid(_cloud(600))
    assert not np.array_equal(nearest_centres(keys, grid, 1), nearest_centres(keys, grid, 2))


def test_groups_hold_what_is_alike() -> None:
    keys, grid = _keys(600), to_grid(_cloud(600))
    groups = np.unique(nearest_centres(keys, grid, 1), return_inverse=True)[1]
    directions = cluster_means(grid, groups, int(groups.max()) + 1).astype(np.float64)
    inside = (directions[groups] * grid).sum(axis=1).mean()
    shuffled = np.random.default_rng(3).permutation(groups)
    by_chance = cluster_means(grid, shuffled, int(groups.max()) + 1).astype(np.float64)
    assert inside > 1.5 * (by_chance[shuffled] * grid).sum(axis=1).mean()


def test_one_more_key_changes_few_groups() -> None:
    n = 2_000
    keys, vectors = _keys(n + 20), _cloud(n + 20, n_places=200)
    before = _groups(keys[:n], nearest_centres(keys[:n], to_grid(vectors[:n]), 1))
    changed = []
    for extra in range(n, n + 20):
        rows = [*range(n), extra]
        now = _groups([keys[i] for i in rows], nearest_centres([keys[i] for i in rows], to_grid(vectors[rows]), 1))
        changed.append(len(now - before))
    assert np.median(changed) <= 4
    assert np.mean(changed) < 0.1 * len(before)


def test_far_centres_may_be_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, grid = _keys(3_000), to_grid(_cloud(3_000, n_places=300))
    whole = nearest_centres(keys, grid, 1)
    monkeypatch.setattr(vector_clusters, "_MAX_EXACT_CENTRES", 50)
    monkeypatch.setattr(vector_clusters, "_N_REGIONS", 4)
    few = nearest_centres(keys, grid, 1)
    assert (whole == few).mean() > 0.7
    monkeypatch.setattr(vector_clusters, "_N_REGIONS", 14)
    assert (whole == nearest_centres(keys, grid, 1)).mean() == 1.0


def test_of_equal_centres_the_first_is_taken() -> None:
    grid = to_grid(np.tile(np.array([1, 0], dtype=np.float16), (100, 1)))
    assert len(np.unique(nearest_centres(_keys(100), grid, 1))) == 1


def test_a_gaussian_mixture_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.mixture", None)
    with pytest.raises(Unavailable, match="scikit-learn is not installed") as caught:
        gaussian_mixture(["a"], np.ones((1, 2), dtype=np.float32), 1)
    assert "quipu-rag[mixture]" in caught.value.remedy


def test_a_gaussian_mixture_has_as_many_parts_as_fit_best_or_a_twentieth(monkeypatch: pytest.MonkeyPatch) -> None:
    """BIC falls up to five parts, and hardly after; a twentieth of 60 is less."""
    asked: list[int] = []

    class Mixture:
        def __init__(self, n_components: int, **_: object) -> None:
            self.n = n_components

        def fit(self, _vectors: Grid) -> "Mixture":
            asked.append(self.n)
            return self

        def bic(self, _vectors: Grid) -> float:
            return 1_000.0 - 100 * min(self.n, 5) + 0.1 * max(self.n - 5, 0)

        def predict(self, vectors: Grid) -> npt.NDArray[np.int64]:
            return np.arange(len(vectors))[::-1] % self.n

    monkeypatch.setattr(vector_clusters, "_gaussian_mixture_class", lambda: Mixture)
    found = gaussian_mixture(_keys(60), np.ones((60, 2), dtype=np.float32), 1)
    assert asked == [1, 2, 3, 4, 5, 6, 5]
    assert sorted(set(found.tolist())) == [0, 1, 2, 3, 4]
    assert found.tolist() == [i % 5 for i in range(60)]
    asked.clear()
    gaussian_mixture(_keys(200), np.ones((200, 2), dtype=np.float32), 1)
    assert asked[-1] == 10
