"""Tests of the layers of a hierarchy."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from quipu.algo.cluster_layers import ClusterLayers, cluster_layers, max_layers
from quipu.algo.vector_clusters import Grid

_DIMENSION = 16


def _cloud(n: int, seed: int = 0) -> npt.NDArray[np.float16]:
    chance = np.random.default_rng(seed)
    places = chance.normal(size=(max(n // 15, 1), _DIMENSION))
    vectors = places[chance.integers(0, len(places), n)] + 0.5 * chance.normal(size=(n, _DIMENSION))
    unit: npt.NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit.astype(np.float16)


def _keys(n: int) -> list[str]:
    return [f"entity {i:05}" for i in range(n)]


def _members(keys: list[str], layers: ClusterLayers) -> dict[frozenset[str], int]:
    """Return what each group holds, however deep, with its level."""
    held: dict[int, set[str]] = {}
    for node, key in enumerate(keys):
        at = int(layers.parents[node])
        while at >= 0:
            held.setdefault(at, set()).add(key)
            at = int(layers.parents[at])
    return {frozenset(names): int(layers.levels[node]) for node, names in held.items()}


@pytest.mark.parametrize("n", [2, 3, 40, 150, 900])
def test_there_is_one_root_and_every_node_has_one_parent_above_it(n: int) -> None:
    layers = cluster_layers(_keys(n), _cloud(n))
    parents, levels = layers.parents, layers.levels
    assert (parents < 0).sum() == 1
    assert parents[-1] == -1
    below = parents[:-1]
    assert (levels[below] > levels[:-1]).all()
    assert (levels[:n] == 0).all() and (levels[n:] > 0).all()
    assert int(levels.max()) <= max_layers(n) + 1
    assert min(np.bincount(below)[n:]) >= 2


def test_nothing_and_one_thing_have_no_layers() -> None:
    assert cluster_layers([], np.empty((0, 4), dtype=np.float16)).parents.tolist() == []
    assert cluster_layers(["a"], np.ones((1, 4), dtype=np.float16)).parents.tolist() == [-1]


def test_a_layer_of_four_groups_or_fewer_is_not_made() -> None:
    def into(n_groups: int) -> ClusterLayers:
        def grouping(keys: Sequence[str], _grid: Grid, _layer: int) -> npt.NDArray[np.int64]:
            return np.arange(len(keys)) % n_groups if len(keys) > n_groups else np.arange(len(keys))

        return cluster_layers(_keys(40), _cloud(40), grouping)

    assert np.bincount(into(4).levels).tolist() == [40, 1]
    assert np.bincount(into(5).levels).tolist() == [40, 5, 1]


def test_a_group_of_one_stays_as_it_is_and_keeps_its_ancestors() -> None:
    def grouping(keys: Sequence[str], _grid: Grid, layer: int) -> npt.NDArray[np.int64]:
        n = len(keys)
        if layer == 1:  # the first alone, six groups of the others
            return np.where(np.arange(n) == 0, 0, 1 + np.arange(n) % 6)
        return np.array([0, 0, 2, 3, 4, 5, 6])  # the first with one group; five groups alone

    layers = cluster_layers(_keys(43), _cloud(43), grouping)
    assert np.bincount(layers.levels).tolist() == [43, 6, 1, 1]
    above = int(layers.parents[0])
    assert layers.levels[above] == 2
    assert sorted(np.flatnonzero(layers.parents == above).tolist()) == [0, 43]
    assert layers.ancestors(1)[0] == 0
    assert layers.ancestors(2)[0] == above
    assert set(layers.ancestors(3).tolist()) == {len(layers.parents) - 1}
    assert layers.levels[layers.parents[44]] == 3


def test_the_shape_is_a_function_of_the_set_of_keys_and_vectors() -> None:
    """Things come and go; what remains is grouped as if it had always been all there was."""
    keys, vectors = _keys(700), _cloud(700)
    some = [i for i in range(700) if i % 3]
    whole = _members([keys[i] for i in some], cluster_layers([keys[i] for i in some], vectors[some]))
    again = _members([keys[i] for i in some], cluster_layers([keys[i] for i in some], vectors[some].copy(order="F")))
    assert whole == again
    assert whole != _members(keys, cluster_layers(keys, vectors))


def test_depth_follows_the_logarithm() -> None:
    assert [max_layers(n) for n in (0, 1, 2, 20, 89, 90, 400, 10**5)] == [0, 0, 1, 2, 2, 3, 3, 5]
