"""Mixture: vectors grouped by likeness, some twenty to a group, as a function of the set of keys and vectors alone.

Nothing depends on order, history, processor or the number of threads: unit vectors are put on a grid of whole numbers
so coarse that float32 adds their products without rounding, in whatever order a library adds them.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from quipu.errors import Unavailable
from quipu.model.ids import digest

Ints = npt.NDArray[np.int64]
Grid = npt.NDArray[np.float32]  # [n, d], whole numbers; every row has a norm of about _NORM, or is zero
Grouping = Callable[[Sequence[str], Grid, int], Ints]  # keys, vectors, layer from 1: places

MEMBERS = 20  # of a group, on average (LeanRAG: a twentieth as many groups as there are things)
_ROUNDS = 1  # with each more, groups are better and one more key changes more of them: see docs/adr/0026
_ROUNDS_OF_DISTRICTS = 3
_NORM = 4_000.0  # products of two rows, and so all their partial sums, stay below 2^24
_FRACTION = 64.0  # means are rounded to multiples of 1 / 64, so that their squares add up exactly in float64
_SEARCHED_WHOLE = 5_000  # centres: up to a hundred thousand vectors, which takes no longer than to search few
_N_NEAR = 8  # districts searched for each vector
_ROWS = 2_048
_MAX_BIC, _LEAST_CHANGE = 50, 1e-3  # LeanRAG: 1 to 49 components, until the criterion hardly changes


def on_grid(vectors: npt.NDArray[np.float16] | npt.NDArray[np.float64]) -> Grid:
    """Return rows [n, d] scaled to one norm and rounded to whole numbers: float16 unit vectors, or means of a grid's.

    A component moves by 1 / 8000 of the norm at most. Squares and their sums are exact, roots correctly rounded.
    """
    grid = np.empty(vectors.shape, dtype=np.float32)
    for start in range(0, len(vectors), _ROWS):
        exact = vectors[start : start + _ROWS].astype(np.float64)
        norms = np.sqrt(np.square(exact).sum(axis=1, keepdims=True))
        grid[start : start + _ROWS] = np.rint(exact / np.where(norms > 0, norms, 1) * _NORM)
    return grid


def means(grid: Grid, groups: Ints, n_groups: int) -> Grid:
    """Return the direction of each group's mean, [n_groups, d]; zero where a group [n] -> number has no member."""
    order = np.argsort(groups, kind="stable")
    present, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    sums = np.zeros((n_groups, grid.shape[1]), dtype=np.float64)
    if len(present):
        sums[present] = np.add.reduceat(grid[order], starts, axis=0, dtype=np.float64)
        sums[present] = np.rint(sums[present] / sizes[:, np.newaxis] * _FRACTION) / _FRACTION
    return on_grid(sums)


