"""Extra: what a user has sent to a model besides, a JSON object; never a key, never another address."""

import json
import re
from collections.abc import Iterator, Mapping

from quipu.errors import InvalidInput
from quipu.model.ids import digest

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
