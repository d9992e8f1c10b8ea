"""Ranking the rows of a scope, exactly or through sketches."""

import numpy as np
import pytest

from quipu.algo.similarity import exact_scores
from quipu.ports.store import VectorBlock
from quipu.vectors.local.search import Depth, Scope, rank
from quipu.vectors.local.state import State, fresh
from tests.unit.vectors.local.ledger import clustered

DATA = clustered(2_000, 70).astype(np.float16)
QUERY = clustered(1, 70, seed=1)[0]
SCORES = exact_scores(DATA, QUERY)
BEST = np.argsort(-SCORES)


def state(n_best_gone: int = 0) -> State:
    """Return a state of all rows, numbered from 10, without those that are best for the query."""
    rows = np.arange(10, 10 + len(DATA))
    return fresh(1, VectorBlock(rows=rows, data=DATA)).without(rows[BEST[:n_best_gone]])


def depth(n: int, *, min_score: float = -1.0, exact_below: int = 0) -> Depth:
    return Depth(n=n, min_score=min_score, exact_below=exact_below)


@pytest.mark.parametrize("exact_below", [0, 5_000])
@pytest.mark.parametrize("n_gone", [0, 5, 300])
def test_the_best_rows_that_are_not_deleted_are_ranked(exact_below: int, n_gone: int) -> None:
    ranked = rank(Scope(state=state(n_gone), allowed=None), QUERY, depth(10, exact_below=exact_below))
    expected = np.sort(BEST[n_gone : n_gone + 10])
    assert ranked.rows.tolist() == (expected + 10).tolist()
    assert ranked.scores.tolist() == SCORES[expected].tolist()
    assert not ranked.exhausted


@pytest.mark.parametrize("exact_below", [0, 5_000])
def test_the_best_of_the_allowed_rows_are_ranked(exact_below: int) -> None:
    allowed = np.sort(BEST[3:1_503:2])
    ranked = rank(Scope(state=state(), allowed=allowed), QUERY, depth(4, exact_below=exact_below))
    assert ranked.rows.tolist() == (np.sort(BEST[[3, 5, 7, 9]]) + 10).tolist()


def test_a_ranking_is_exhausted_by_the_least_score_or_the_last_row() -> None:
    scope = Scope(state=state(), allowed=None)
    least = float(SCORES[BEST[5]])
    assert rank(scope, QUERY, depth(10, min_score=least)).exhausted
    assert not rank(scope, QUERY, depth(6, min_score=least)).exhausted
    assert rank(scope, QUERY, depth(2_000)).exhausted
    assert len(rank(scope, QUERY, depth(2_000)).rows) == 2_000
