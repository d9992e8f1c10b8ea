"""Search: the best rows for one query, exactly where there are few, through sketches where there are many."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quipu.algo.similarity import largest_with_ties, sketch_query, smallest_with_ties, widen
from quipu.vectors.local.state import State

_MIN_CANDIDATES = 400
_CANDIDATES_PER_RESULT = 32  # 99 % of the true results are found at 10 to 120 results, measured on sentences
_ROWS_PER_CANDIDATE = 500
_FARTHEST = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The rows a search may find: of `state`, those that are not deleted, or those at `allowed` positions (rising)."""

    state: State
    allowed: npt.NDArray[np.int64] | None

    def __len__(self) -> int:
        return self.state.n_live if self.allowed is None else len(self.allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Rows with their scores, rising by row; `exhausted` says that no deeper search finds more."""

    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    exhausted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How far to search: the best `n` rows with all that equal the last, of at least `min_score`.

    Scopes of up to `exact_below` rows are scored whole.
    """

    n: int
    min_score: float
    exact_below: int


def rank(scope: Scope, query: npt.NDArray[np.float32], depth: Depth) -> Ranked:
    """Return the best rows of a scope that is not empty; a function of the set of its rows, not of their order."""
    table = scope.state.table
    if len(scope) > depth.exact_below:
        positions = _candidates(scope, query, depth.n)
        scores = table.scores_at(positions, query)
    elif scope.allowed is None:
        positions = scope.state.live()
        scores = table.scores(query)[positions]
    else:
        positions = scope.allowed
        scores = table.scores_at(positions, query)
    best = largest_with_ties(scores, depth.n)
    good = best[scores[best] >= depth.min_score]
    return Ranked(
        rows=table.rows_at(positions[good]),
        scores=scores[good],
        exhausted=len(good) < len(best) or depth.n >= len(scope),
    )


def score_all(scope: Scope, query: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the rows of a scope, rising, and the score of each."""
    table = scope.state.table
    if scope.allowed is None:
        positions = scope.state.live()
        return table.rows_at(positions), table.scores(query)[positions]
    return table.rows_at(scope.allowed), table.scores_at(scope.allowed, query)


def rank_pairs(scope: Scope, rows: npt.NDArray[np.int64], min_score: float) -> list[tuple[int, int, float]]:
    """Return the pairs of one of `rows` with any row of the scope, itself too, that score at least `min_score`.

    Where both are among `rows`, the pair is there both ways round. A matrix product finds all that may be, an exact
    score tells which are.
    """
    table = scope.state.table
    wanted = table.locate(rows)
    queries = table.data_at(wanted)
    places, of = table.near_pairs(queries, min_score)
    is_here = np.isin(places, scope.state.live() if scope.allowed is None else scope.allowed)
    places, of = places[is_here], of[is_here]
    found: list[tuple[int, int, float]] = []
    for i in np.unique(of).tolist():
        near = np.sort(places[of == i])
        scores = table.scores_at(near, widen(queries[i : i + 1])[0])
        row = int(table.rows_at(wanted[i : i + 1])[0])
        pairs = zip(table.rows_at(near).tolist(), scores.tolist(), strict=True)
        found += [(row, other, score) for other, score in pairs if score >= min_score]
    return found


def _candidates(scope: Scope, query: npt.NDArray[np.float32], n_results: int) -> npt.NDArray[np.int64]:
    """Return the positions of the rows whose sketches are nearest, so many that the best are among them."""
    distances = scope.state.table.distances(sketch_query(query))
    n_candidates = max(_MIN_CANDIDATES, n_results * _CANDIDATES_PER_RESULT, len(scope) // _ROWS_PER_CANDIDATE)
    if scope.allowed is not None:
        return scope.allowed[smallest_with_ties(distances[scope.allowed], n_candidates)]
    if n_candidates >= len(scope):
        return scope.state.live()
    distances[scope.state.gone] = _FARTHEST
    return smallest_with_ties(distances, n_candidates)
