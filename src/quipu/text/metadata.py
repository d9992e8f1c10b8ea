"""Metadata: nested values from YAML and JSON as the flat metadata of a document."""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date

from quipu.model.document import MetadataValue

_MAX_INTEGER = 2**63 - 1  # databases cannot compare larger numbers


def flatten_metadata(values: Mapping[object, object]) -> dict[str, MetadataValue]:
    """Return `values` as flat metadata.

    Dates become text in ISO form, lists of scalars become tuples of text, and nested keys become "a.b". A list that
    holds lists or mappings becomes JSON text. Raises RecursionError for values nested too deeply.
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
    elements = sorted(value, key=_text) if isinstance(value, set) else value
    if any(isinstance(element, Mapping | list | tuple | set) for element in elements):
        return json.dumps(_plain(value), ensure_ascii=False)
    return tuple(_text(element) for element in elements)


def _plain(value: object) -> object:
    """Return `value` with mappings and lists as in JSON, and other scalars than integers, booleans and null as text."""
    if isinstance(value, Mapping):
        return {_text(key): _plain(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    return value if value is None or isinstance(value, bool | int) else _text(value)


def _text(value: object) -> str:
    """Return a scalar as text that every store accepts: without NUL and lone surrogates."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    text = value.isoformat() if isinstance(value, date) else str(value)
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
