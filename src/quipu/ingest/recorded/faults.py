"""Faults of recorded lines: what is wrong with a line's fields, in words."""

from collections.abc import Iterable

from pydantic import ValidationError

_IN_WORDS = {"missing": "is missing", "string_too_short": "is empty"}
_OF_TYPES = ("str", "int", "FindingLine")  # where a field may be one of several, the place names which was tried


def fault_in_words(error: ValidationError) -> str:
    """Return the first fault as in "`name` of item 1 of `entities` is empty"."""
    first = error.errors()[0]
    said = _IN_WORDS.get(first["type"]) or first["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{_place(first['loc'])} {said}"


def _place(parts: Iterable[int | str]) -> str:
    steps = [part for part in parts if isinstance(part, int) or (part.isidentifier() and part not in _OF_TYPES)]
    named = [f"item {step + 1}" if isinstance(step, int) else f"`{step}`" for step in steps]
    return " of ".join(reversed(named))
