"""Complaints: what is wrong with a setting, in one line with its origin and what is allowed."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from quipu.errors import InvalidInput
from quipu.settings.values import Given, without_secrets

# Options of a question that are several settings.
_SPLIT = MappingProxyType({"mix_weights": "entity_weight, relation_weight and vector_weight"})


def unknown(name: str, origin: str, known: Sequence[str], what: str) -> InvalidInput:
    """Return the error for a name that nothing has, with the closest that something has."""
    if name.replace("-", "_") in _SPLIT and what == "setting":
        parts = _SPLIT[name.replace("-", "_")]
        return InvalidInput(f"There is no {what} {name} ({origin}).", remedy=f"Set {parts}.")
    near = closest(name, known)
    remedy = f"Did you mean {near}?" if near else "`quipu config` lists every setting."
    return InvalidInput(f"There is no {what} {name} ({origin}).", remedy=remedy)


def closest(name: str, known: Sequence[str]) -> str:
    """Return the known name closest to this one, "" where none is close."""
    return next(iter(get_close_matches(name.replace("-", "_"), known, n=1)), "")


def as_invalid_input(
    error: ValidationError, given: Mapping[str, Given], kind: type[BaseModel], *, what: str, origin: str = ""
) -> InvalidInput:
    """Turn pydantic's first complaint about a `what` into one line: name, value, origin, what is allowed."""
    complaint: ErrorDetails = error.errors(include_url=False)[0]
    name = str(complaint["loc"][0])
    if name not in given:
        return InvalidInput(f"A {what} needs {name} ({origin}).", remedy=f"Give {allowed(kind)[name]}.")
    each = given[name]
    if name not in kind.model_fields:
        return unknown(name, each.origin, list(kind.model_fields), what if what == "setting" else f"{what} setting")
    value = str(each.value) if isinstance(each.value, Path) else each.value
    if name.endswith("base_url"):
        value = without_secrets(str(value))
    return InvalidInput(f"{name} = {value!r} ({each.origin}) is not allowed.", remedy=f"Use {allowed(kind)[name]}.")


def allowed(kind: type[BaseModel]) -> dict[str, str]:
    """Say in words which values each setting takes."""
    properties = kind.model_json_schema()["properties"]
    return {name: _in_words(**schema) for name, schema in properties.items()}


def _in_words(**schema: Any) -> str:
    """Say in words what a JSON schema of one value allows."""
    if said := schema.get("allowed"):
        return str(said)
    kinds = schema.get("anyOf", [schema])
    first = kinds[0]
    if said := first.get("allowed"):
        return str(said)
    if literal := first.get("enum", [first["const"]] if "const" in first else []):
        return " or ".join(literal)
    if first["type"] == "boolean":
        return "true or false"
    if first["type"] == "string":
        return _text_in_words(first)
    noun = "a whole number" if first["type"] == "integer" else "a number"
    return f"{noun} from {first['minimum']:,} to {first['maximum']:,}" + (", or auto" if len(kinds) > 1 else "")


def _text_in_words(schema: Mapping[str, Any]) -> str:
    if "pattern" in schema:
        return "an address that begins with http:// or https://"
    return "a path" if schema.get("format") == "path" else "text that is not empty"
