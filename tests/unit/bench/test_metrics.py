"""Metrics one can check by hand."""

import pytest

from quipu.bench.metrics import (
    all_at,
    best_of,
    covers_answer,
    is_exact,
    mean_percent,
    ndcg_at,
    normalised,
    recall_at,
    reciprocal_rank,
    refusal_curve,
    token_f1,
)

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


def test_the_reciprocal_rank_is_that_of_the_first_gold_passage() -> None:
    assert reciprocal_rank(["x", "c", "a"], GOLD) == 0.5
    assert reciprocal_rank(["x", "y"], GOLD) == 0.0


def test_ndcg_counts_each_group_once_and_early_ranks_more() -> None:
    assert ndcg_at(10, ["a", "b"], GOLD) == pytest.approx(1.0)
    assert ndcg_at(10, ["b", "c", "a"], GOLD) == pytest.approx((1 + 1 / 2) / (1 + 1 / 1.5849625))
    assert ndcg_at(1, ["a", "b"], GOLD) == 1.0
    assert ndcg_at(10, ["x"], GOLD) == 0.0


def test_f1_and_exact_match_take_the_nearest_answer() -> None:
    assert is_exact("The Venice.", ["Rome", "venice"]) and not is_exact("In Venice", ["Venice"])
    assert token_f1("in Venice", ["Rome", "Venice"]) == pytest.approx(2 / 3)
    assert token_f1("Rome", ["Venice"]) == token_f1("Rome", []) == 0.0
    assert token_f1("梦溪园中", ["梦溪园"]) == pytest.approx(6 / 7)


def test_the_best_is_surer_the_greater_its_lead() -> None:
    sure = best_of({"a": [0.0] * 40, "b": [1.0, 0.5] * 20})
    assert (sure.name, sure.share) == ("b", 100.0)
    assert list(sure.lead) == ["a"] and sure.lead["a"].value == 75.0 and sure.lead["a"].low > 0
    unsure = best_of({"a": [1.0, 0.0] * 20, "b": [0.0, 1.0] * 19 + [1.0, 1.0]})
    assert unsure.name == "b" and 40 < unsure.share < 80
    assert unsure.lead["a"].low < 0 < unsure.lead["a"].high
    assert unsure == best_of({"a": [1.0, 0.0] * 20, "b": [0.0, 1.0] * 19 + [1.0, 1.0]})


def test_of_equal_names_the_first_is_the_best_and_they_share_the_resamples() -> None:
    best = best_of({"a": [1.0, 0.0], "b": [1.0, 0.0]})
    assert (best.name, best.share) == ("a", 50.0)
    assert best_of({"a": [1.0]}).lead == {}


def test_the_curve_of_refusals_counts_what_each_support_would_refuse() -> None:
    answerable = [{"answered": 1.0, "support": 1.8}, {"answered": 1.0}, {"answered": 0.0, "support": 0.95}]
    unanswerable = [{"refused": 1.0, "support": 0.0}, {"refused": 0.0, "support": 1.25}]
    curve = refusal_curve([*answerable, *unanswerable])
    assert curve is not None
    shares = {point.needed: (point.unanswerable, round(point.answerable)) for point in curve.points}
    assert (shares[0.9], shares[1.0], shares[1.3], shares[2.0]) == ((50, 0), (50, 33), (100, 33), (100, 67))
    assert curve.separation == pytest.approx(100 * 5 / 6)  # of 6 pairs, only 0.95 and 1.25 are in the wrong order


def test_there_is_no_curve_without_both_kinds_of_question_or_without_support() -> None:
    assert refusal_curve([{"answered": 1.0, "support": 1.8}]) is None
    assert refusal_curve([{"answered": 1.0}, {"refused": 1.0}]) is None
