"""Metadata: the values YAML and JSON give, made into the flat values a document carries."""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date

from quipu.model.document import MetadataValue

_MAX_INTEGER = 2**63 - 1  # what databases compare as numbers


def flatten_metadata(values: Mapping[object, object]) -> dict[str, MetadataValue]:
    """Return `values` as metadata: dates in ISO form, lists of scalars as tuples of text, nested keys as "a.b".

    A list that holds lists or mappings becomes its JSON text. Raises RecursionError for absurdly deep values.
    """
    return dict(_flatten("", values))


def _flatten(prefix: str, values: Mapping[object, object]) -> Iterator[tuple[str, MetadataValue]]:
    for key, value in values.items():
        name = prefix + _text(key)
        if isinstance(value, Mapping):
            yield from _flatten(f"{name}.", value)
        else:
            yield name, _value(value)


def _value(value: object) -> MetadataValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _MAX_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if not isinstance(value, list | tuple | set):
        return _text(value)
    items = sorted(value, key=_text) if isinstance(value, set) else value
    if any(isinstance(item, Mapping | list | tuple | set) for item in items):
        return json.dumps(_plain(value), ensure_ascii=False)
    return tuple(_text(item) for item in items)


def _plain(value: object) -> object:
    """Return `value` with mappings and lists as JSON has them, and everything else as text."""
    if isinstance(value, Mapping):
        return {_text(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int) else _text(value)


def _text(value: object) -> str:
    """Return a scalar as text any store can keep: no NUL, no half of a surrogate pair."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    text = value.isoformat() if isinstance(value, date) else str(value)
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
