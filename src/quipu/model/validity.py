"""Validity: since when and until when what a document says holds, and what "as of a date" means.

Dates are ISO 8601 texts, compared as texts: a year, a month or a day stands for all of it. An empty text is no date.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from quipu.errors import InvalidInput
from quipu.model.document import is_date

END = "~"  # sorts after every digit and sign of a date: "2019~" is after all of 2019


def as_moment(text: str) -> str:
    """Return a date for `as_of`: a year, month or day as it is, a time in UTC; a time without a zone is in UTC.

    Raises InvalidInput for what is neither.
    """
    if is_date(text):
        if len(text) <= len("2019-03-31"):
            return text
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            moment = moment.astimezone(UTC) if moment.tzinfo else moment
            return moment.replace(tzinfo=None).isoformat()
    raise InvalidInput(
        f"{text!r} is not a date.", remedy="Write 2019, 2019-03, 2019-03-31 or 2019-03-31T12:00; times are in UTC."
    )


def as_days(since: str, until: str) -> tuple[str, str]:
    """Return bounds of days between two dates, which both are within; "" for no limit. Raises as `as_moment`."""
    first, last = (as_moment(text)[: len("2019-03-31")] if text else "" for text in (since, until))
    return first, last + END if last else ""


def holds_at(start: str, end: str, as_of: str) -> bool:
    """Return whether what holds from `start` to the end of `end` ("": for ever) holds at the end of `as_of`."""
    return start <= as_of + END and (not end or as_of + END <= end + END)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionTimes:
    """The times of one version of a document.

    `since` is the moment from which the index had it, and `ended_at` the one at which it was replaced or removed, ""
    for the live version. `start` and `end` are the dates that it states.
    """

    since: str
    ended_at: str = ""
    is_removed: bool = False
    start: str = ""
    end: str = ""


def version_at(versions: Sequence[VersionTimes], as_of: str) -> int | None:
    """Return the index of the version of a document that holds at the end of `as_of`, None if none does.

    `versions` are in the order in which the index got them. A version replaces the one before it at the date that it
    states, if this is later than the one stated before; otherwise at the moment at which the index got it. So an
    unchanged date, such as that of a document's creation, says nothing about when the document changed. A removed
    document holds no longer from the moment of its removal.
    """
    moment, holding, stated = as_of + END, None, ""
    for place, version in enumerate(versions):
        begins = version.start if version.start > stated else version.since
        stated = max(stated, version.start)
        if begins <= moment:
            holding = place
    if holding is None:
        return None
    version = versions[holding]
    is_gone = version.is_removed and version.ended_at <= moment
    return None if is_gone or (version.end and moment > version.end + END) else holding
