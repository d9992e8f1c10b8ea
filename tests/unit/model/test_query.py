"""Queries: a filter accepts lists, and names invalid values."""

import re

import pytest

from quipu.errors import InvalidInput
from quipu.model.document import is_date
from quipu.model.query import Condition, Filter

_YEAR = Condition(field="year", operator=">", value="1500")


def test_a_filter_accepts_lists() -> None:
    listed = Filter(documents=["a", "b"], exclude=["c"], where=[_YEAR])  # type: ignore[arg-type]
    same = Filter(documents=("a", "b"), exclude=("c",), where=(_YEAR,))
    assert listed == same
    assert hash(listed) == hash(same)
    assert Filter(documents=[]).is_empty()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "parts",
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
def test_a_filter_part_of_the_wrong_type_is_refused(parts: dict[str, object]) -> None:
    ((name, value),) = parts.items()
    with pytest.raises(InvalidInput, match=f"`{name}`.*{re.escape(repr(value))}.*Write {name}="):
        Filter(**parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [["Asia", "Europe"], 1500])
def test_a_condition_value_that_is_not_a_string_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match=f"{re.escape(repr(value))}.*Write value="):
        Condition(field="region", operator="in", value=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["1907", "0000", "1907-03", "2024-02-29", "0000-02-29", "2026-02-28T10:00"])
def test_dates_of_the_calendar(text: str) -> None:
    assert is_date(text)


@pytest.mark.parametrize("text", ["", "190", "1907-13", "1907-00", "2026-02-31", "2025-02-29", "1907-3", "yesterday"])
def test_what_is_no_date_of_the_calendar(text: str) -> None:
    assert not is_date(text)