def nearest_centres(keys: Sequence[str], grid: Grid, layer: int) -> Ints:
    """Return, for each row, the place of the one its group is known by; rows are ordered by key.

    About every twentieth key is a centre, as its digest says. Centres move to the mean of what is nearest,
    once, and each row joins the nearest. One key more is a centre or moves one a little: few groups change.
    Source: J. MacQueen, Some Methods for Classification (1967), with the start chosen by digests.
    """
    marks = np.array([int(digest("centre", str(layer), key)[:15], 16) for key in keys], dtype=np.int64)
    chosen = np.flatnonzero(marks < 16**15 // MEMBERS)
    chosen = chosen if len(chosen) else np.argsort(marks, kind="stable")[:1]
    centres = _settled(grid, grid[chosen], _ROUNDS)
    return np.asarray(chosen[_nearest(grid, centres)], dtype=np.int64)


def gaussian_mixture(keys: Sequence[str], grid: Grid, _layer: int) -> Ints:
    """Return, for each row, the first of its group under a Gaussian mixture of max(n // 20, best by BIC) components.

    LeanRAG's grouping without UMAP, for comparison: far slower, and the same on one machine only. Components are
    spherical, for twenty vectors say nothing of a covariance; each belongs to the likeliest. Raises Unavailable where
    scikit-learn is not installed.
    """
    mixture = _gaussian_mixture_class()
    vectors = grid.astype(np.float64) / _NORM

    def fitted(n_groups: int) -> Any:
        return mixture(n_groups, covariance_type="spherical", n_init=1, random_state=0).fit(vectors)

    best, lowest, last = 1, np.inf, 0.0
    for n_groups in range(1, min(_MAX_BIC, len(keys) + 1)):
        criterion = float(fitted(n_groups).bic(vectors))
        if criterion < lowest:
            best, lowest = n_groups, criterion
        if last and abs(criterion - last) < _LEAST_CHANGE * abs(last):
            break
        last = criterion
    groups = fitted(max(len(keys) // MEMBERS, best)).predict(vectors)
    _, firsts, members = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(firsts[members], dtype=np.int64)


def check_gaussian_mixture() -> None:
    """Raise Unavailable where scikit-learn is not installed; it is not imported, for that takes a second or two."""
    if find_spec("sklearn") is None:
        raise _not_installed()


def _gaussian_mixture_class() -> Any:
    try:
        from sklearn.mixture import GaussianMixture  # noqa: PLC0415 - optional driver
    except ImportError as error:
        raise _not_installed(f" ({error})") from error
    return GaussianMixture


def _not_installed(why: str = "") -> Unavailable:
    return Unavailable(
        f"scikit-learn is not installed{why}: it fits Gaussian mixtures.",
        remedy="Run pip install 'quipu-rag[mixture]', or set hierarchy_grouping to nearest.",
    )


def _settled(grid: Grid, centres: Grid, n_rounds: int) -> Grid:
    """Return the centres after some rounds in each of which they move to the mean of the rows nearest to them."""
    for _ in range(n_rounds):
        groups = _nearest(grid, centres)
        is_empty = np.bincount(groups, minlength=len(centres)) == 0
        centres = np.where(is_empty[:, np.newaxis], centres, means(grid, groups, len(centres)))
    return centres


def _nearest(grid: Grid, centres: Grid) -> Ints:
    """Return the centre with the greatest cosine to each row, of equal ones the first.

    Of very many, those of the few districts nearest to a row are compared alone: work then grows with n^1.5. Districts
    are centres grouped about sqrt(k) of them in the same way.
    """
    if len(centres) <= _SEARCHED_WHOLE:
        return _best(grid, centres)
    capitals = _settled(centres, centres[:: round(len(centres) ** 0.5)], _ROUNDS_OF_DISTRICTS)
    district = _best(centres, capitals)
    visits = _best_few(grid, capitals).ravel()
    by_district = np.argsort(visits, kind="stable")
    starts = np.searchsorted(visits[by_district], np.arange(len(capitals) + 1))
    scores, found = np.full(len(grid), -np.inf, dtype=np.float32), np.zeros(len(grid), dtype=np.int64)
    for number in range(len(capitals)):
        members = np.flatnonzero(district == number)
        rows = by_district[starts[number] : starts[number + 1]] // _N_NEAR
        for start in range(0, len(rows) if len(members) else 0, _ROWS):
            some = rows[start : start + _ROWS]
            products = grid[some] @ centres[members].T
            best = products.argmax(axis=1)
            score, centre = products[np.arange(len(some)), best], members[best]
            is_better = (score > scores[some]) | ((score == scores[some]) & (centre < found[some]))
            scores[some[is_better]], found[some[is_better]] = score[is_better], centre[is_better]
    return found


def _best(grid: Grid, centres: Grid) -> Ints:
    blocks = [(grid[start : start + _ROWS] @ centres.T).argmax(axis=1) for start in range(0, len(grid), _ROWS)]
    return np.concatenate([np.empty(0, dtype=np.int64), *blocks])


def _best_few(grid: Grid, centres: Grid) -> Ints:
    """Return the `_N_NEAR` centres with the greatest cosines to each row, of equal ones the first."""
    found = np.empty((len(grid), _N_NEAR), dtype=np.int64)
    for start in range(0, len(grid), _ROWS):
        products = grid[start : start + _ROWS] @ centres.T
        rows = np.arange(len(products))
        for place in range(_N_NEAR):
            found[start : start + _ROWS, place] = best = products.argmax(axis=1)
            products[rows, best] = -np.inf
    return found
