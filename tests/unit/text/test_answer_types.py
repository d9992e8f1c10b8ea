"""Tests of answer types: which of the types there are a question asks for."""

import pytest

from quipu.text.answer_types import answer_types

_TYPES = ("Concept", "Data", "Event", "Location", "Organization", "Other", "Person")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who founded the bank?", ("Organization", "Person")),
        ("Where was he born?", ("Location",)),
        ("Which city did he rule?", ("Location",)),
        ("When did it end?", ("Data", "Event")),
        ("How many ships sailed?", ("Data",)),
        ("Which organization was founded there?", ("Organization",)),
        ("Why did it fail?", ()),
        ("Кто основал банк?", ("Organization", "Person")),
        ("Где он родился?", ("Location",)),
        ("Когда закончилась война?", ("Data", "Event")),
        ("谁建立了银行？", ("Organization", "Person")),
        ("他在哪里出生？", ("Location",)),
        ("战争什么时候结束？", ("Data", "Event")),
    ],
)
def test_the_words_of_a_question_tell_the_type_of_its_answer(question: str, expected: tuple[str, ...]) -> None:
    assert answer_types(question, _TYPES) == expected


def test_types_in_other_languages_and_cases_are_known() -> None:
    assert answer_types("Кто это?", ("ПЕРСОНА", "МЕСТО")) == ("ПЕРСОНА",)
    assert answer_types("他在哪里？", ("人物", "地点")) == ("地点",)
    assert answer_types("Who is it?", ("geo", "person")) == ("person",)


def test_only_types_there_are_come_out() -> None:
    assert answer_types("Who is it?", ("Ship",)) == ()
    assert answer_types("Who is it?", ()) == ()
