"""Secret: a key that cannot be shown by accident."""

import html
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from urllib.parse import quote

_MASK = "***"
_MIN_RUN = 8  # characters of a key in a row that are masked wherever they stand; a shorter key only as a whole
_MIN_KEY = 4  # nothing shorter is a secret: "no", "na" and "12" are what servers at home are given, and ordinary words


class Secret:
    """Holds a key. `str`, `repr` and formatting show nothing of it; white space around it is dropped."""

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = value.strip()

    def reveal(self) -> str:
        """Return the key, for the one place that sends it."""
        return self._value

    def mask(self, text: str) -> str:
        """Return `text` with the key, and every longer piece of it, replaced by stars.

        A key of one to three characters hides nothing, and would take its letters out of any message: it is left.
        """
        if len(self._value) < _MIN_KEY:
            return text
        forms = dict.fromkeys((self._value, quote(self._value, safe=""), html.escape(self._value)))
        covered = [False] * len(text)
        for form in forms:
            for start, end in _runs(text, form, min(_MIN_RUN, len(form))):
                covered[start:end] = [True] * (end - start)
        pieces = groupby(zip(text, covered, strict=True), key=itemgetter(1))
        return "".join(_MASK if is_secret else "".join(each for each, _ in pairs) for is_secret, pairs in pieces)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return _MASK if self._value else ""

    def __repr__(self) -> str:
        return f"Secret({_MASK if self._value else ''})"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written down")


def _runs(text: str, key: str, n: int) -> Iterator[tuple[int, int]]:
    """Yield the places in `text` of at least `n` characters in a row that stand in `key` in this order."""
    start = 0
    while start <= len(text) - n:
        end = start + n
        if text[start:end] not in key:
            start += 1
            continue
        while end < len(text) and text[start : end + 1] in key:
            end += 1
        yield start, end
        start = end
