"""Secret: a key that cannot be shown by accident."""

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


_SECRET = re.compile(r"key|secret|token$|password|credential|authorization|cookie")
_NO_SECRET = ("prompt_cache_key",)  # names that fit the pattern and hold no secret
_ADDRESS = re.compile(r"(^|_)(base|url|uri|endpoint|host|proxy)(_|$)")


def parse_extra(extra: str, *, may_redirect: bool = True) -> Mapping[str, object]:
    """Return the object. Raises InvalidInput, which repeats no value, where it is none or holds a key.

    Without `may_redirect` it may hold no address either: for what would send keys there that it finds by itself.
    """
    try:
        parsed: object = json.loads(extra)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise InvalidInput("extra is not a JSON object.", remedy='Write it as in {"reasoning_effort": "low"}.')
    for name in _names_of_texts(parsed):
        folded = name.lower().replace("-", "_")
        if _SECRET.search(folded) and folded not in _NO_SECRET:
            raise InvalidInput(
                f"extra holds {name!r}: a key is not a setting.",
                remedy="Set it in the environment or in secrets.toml: docs/providers.",
            )
        if not may_redirect and _ADDRESS.search(folded):
            raise InvalidInput(f"extra holds {name!r}, an address.", remedy="Set llm_base_url.")
    return parsed


def extra_identity(parsed: Mapping[str, object]) -> str:
    """Return a digest of the object: it tells two apart and shows nothing of either."""
    return digest("extra", json.dumps(parsed, sort_keys=True))[:16]


def _names_of_texts(value: object) -> Iterator[str]:
    """Yield the names under which there is text, at any depth."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(inner, str):
                yield str(name)
            yield from _names_of_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names_of_texts(inner)
