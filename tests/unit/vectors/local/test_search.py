"""Ranking the rows of a scope, exactly or through sketches."""

import numpy as np
import pytest

from quipu.algo.similarity import exact_scores
from quipu.ports.store import VectorBlock
from quipu.vectors.local.segments import SearchDepth, SearchScope, SpaceState, initial_state, rank
from tests.unit.vectors.local.ledger import clustered

DATA = clustered(2_000, 70).astype(np.float16)
QUERY = clustered(1, 70, seed=1)[0]
SCORES = exact_scores(DATA, QUERY)
BEST = np.argsort(-SCORES)


def state(n_best_gone: int = 0) -> SpaceState:
    """Return a state of all rows, numbered from 10, without those that are best for the query."""
    rows = np.arange(10, 10 + len(DATA))
    return initial_state(1, VectorBlock(rows=rows, vectors=DATA)).without(rows[BEST[:n_best_gone]])


def depth(n: int, *, min_score: float = -1.0, exact_below: int = 0) -> SearchDepth:
    return SearchDepth(n=n, min_score=min_score, exact_below=exact_below)


@pytest.mark.parametrize("exact_below", [0, 5_000])
@pytest.mark.parametrize("n_deleted", [0, 5, 300])
def test_the_best_rows_that_are_not_deleted_are_ranked(exact_below: int, n_deleted: int) -> None:
    ranked = rank(SearchScope(state=state(n_deleted), allowed=None), QUERY, depth(10, exact_below=exact_below))
    expected = np.sort(BEST[n_deleted : n_deleted + 10])
    assert ranked.rows.tolist() == (expected + 10).tolist()
    assert ranked.scores.tolist() == SCORES[expected].tolist()
    assert not ranked.is_exhausted


@pytest.mark.parametrize("exact_below", [0, 5_000])
def test_the_best_of_the_allowed_rows_are_ranked(exact_below: int) -> None:
    allowed = np.sort(BEST[3:1_503:2])
    ranked = rank(SearchScope(state=state(), allowed=allowed), QUERY, depth(4, exact_below=exact_below))
    assert ranked.rows.tolist() == (np.sort(BEST[[3, 5, 7, 9]]) + 10).tolist()


def test_a_ranking_is_exhausted_by_the_least_score_or_the_last_row() -> None:
    scope = SearchScope(state=state(), allowed=None)
    least = float(SCORES[BEST[5]])
    assert rank(scope, QUERY, depth(10, min_score=least)).is_exhausted
    assert not rank(scope, QUERY, depth(6, min_score=least)).is_exhausted
    assert rank(scope, QUERY, depth(2_000)).is_exhausted
    assert len(rank(scope, QUERY, depth(2_000)).rows) == 2_000
