"""Halves of surrogate pairs: what bytes that are no text turn into; they can be neither stored nor sent."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass

_HALF = re.compile("[\\ud800-\\udfff]")


def with_half(texts: Iterable[str]) -> str | None:
    """Return the first text that holds half of a surrogate pair, None where none does."""
    return next((text for text in texts if _HALF.search(text)), None)


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in a value: itself, or in its items, keys or fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts_in([*value.keys(), *value.values()])
    elif isinstance(value, tuple | list | set | frozenset):
        for each in value:
            yield from texts_in(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from texts_in(getattr(value, field.name))
