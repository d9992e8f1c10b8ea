"""The references one can check by hand, and that a wrong ranking is seen."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from benchmarks.reference.brute_force import MIN_IDF, Agreement, Bm25, BruteForce, is_same, is_tied

AGREEMENT = Agreement(
    dataset="tiny", embedder="words", strategy="naive", reference="brute force", questions=10, same=9, tied=1
)


def test_brute_force_scores_every_vector_above_the_least() -> None:
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)
    scores = BruteForce(["a", "b", "c"], vectors).scores(np.array([1, 0], dtype=np.float32), min_score=0.2)
    assert scores == {"a": 1.0, "c": pytest.approx(0.6)}


def test_bm25_is_that_of_the_book() -> None:
    scores = Bm25({"a": ["knot", "knot", "cord"], "b": ["cord"], "c": ["ink"], "d": ["pen"], "e": ["ink"]}).scores(
        ["knot"]
    )
    mean_length = 7 / 5
    expected = log((5 - 1 + 0.5) / (1 + 0.5)) * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / mean_length))
    assert scores == {"a": pytest.approx(expected)}


def test_a_term_most_texts_have_counts_next_to_nothing() -> None:
    scores = Bm25({"a": ["the"], "b": ["the"], "c": ["ink"]}).scores(["the", "unknown"])
    assert 0 < scores["a"] == scores["b"] < 3 * MIN_IDF


def test_a_ranking_is_the_same_only_in_its_order_and_length() -> None:
    scores = {"a": 0.5, "b": 0.9, "c": 0.5, "d": 0.1}
    assert is_same(["b", "a", "c"], scores, 3)
    assert not is_same(["b", "c", "a"], scores, 3)
    assert not is_same(["b", "a"], scores, 3)


def test_a_tie_is_another_order_of_equal_scores_and_nothing_else() -> None:
    scores = {"a": 0.5, "b": 0.9, "c": 0.5, "d": 0.1}
    assert is_tied(["b", "c", "a"], scores, 3)
    assert is_tied(["b", "c"], scores, 2)
    assert not is_tied(["b", "a", "d"], scores, 3)
    assert not is_tied(["a", "b", "c"], scores, 3)
    assert not is_tied(["b", "a", "a"], scores, 3)
    assert not is_tied(["b", "a"], scores, 3)
    assert not is_tied(["b", "a", "x"], scores, 3)


def test_an_agreement_says_what_differs() -> None:
    assert AGREEMENT.holds
    assert str(AGREEMENT).endswith("naive = brute force to the id on 9 of 10 questions, 1 but for ties")
    broken = replace(AGREEMENT, same=8)
    assert not broken.holds
    assert str(broken).endswith("1 OTHERWISE")
