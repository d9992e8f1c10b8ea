"""A budget cuts a ranking at the first thing that does not fit."""

from quipu.algo.budget import n_fitting


def test_everything_fits_to_the_last_token() -> None:
    assert n_fitting([3, 4, 3], 10) == 3


def test_a_smaller_item_does_not_overtake_one_ranked_above_it() -> None:
    assert n_fitting([3, 8, 1], 10) == 1


def test_nothing_fits_into_nothing() -> None:
    assert n_fitting([1], 0) == 0
    assert n_fitting([1], -5) == 0
    assert n_fitting([], 10) == 0
