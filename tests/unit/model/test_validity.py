"""Validity: dates that documents state, and which version of a document holds at a date."""

import pytest

from quipu.errors import InvalidInput
from quipu.model.document import Metadata, stated_end, stated_start
from quipu.model.query import Filter
from quipu.model.validity import VersionTimes, as_days, as_moment, holds_at, version_at


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2019", "2019"),
        ("2019-03", "2019-03"),
        ("2019-03-31", "2019-03-31"),
        ("2019-03-31T12:00", "2019-03-31T12:00:00"),
        ("2019-03-31 12:00:00Z", "2019-03-31T12:00:00"),
        ("2019-03-31T12:00+02:00", "2019-03-31T10:00:00"),
    ],
)
def test_times_of_as_of_are_in_utc(text: str, moment: str) -> None:
    assert as_moment(text) == moment
    assert Filter(as_of=text).as_of == moment


@pytest.mark.parametrize("text", ["yesterday", "2019-02-30", "2019-03-31T25:00", "2019-3"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"is not a date.*Write 2019"):
        Filter(as_of=text)


@pytest.mark.parametrize(
    ("metadata", "start", "end"),
    [
        ({}, "", ""),
        ({"date": "1907"}, "1907", ""),
        ({"date": "1907", "valid_from": "1910-05", "valid_until": 1912}, "1910-05", "1912"),
        ({"valid_from": "spring", "date": ("March", "1907-03")}, "1907-03", ""),
    ],
)
def test_a_document_states_its_dates_in_metadata(metadata: Metadata, start: str, end: str) -> None:
    assert (stated_start(metadata), stated_end(metadata)) == (start, end)


@pytest.mark.parametrize(
    ("as_of", "holds"),
    [
        ("2017", False),
        ("2018-02", False),
        ("2018-03", True),
        ("2019", True),
        ("2019-12-31T23:59:59", True),
        ("2020", False),
    ],
)
def test_a_date_means_the_end_of_it_and_a_last_date_is_included(as_of: str, holds: bool) -> None:
    assert holds_at("2018-03", "2019", as_of) is holds


_ADDED, _UPDATED, _GONE = "2025-01-01T09:00:00", "2025-06-01T09:00:00", "2025-09-01T09:00:00"


@pytest.mark.parametrize(
    ("as_of", "place"), [("2024", None), ("2025-01", 0), ("2025-05-31", 0), ("2025-06-01", 1), ("2025-09", None)]
)
def test_without_dates_a_version_holds_while_the_index_has_it(as_of: str, place: int | None) -> None:
    versions = [
        VersionTimes(since=_ADDED, ended_at=_UPDATED),
        VersionTimes(since=_UPDATED, ended_at=_GONE, is_removed=True),
    ]
    assert version_at(versions, as_of) == place


@pytest.mark.parametrize(("as_of", "place"), [("2017", None), ("2018", 0), ("2020", 0), ("2021", 1), ("2025", 1)])
def test_a_later_date_says_when_a_version_replaced_the_one_before(as_of: str, place: int | None) -> None:
    versions = [
        VersionTimes(since=_ADDED, ended_at=_UPDATED, start="2018"),
        VersionTimes(since=_UPDATED, start="2021"),
    ]
    assert version_at(versions, as_of) == place


@pytest.mark.parametrize(("as_of", "place"), [("2018", 0), ("2025-05", 0), ("2025-06", 1)])
def test_an_unchanged_date_says_nothing_about_when_a_document_changed(as_of: str, place: int) -> None:
    versions = [
        VersionTimes(since=_ADDED, ended_at=_UPDATED, start="2018"),
        VersionTimes(since=_UPDATED, start="2018"),
    ]
    assert version_at(versions, as_of) == place


def test_a_version_with_a_date_to_come_leaves_the_one_before_until_then() -> None:
    versions = [VersionTimes(since=_ADDED, ended_at=_UPDATED), VersionTimes(since=_UPDATED, start="2026")]
    assert [version_at(versions, date) for date in ("2025", "2026")] == [0, 1]


def test_nothing_holds_after_the_last_date_of_a_version_or_between_a_removal_and_a_return() -> None:
    ended = [VersionTimes(since=_ADDED, start="2018", end="2019")]
    assert [version_at(ended, date) for date in ("2019", "2020")] == [0, None]
    returned = [VersionTimes(since=_ADDED, ended_at=_UPDATED, is_removed=True, start="2018"), VersionTimes(since=_GONE)]
    assert [version_at(returned, date) for date in ("2025-05", "2025-07", "2025-09")] == [0, None, 1]


def test_days_between_two_dates_include_the_whole_of_both() -> None:
    first, last = as_days("2019-03-31T12:00", "2019-04")
    assert [day for day in ("2019-03-30", "2019-03-31", "2019-04-30", "2019-05-01") if first <= day <= last] == [
        "2019-03-31",
        "2019-04-30",
    ]
    assert as_days("", "") == ("", "")
