"""Input from the command line: metadata, conditions, dates, texts from files, and earlier turns of a conversation."""

import json
import re
from pathlib import Path

import click

from quipu.errors import InvalidInput
from quipu.model.document import Metadata, MetadataValue
from quipu.model.query import ComparisonOperator, Condition, Turn

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
    """Return `key=value` pairs as metadata: true, false and numbers are converted, all other values are texts."""
    return dict(_pair(pair) for pair in pairs)


def parse_condition(text: str) -> Condition:
    """Return the condition written as `region=Asia`, `year >= 1500`, `topic ~ road`, `language in en,ru`."""
    match = _CONDITION.fullmatch(text)
    word = match and (match["sign"] or match["word"])
    if not match or not word or not (match["value"] or word == "exists"):
        raise click.UsageError(
            f"--where {text!r} is not a condition: write field, comparison, value, as in region=Asia."
            " Comparisons: = != < <= > >= ~ (contains) in exists."
        )
    return Condition(field=match["field"], operator=_COMPARISONS[word], value=match["value"])


def parse_date(text: str) -> str:
    """Return a date unchanged if it has the form of ISO 8601: a year, a month (1907-05), a day or a time."""
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


MAX_BYTES = 1_000_000  # a longer file is not a prompt or a history, or it never ends


def text_or_file(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the text of an option, or the content of the file named behind an @; a callback for click."""
    if not value.startswith("@"):
        return value
    try:
        return read_text(Path(value[1:]).expanduser()).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.BadParameter(f"{value[1:]} cannot be read ({reason}).", ctx, parameter) from None


def read_text(file: Path) -> str:
    """Return the text of a file. Raises OSError; ValueError with the reason where it is too long or is not text."""
    with file.open("rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it holds more than {MAX_BYTES:,} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None


_REMEDY = 'Write a JSON list, as in [{"role": "user", "text": "Who was Alice Kober?"}].'


def read_history(file: Path) -> tuple[Turn, ...]:
    """Return the turns in a JSON file: a list of objects with role (user or assistant) and text (or content)."""
    try:
        turns = json.loads(read_text(file))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"The history {file} cannot be read: {error}.", remedy=_REMEDY) from None
    if not isinstance(turns, list):
        raise InvalidInput(f"The history {file} is not a list.", remedy=_REMEDY)
    return tuple(_turn(turn, number, file) for number, turn in enumerate(turns, 1))


def _turn(turn: object, number: int, file: Path) -> Turn:
    if isinstance(turn, dict):
        role, text = turn.get("role"), turn.get("text", turn.get("content"))
        if isinstance(text, str):
            if role == "user":
                return Turn(role="user", text=text)
            if role == "assistant":
                return Turn(role="assistant", text=text)
    raise InvalidInput(f"Turn {number} of {file} has no role (user or assistant) or no text.", remedy=_REMEDY)
