"""What a model said on the way: read without trust."""

import json

import pytest

from quipu.retrieve.steps.model_replies import MAX_POINTS, MAX_TEXT, read_partial_answer, read_points, read_rating


def _points(*points: object) -> str:
    return json.dumps({"points": list(points)})


def test_points_are_read_with_scores_within_bounds_and_numbers_that_were_shown() -> None:
    reply = _points(
        {"text": " One. ", "score": 250, "reports": [1, "[2]", 2, 9, 0, -1, True, 1.5, None]},
        {"text": "Two.", "score": "85 of 100", "reports": "Report 3"},
        {"text": "None.", "score": 0, "reports": [1]},
        {"text": "Less.", "score": -5},
        {"text": "", "score": 9},
        {"text": 7, "score": 9},
        {"score": 9},
        "Three.",
        None,
    )
    found = read_points(reply, 3)
    assert found is not None
    assert [(each.text, each.score, each.numbers) for each in found] == [("One.", 100, (1, 2)), ("Two.", 85, (3,))]


def test_a_bare_list_is_taken_for_points_and_floods_are_cut() -> None:
    many = [{"text": "x" * 9_000, "score": 1, "reports": []}] * 50
    found = read_points(json.dumps(many), 1)
    assert found is not None
    assert (len(found), len(found[0].text)) == (MAX_POINTS, MAX_TEXT)


@pytest.mark.parametrize("reply", ["", "no", "{}", '{"points": {}}', "null", "[", '{"points": [', "7"])
def test_what_holds_no_list_is_told_from_an_empty_one(reply: str) -> None:
    assert read_points(reply, 3) is None
    assert read_points('{"points": []}', 3) == []


def test_a_reply_that_was_cut_off_keeps_its_whole_points() -> None:
    found = read_points('{"points": [{"text": "One.", "score": 5, "reports": [1]}, {"text": "Tw', 1)
    assert found is not None and [each.text for each in found] == ["One."]


def test_an_answer_is_read_with_its_questions_on_one_line_each() -> None:
    reply = json.dumps({"answer": "So.", "score": 5, "sources": [2], "follow_ups": ["Who\n is it?", "", 7, "x" * 600]})
    found = read_partial_answer(reply, 2)
    assert found is not None and found.statement is not None
    assert (found.statement.text, found.statement.numbers, found.follow_ups) == ("So.", (2,), ("Who is it?",))


def test_an_answer_worth_nothing_still_has_questions() -> None:
    found = read_partial_answer('{"answer": "I do not know.", "score": 0, "follow_ups": ["Who?"]}', 2)
    assert found is not None and (found.statement, found.follow_ups) == (None, ("Who?",))


@pytest.mark.parametrize("reply", ["", "no", "[]", '{"text": "So."}', "null"])
def test_a_reply_without_answer_or_questions_is_none(reply: str) -> None:
    assert read_partial_answer(reply, 2) is None


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ('{"rating": 3}', 3),
        ('{"rating": "4 of 5"}', 4),
        ("2", 2),
        ("none", None),
        ('{"rating": true}', None),
        ("", None),
    ],
)
def test_a_rating_is_a_number_or_nothing(reply: str, rating: float | None) -> None:
    assert read_rating(reply) == rating
