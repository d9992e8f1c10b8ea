"""Error messages of settings: one line with the name, the value, its origin and what is allowed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from quipu.errors import InvalidInput

SettingValue = str | int | float | bool | Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedValue:
    """A value that is not validated yet, and its origin."""

    value: Any
    origin: str  # "argument", "environment QUIPU_TOP_K", "quipu.toml:3"


def without_secrets(address: str) -> str:
    """Return an address, valid or not, without user name, password and query."""
    masked = re.sub(r"^(\w+://)?.*@", r"\1***@", address, flags=re.DOTALL)
    return re.sub(r"[?#].*", "?***", masked, flags=re.DOTALL)


def unknown(name: str, origin: str, known: Sequence[str], what: str) -> InvalidInput:
    """Return the error for an unknown name, with the closest known one."""
    near = closest(name, known)
    remedy = f"Did you mean {near}?" if near else "`quipu config` lists every setting."
    return InvalidInput(f"There is no {what} {name} ({origin}).", remedy=remedy)


def closest(name: str, known: Sequence[str]) -> str:
    """Return the known name closest to this one, "" where none is close."""
    return next(iter(get_close_matches(name.replace("-", "_"), known, n=1)), "")


def as_invalid_input(
    error: ValidationError, values: Mapping[str, SourcedValue], kind: type[BaseModel], *, what: str, origin: str = ""
) -> InvalidInput:
    """Turn pydantic's first error into one line: name, value, origin, what is allowed. `what` is set, as in "price"."""
    first: ErrorDetails = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    if name not in values:
        return InvalidInput(f"A {what} needs {name} ({origin}).", remedy=f"Give {allowed(kind)[name]}.")
    sourced = values[name]
    if name not in kind.model_fields:
        return unknown(name, sourced.origin, list(kind.model_fields), f"{what} setting")
    value = str(sourced.value) if isinstance(sourced.value, Path) else sourced.value
    if name.endswith("base_url"):
        value = without_secrets(str(value))
    return InvalidInput(f"{name} = {value!r} ({sourced.origin}) is not allowed.", remedy=f"Use {allowed(kind)[name]}.")


def allowed(kind: type[BaseModel]) -> dict[str, str]:
    """Return, in words, which values each setting takes."""
    properties = kind.model_json_schema()["properties"]
    return {name: _describe_schema(**schema) for name, schema in properties.items()}


def _describe_schema(**schema: Any) -> str:
    """Describe in words what a JSON schema of one value allows."""
    if description := schema.get("allowed"):
        return str(description)
    kinds = schema.get("anyOf", [schema])
    first = kinds[0]
    if description := first.get("allowed"):
        return str(description)
    if literal := first.get("enum", [first["const"]] if "const" in first else []):
        return " or ".join(literal)
    if first["type"] == "boolean":
        return "true or false"
    if first["type"] == "string":
        return _describe_text(first)
    noun = "a whole number" if first["type"] == "integer" else "a number"
    return f"{noun} from {first['minimum']:,} to {first['maximum']:,}" + (", or auto" if len(kinds) > 1 else "")


def _describe_text(schema: Mapping[str, Any]) -> str:
    if "pattern" in schema:
        return "an address that begins with http:// or https://"
    return "a path" if schema.get("format") == "path" else "text that is not empty"
