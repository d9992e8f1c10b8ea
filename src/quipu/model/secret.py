"""Secret: an API key that cannot be shown by accident; and request options that must not contain a key."""

import html
import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from urllib.parse import quote

from quipu.errors import InvalidInput
from quipu.model.ids import digest

_MASK = "***"
_MIN_RUN = 8  # this many characters of a key in a row are masked anywhere; a shorter key only as a whole
_MIN_KEY = 4  # shorter values are not secrets: local servers get keys such as "no" or "12", which are also words


class Secret:
    """An API key. `str`, `repr` and formatting do not show it. Surrounding white space is removed."""

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = value.strip()

    def reveal(self) -> str:
        """Return the key. Only the code that sends it should call this."""
        return self._value

    def mask(self, text: str) -> str:
        """Return `text` with the key, and every long substring of it, replaced by stars.

        A key of one to three characters is not masked: it protects nothing, and its characters occur in any message.
        """
        if len(self._value) < _MIN_KEY:
            return text
        encodings = dict.fromkeys((self._value, quote(self._value, safe=""), html.escape(self._value)))
        is_masked = [False] * len(text)
        for encoding in encodings:
            for start, end in _runs(text, encoding, min(_MIN_RUN, len(encoding))):
                is_masked[start:end] = [True] * (end - start)
        groups = groupby(zip(text, is_masked, strict=True), key=itemgetter(1))
        return "".join(_MASK if masked else "".join(char for char, _ in pairs) for masked, pairs in groups)

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
        raise TypeError("A Secret cannot be pickled.")


def _runs(text: str, key: str, n: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of `text`, at least `n` characters long, that are substrings of `key`."""
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


_SECRET_NAME = re.compile(r"key|secret|token$|password|credential|authorization|cookie")
_NOT_SECRET = ("prompt_cache_key",)  # matches the pattern but holds no secret
_ADDRESS_NAME = re.compile(r"(^|_)(base|url|uri|endpoint|host|proxy)(_|$)")


def parse_extra(extra: str, *, may_redirect: bool = True) -> Mapping[str, object]:
    """Return the extra request options, a JSON object that the user configured for a model.

    Raises InvalidInput if `extra` is not a JSON object or contains a key. The error does not repeat any value. If not
    `may_redirect`, an address is refused too, because the client would send an API key to it.
    """
    try:
        options: object = json.loads(extra)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise InvalidInput("extra is not a JSON object.", remedy='Write it like this: {"reasoning_effort": "low"}.')
    for name in _names_of_strings(options):
        normalised = name.lower().replace("-", "_")
        if _SECRET_NAME.search(normalised) and normalised not in _NOT_SECRET:
            raise InvalidInput(
                f"extra contains {name!r}, but a key must not be stored in a setting.",
                remedy="Set it in the environment or in secrets.toml: docs/providers.",
            )
        if not may_redirect and _ADDRESS_NAME.search(normalised):
            raise InvalidInput(f"extra contains {name!r}, an address.", remedy="Set llm_base_url instead.")
    return options


def extra_identity(options: Mapping[str, object]) -> str:
    """Return a digest of the options (16 hex digits): it distinguishes them without showing their values."""
    return digest("extra", json.dumps(options, sort_keys=True))[:16]


def _names_of_strings(value: object) -> Iterator[str]:
    """Yield the names of all string values of a JSON value, at any depth."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(inner, str):
                yield str(name)
            yield from _names_of_strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names_of_strings(inner)
