"""Metadata on the command line: `key=value` with natural types, and conditions on it."""

import re

import click

from quipu.model.document import Metadata, MetadataValue
from quipu.model.query import ComparisonOperator, Condition

_BOOLEANS = {"true": True, "false": False}
_COMPARISONS: dict[str, ComparisonOperator] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "~": "contains",
    "in": "in",
    "exists": "exists",
}
_CONDITION = re.compile(
    r"\s*(?P<field>[^\s=!<>~]+)\s*"
    r"(?:(?P<sign>==?|!=|<=?|>=?|~)(?![=!<>~])|\s(?P<word>in|exists)(?=\s|$))"
    r"\s*(?P<value>.*?)\s*"
)
_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ].*)?)?)?")


def parse_metadata(pairs: tuple[str, ...]) -> Metadata:
    """Return `key=value` pairs as metadata: true, false and numbers become what they look like, all else is text."""
    return dict(_pair(pair) for pair in pairs)


def parse_condition(text: str) -> Condition:
    """Return the condition written as `region=Asia`, `year >= 1500`, `topic ~ road`, `language in en,ru`."""
    found = _CONDITION.fullmatch(text)
    word = found and (found["sign"] or found["word"])
    if not found or not word or not (found["value"] or word == "exists"):
        raise click.UsageError(
            f"--where {text!r} is not a condition: write field, comparison, value, as in region=Asia."
            " Comparisons: = != < <= > >= ~ (contains) in exists."
        )
    return Condition(field=found["field"], operator=_COMPARISONS[word], value=found["value"])


def parse_date(text: str) -> str:
    """Return a date as it is written: a year, a month (1907-05), a day or a moment, in ISO 8601."""
    if text and not _DATE.fullmatch(text):
        raise click.UsageError(f"{text!r} is not a date: write 1907, 1907-05 or 1907-05-31.")
    return text


def _pair(text: str) -> tuple[str, MetadataValue]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise click.UsageError(f"--meta {text!r} is not key=value.")
    return key.strip(), _natural(value.strip())


def _natural(value: str) -> MetadataValue:
    """Return a boolean or number if `value` is written like one; not `nan`, not `1_000`, not `007`."""
    if value.casefold() in _BOOLEANS:
        return _BOOLEANS[value.casefold()]
    if re.fullmatch(r"-?(0|[1-9]\d*)", value):
        return int(value)
    if re.fullmatch(r"-?(0|[1-9]\d*)\.\d+", value):
        return float(value)
    return value
