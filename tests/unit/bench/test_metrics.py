"""Metrics one can check by hand."""

import pytest

from quipu.bench.metrics import all_at, covers_answer, mean_percent, normalised, recall_at

GOLD = (frozenset({"a"}), frozenset({"b", "c"}))


def test_recall_counts_groups_with_a_passage_among_the_first() -> None:
    assert [recall_at(k, ["x", "c", "b", "a"], GOLD) for k in (1, 2, 3, 4)] == [0.0, 0.5, 0.5, 1.0]


def test_all_needs_every_group() -> None:
    assert not all_at(3, ["x", "c", "b", "a"], GOLD)
    assert all_at(4, ["x", "c", "b", "a"], GOLD)


@pytest.mark.parametrize(
    ("text", "answers", "covered"),
    [
        ("He went to the U.S. army.", ["US Army", "the u s army"], True),
        ("It was Boeing's plane.", ["Boeing"], True),
        ("It was cold in Norway.", ["Nor"], False),
        ("沈括晚年住在梦溪园。", ["梦溪园"], True),
        ("Anything at all.", ["the", ""], False),
        ("Anything at all.", [], False),
    ],
)
def test_an_answer_is_covered_as_whole_words(text: str, answers: list[str], covered: bool) -> None:
    assert covers_answer(text, answers) is covered


def test_normal_form_drops_case_punctuation_and_articles() -> None:
    assert normalised("  The “Mainz”  Psalter, a book!") == "mainz psalter book"


def test_the_interval_holds_the_mean_and_is_the_same_each_time() -> None:
    values = [0.0, 1.0, 1.0, 0.5] * 10
    mean = mean_percent(values)
    assert mean.value == pytest.approx(62.5)
    assert mean.low < mean.value < mean.high
    assert mean == mean_percent(values)
    assert (mean_percent([1.0, 1.0]).low, mean_percent([1.0, 1.0]).high) == (100.0, 100.0)


def test_no_values_have_no_mean() -> None:
    assert str(mean_percent([])) == "–"
    assert str(mean_percent([1.0])) == "100.0 [100.0, 100.0]"
