"""Waiting: how long a server asks to be left alone, in the many ways there are to say it."""

import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

from quipu.providers.openai.fields import list_at, text_at

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SAID = re.compile(
    r"(?:try again|retry|retry after|wait)(?: in| after)?:? ((?:\d+(?:\.\d+)?(?:ms|h|m|s)\s?)+)", re.IGNORECASE
)
_MIN_EPOCH = 1e9  # a larger number of seconds is a point in time


def retry_after_s(status: int, headers: Mapping[str, str], body: object, message: str, now: float) -> float | None:
    """Return the seconds to wait, None where nothing is said of it; `now` is in seconds of the epoch.

    In order: retry-after-ms, Retry-After (seconds or a date), x-ratelimit-reset-requests and -tokens (of what is used
    up), x-ratelimit-reset, Gemini's retryDelay, "try again in 1.2s" in the message. Names of headers are in lower case.
    Services tell in every answer when limits are reset: unless this one is a 429, only one that is used up counts.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    return next((max(0.0, each) for each in _said(status, headers, body, message, now) if each is not None), None)


def _said(status: int, headers: Mapping[str, str], body: object, message: str, now: float) -> Iterator[float | None]:
    yield _seconds_or_date(headers.get("retry-after", ""), now)
    yield _until_reset(headers, now, is_limited=status == 429)
    for detail in list_at(body, "error", "details"):
        yield _span(text_at(detail, "retryDelay"))
    found = _SAID.search(message)
    yield _span(found[1]) if found else None


def _seconds_or_date(value: str, now: float) -> float | None:
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        return parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None


def _until_reset(headers: Mapping[str, str], now: float, *, is_limited: bool) -> float | None:
    """Return when the limits that are used up are reset; without one, the latest reset if a limit was met."""
    resets = {}
    for limit in ("-requests", "-tokens", ""):
        value = headers.get(f"x-ratelimit-reset{limit}", "")
        seconds = _span(value) if _number(value) is None else _from_epoch(float(value), now)
        if seconds is not None:
            resets[limit] = seconds
    used_up = [seconds for limit, seconds in resets.items() if headers.get(f"x-ratelimit-remaining{limit}") == "0"]
    return max(used_up or (resets.values() if is_limited else ()), default=None)


def _from_epoch(value: float, now: float) -> float:
    if value > 1000 * _MIN_EPOCH:
        return value / 1000 - now
    return value - now if value > _MIN_EPOCH else value


def _span(text: str) -> float | None:
    """Return the seconds of a text like "6m0s", "20ms" or "1.5s"."""
    found = _SPAN.findall(text)
    return sum(float(number) * _UNIT_S[unit] for number, unit in found) if found else None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,18}(\.\d+)?\s*", text) else None
