"""Tests of questions: a filter takes what people write, and says what it cannot take."""

import re

import pytest

from quipu.errors import InvalidInput
from quipu.model.query import Condition, Filter

_YEAR = Condition(field="year", operator=">", value="1500")


def test_parts_of_a_filter_may_be_lists() -> None:
    listed = Filter(documents=["a", "b"], exclude=["c"], where=[_YEAR])  # type: ignore[arg-type]
    same = Filter(documents=("a", "b"), exclude=("c",), where=(_YEAR,))
    assert listed == same
    assert hash(listed) == hash(same)
    assert Filter(documents=[]).is_empty()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        {"documents": "letters/1"},
        {"exclude": "letters/1"},
        {"where": _YEAR},
        {"where": "year > 1500"},
        {"documents": None},
        {"documents": [["a"]]},
        {"exclude": [1]},
        {"where": [{"field": "year"}]},
    ],
)
def test_what_a_part_of_a_filter_cannot_hold_is_refused(given: dict[str, object]) -> None:
    ((part, value),) = given.items()
    with pytest.raises(InvalidInput, match=f"`{part}`.*{re.escape(repr(value))}.*Write {part}="):
        Filter(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [["Asia", "Europe"], 1500])
def test_a_value_that_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match=f"{re.escape(repr(value))}.*Write value="):
        Condition(field="region", operator="in", value=value)  # type: ignore[arg-type]
