"""Clusters of similar vectors, about twenty to a cluster, as a function of keys and vectors only.

The result does not depend on the order of rows, history, processor or number of threads: unit vectors are rounded to a
grid of whole numbers that is so coarse that float32 adds their products without rounding, in any order.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from quipu.errors import Unavailable
from quipu.model.ids import digest

Ints = npt.NDArray[np.int64]
Grid = npt.NDArray[np.float32]  # [n, d], whole numbers; each row has a norm of about _NORM, or is zero
Grouping = Callable[[Sequence[str], Grid, int], Ints]  # (keys, vectors, layer from 1) -> row of each cluster's centre

CLUSTER_SIZE = 20  # members on average, as in LeanRAG
_ROUNDS = 1  # more rounds improve clusters, but then one new key changes more of them: docs/adr/0026
_REGION_ROUNDS = 3
_NORM = 4_000.0  # keeps products of two rows, and all partial sums, below 2^24
_FRACTION = 64.0  # means are rounded to multiples of 1 / 64, so that their squares add up exactly in float64
_MAX_EXACT_CENTRES = 5_000  # up to a hundred thousand vectors, where an exact search is as fast
_N_REGIONS = 8  # regions searched for each vector
_ROWS = 2_048
_MAX_BIC, _MIN_CHANGE = 50, 1e-3  # LeanRAG tries 1 to 49 components, until the criterion hardly changes


def to_grid(vectors: npt.NDArray[np.float16] | npt.NDArray[np.float64]) -> Grid:
    """Return rows [n, d] (float16 unit vectors, or means of grid rows), scaled to one norm and rounded to integers.

    A component moves by at most 1 / 8000 of the norm. Squares and their sums are exact; roots are correctly rounded.
    """
    grid = np.empty(vectors.shape, dtype=np.float32)
    for start in range(0, len(vectors), _ROWS):
        exact = vectors[start : start + _ROWS].astype(np.float64)
        norms = np.sqrt(np.square(exact).sum(axis=1, keepdims=True))
        grid[start : start + _ROWS] = np.rint(exact / np.where(norms > 0, norms, 1) * _NORM)
    return grid


def cluster_means(grid: Grid, groups: Ints, n_groups: int) -> Grid:
    """Return each cluster's mean on the grid, [n_groups, d]; `groups` [n] assigns the rows. An empty one is zero."""
    order = np.argsort(groups, kind="stable")
    present, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    sums = np.zeros((n_groups, grid.shape[1]), dtype=np.float64)
    if len(present):
        sums[present] = np.add.reduceat(grid[order], starts, axis=0, dtype=np.float64)
        sums[present] = np.rint(sums[present] / sizes[:, np.newaxis] * _FRACTION) / _FRACTION
    return to_grid(sums)


