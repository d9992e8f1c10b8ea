"""Round robin: ranks alone decide, and of equal items the first stays."""

from itertools import pairwise, product

import pytest

from quipu.algo.similarity import n_fitting, round_robin


def test_rankings_are_taken_in_turn() -> None:
    assert round_robin(["abc", "xyz"], str) == ["a", "x", "b", "y", "c", "z"]


def test_a_shorter_ranking_runs_out() -> None:
    assert round_robin(["a", "xyz"], str) == ["a", "x", "y", "z"]


def test_of_equal_items_the_first_stays() -> None:
    assert round_robin([["Ur", "Uruk"], ["uruk", "UR", "Eridu"]], str.casefold) == ["Ur", "uruk", "Eridu"]


def test_nothing_comes_of_nothing() -> None:
    assert round_robin([[], []], str) == []
    assert round_robin([], str) == []


def test_a_ranking_of_weight_two_is_taken_from_twice_as_often() -> None:
    assert round_robin(["abcdef", "uvwxyz"], str, (2, 1)) == [*"abucdvefwxyz"]


@pytest.mark.parametrize("weight", [0.1, 0.3, 1.0, 7.0])
def test_equal_weights_are_turns(weight: float) -> None:
    rankings = ["abcdefghij", "ajx", "uvwxyz"]
    assert round_robin(rankings, str, (weight,) * 3) == round_robin(rankings, str)


def test_a_ranking_of_weight_zero_is_left_out() -> None:
    assert round_robin(["abc", "xyz"], str, (0, 1)) == ["x", "y", "z"]


def test_more_weight_never_moves_an_item_down_past_those_of_other_rankings() -> None:
    ours, theirs = "abcde", "vwcxay"
    fused = [round_robin([ours, theirs], str, (weight, 1.0)) for weight in (0.25, 0.5, 1.0, 1.5, 2.0, 5.0)]
    others = [each for each in theirs if each not in ours]
    for (lighter, heavier), our, other in product(pairwise(fused), ours, others):
        if lighter.index(our) < lighter.index(other):
            assert heavier.index(our) < heavier.index(other)
    assert fused[0] != fused[-1]


def test_everything_fits_to_the_last_token() -> None:
    assert n_fitting([3, 4, 3], 10) == 3


def test_a_smaller_item_does_not_overtake_one_ranked_above_it() -> None:
    assert n_fitting([3, 8, 1], 10) == 1


def test_nothing_fits_into_nothing() -> None:
    assert n_fitting([1], 0) == 0
    assert n_fitting([1], -5) == 0
    assert n_fitting([], 10) == 0
