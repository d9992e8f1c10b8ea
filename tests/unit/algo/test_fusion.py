"""Round robin: ranks alone decide, and of equal items the first stays."""

from quipu.algo.fusion import round_robin


def test_rankings_are_taken_in_turn() -> None:
    assert round_robin(["abc", "xyz"], str) == ["a", "x", "b", "y", "c", "z"]


def test_a_shorter_ranking_runs_out() -> None:
    assert round_robin(["a", "xyz"], str) == ["a", "x", "y", "z"]


def test_of_equal_items_the_first_stays() -> None:
    assert round_robin([["Ur", "Uruk"], ["uruk", "UR", "Eridu"]], str.casefold) == ["Ur", "uruk", "Eridu"]


def test_nothing_comes_of_nothing() -> None:
    assert round_robin([[], []], str) == []
    assert round_robin([], str) == []