def nearest_centres(keys: Sequence[str], grid: Grid, layer: int) -> Ints:
    """Return, for each row, the row number of its cluster's centre; rows are ordered by key.

    Digests choose about one key in twenty as a centre. Each centre moves once, to the mean of its nearest rows, and
    then each row joins its nearest centre. One more key is a new centre or moves one a little, so few clusters change.
    Source: k-means (J. MacQueen, Some Methods for Classification, 1967). Deviation: digests choose the start.
    """
    marks = np.array([int(digest("centre", str(layer), key)[:15], 16) for key in keys], dtype=np.int64)
    centre_rows = np.flatnonzero(marks < 16**15 // CLUSTER_SIZE)
    centre_rows = centre_rows if len(centre_rows) else np.argsort(marks, kind="stable")[:1]
    centres = _moved_centres(grid, grid[centre_rows], _ROUNDS)
    return np.asarray(centre_rows[_nearest(grid, centres)], dtype=np.int64)


def gaussian_mixture(keys: Sequence[str], grid: Grid, _layer: int) -> Ints:
    """Return, for each row, the first row of its cluster in a Gaussian mixture of max(n // 20, best by BIC) components.

    This is LeanRAG's clustering without UMAP, for comparison. It is far slower, and equal only on one machine.
    Components are spherical, because twenty vectors do not determine a covariance; a row joins its likeliest component.
    Raises Unavailable where scikit-learn is not installed.
    """
    mixture = _gaussian_mixture_class()
    vectors = grid.astype(np.float64) / _NORM

    def fitted(n_groups: int) -> Any:
        return mixture(n_groups, covariance_type="spherical", n_init=1, random_state=0).fit(vectors)

    best, lowest, previous = 1, np.inf, 0.0
    for n_groups in range(1, min(_MAX_BIC, len(keys) + 1)):
        criterion = float(fitted(n_groups).bic(vectors))
        if criterion < lowest:
            best, lowest = n_groups, criterion
        if previous and abs(criterion - previous) < _MIN_CHANGE * abs(previous):
            break
        previous = criterion
    groups = fitted(max(len(keys) // CLUSTER_SIZE, best)).predict(vectors)
    _, firsts, members = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(firsts[members], dtype=np.int64)


def check_gaussian_mixture() -> None:
    """Raise Unavailable where scikit-learn is not installed. It is not imported, because that takes over a second."""
    if find_spec("sklearn") is None:
        raise _not_installed()


def _gaussian_mixture_class() -> Any:
    try:
        from sklearn.mixture import GaussianMixture
    except ImportError as error:
        raise _not_installed(f" ({error})") from error
    return GaussianMixture


def _not_installed(reason: str = "") -> Unavailable:
    return Unavailable(
        f"scikit-learn is not installed{reason}. It fits Gaussian mixtures.",
        remedy="Run pip install 'quipu-rag[mixture]', or set hierarchy_grouping to nearest.",
    )


def _moved_centres(grid: Grid, centres: Grid, n_rounds: int) -> Grid:
    """Return the centres after some rounds; in each, a centre moves to the mean of its nearest rows."""
    for _ in range(n_rounds):
        groups = _nearest(grid, centres)
        is_empty = np.bincount(groups, minlength=len(centres)) == 0
        centres = np.where(is_empty[:, np.newaxis], centres, cluster_means(grid, groups, len(centres)))
    return centres


def _nearest(grid: Grid, centres: Grid) -> Ints:
    """Return the centre with the highest cosine for each row; of equal ones the first.

    Where there are very many centres, they are clustered into sqrt(k) regions, and a row is compared only with the
    centres of its nearest regions. The work then grows with n^1.5.
    """
    if len(centres) <= _MAX_EXACT_CENTRES:
        return _best(grid, centres)
    regions = _moved_centres(centres, centres[:: round(len(centres) ** 0.5)], _REGION_ROUNDS)
    region_of_centre = _best(centres, regions)
    visits = _best_few(grid, regions).ravel()
    by_region = np.argsort(visits, kind="stable")
    starts = np.searchsorted(visits[by_region], np.arange(len(regions) + 1))
    scores, nearest = np.full(len(grid), -np.inf, dtype=np.float32), np.zeros(len(grid), dtype=np.int64)
    for region in range(len(regions)):
        members = np.flatnonzero(region_of_centre == region)
        rows = by_region[starts[region] : starts[region + 1]] // _N_REGIONS
        for start in range(0, len(rows) if len(members) else 0, _ROWS):
            block = rows[start : start + _ROWS]
            products = grid[block] @ centres[members].T
            best = products.argmax(axis=1)
            score, centre = products[np.arange(len(block)), best], members[best]
            is_better = (score > scores[block]) | ((score == scores[block]) & (centre < nearest[block]))
            scores[block[is_better]], nearest[block[is_better]] = score[is_better], centre[is_better]
    return nearest


def _best(grid: Grid, centres: Grid) -> Ints:
    blocks = [(grid[start : start + _ROWS] @ centres.T).argmax(axis=1) for start in range(0, len(grid), _ROWS)]
    return np.concatenate([np.empty(0, dtype=np.int64), *blocks])


def _best_few(grid: Grid, centres: Grid) -> Ints:
    """Return the `_N_REGIONS` centres with the highest cosines for each row; of equal ones the first."""
    nearest = np.empty((len(grid), _N_REGIONS), dtype=np.int64)
    for start in range(0, len(grid), _ROWS):
        products = grid[start : start + _ROWS] @ centres.T
        rows = np.arange(len(products))
        for rank in range(_N_REGIONS):
            nearest[start : start + _ROWS, rank] = best = products.argmax(axis=1)
            products[rows, best] = -np.inf
    return nearest
