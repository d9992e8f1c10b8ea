"""Reference page: the operations of the API for a person to read, made from their OpenAPI description."""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from quipu.server.wire import CONTENT_POLICY

Schema = Mapping[str, Any]
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code{font-size:.9em}summary{cursor:pointer;padding:.25rem 0}details>:not(summary){margin-left:1.5rem}"
    "table{border-collapse:collapse}caption{text-align:left;font-weight:600;padding-top:.75rem}"
    "td,th{text-align:left;vertical-align:top;padding:.15rem .75rem .15rem 0}"
)
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
PAGE_POLICY = f"{CONTENT_POLICY}; style-src 'sha256-{_DIGEST}'"


def reference_page(document: Schema) -> str:
    """Return the page for an OpenAPI document."""
    entries = [
        (method, path, entry) for path, methods in document["paths"].items() for method, entry in methods.items()
    ]
    by_tag: dict[str, list[tuple[str, str, Schema]]] = {}
    for operation in entries:
        by_tag.setdefault(operation[2]["tags"][0], []).append(operation)
    info, schemas = document["info"], document["components"]["schemas"]
    sections = "".join(
        f"<h2>{escape(tag.capitalize())}</h2>{''.join(_operation(*operation, schemas) for operation in operations)}"
        for tag, operations in by_tag.items()
    )
    types = "".join(
        f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>'
        f"<p>{escape(schema.get('description', ''))}</p>{_table('Fields', _fields(schema, schemas))}</details>"
        for name, schema in sorted(schemas.items())
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Quipu: REST API</title><style>{_STYLE}</style>'
        f"<h1>REST API of {escape(info['title'])} {escape(info['version'])}</h1>"
        '<p>The same for programs: <a href="openapi.json">openapi.json</a> (OpenAPI 3.1). Where the server has keys, '
        "send one as <code>Authorization: Bearer KEY</code>.</p>"
        f"{sections}<h2>Types</h2>{types}</html>\n"
    )


def _operation(method: str, path: str, entry: Schema, schemas: Mapping[str, Schema]) -> str:
    key = entry.get("x-permission")
    parameters = [(part["name"], part["schema"], part["required"], part["in"]) for part in entry.get("parameters", ())]
    parts = [
        f"<p>{escape(entry.get('description', ''))}</p>" if entry.get("description") else "",
        f"<p>Needs a key that allows <b>{escape(key)}</b>.</p>" if key else "<p>Needs no key.</p>",
        _table("Parameters", parameters),
    ]
    for media_type, content in entry.get("requestBody", {}).get("content", {}).items():
        parts.append(_table(f"Body, {media_type}", _fields(content.get("schema", {}), schemas)))
    for status, response in entry["responses"].items():
        for content in response.get("content", {}).values() if status != "default" else ():
            parts.append(_table(f"Reply {status}", _fields(content.get("schema", {}), schemas)))
    head = f"<summary><code>{method.upper()} {escape(path)}</code> {escape(entry['summary'])}</summary>"
    return f'<details id="{escape(entry["operationId"])}">{head}{"".join(parts)}</details>'


def _fields(schema: Schema, schemas: Mapping[str, Schema]) -> list[tuple[str, Schema, bool, str]]:
    """Return the fields of an object as (name, schema, whether it must be given, "")."""
    schema = schemas[_name(schema)] if "$ref" in schema else schema
    required = schema.get("required", ())
    return [(name, part, name in required, "") for name, part in schema.get("properties", {}).items()]


def _table(title: str, rows: Sequence[tuple[str, Schema, bool, str]]) -> str:
    if not rows:
        return ""
    lines = (
        f"<tr><td><code>{escape(name)}</code><td>{escape(type_text(schema))}"
        f"<td>{escape('required' if is_required else _default(schema))} {escape(place)}"
        f"<td>{escape(schema.get('description', ''))}"
        for name, schema, is_required, place in rows
    )
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"


def type_text(schema: Schema) -> str:
    """Return the type of a field in a few words, as in "list of text" or "one of id, title"."""
    return " or ".join(dict.fromkeys(_types(schema)))


def _types(schema: Schema) -> Iterator[str]:
    if "$ref" in schema:
        yield _name(schema)
    elif "enum" in schema:
        yield f"one of {', '.join(map(str, schema['enum']))}"
    elif "const" in schema:
        yield str(schema["const"])
    elif "anyOf" in schema:
        for part in schema["anyOf"]:
            yield from _types(part)
    elif schema.get("type") == "array":
        yield f"list of {type_text(schema.get('items', {})) or 'values'}"
    else:
        kind = str(schema.get("type", ""))
        yield "text" if kind == "string" else kind


def _name(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _default(schema: Schema) -> str:
    value = schema.get("default")
    return f"default {value}" if isinstance(value, str | int | float) and value != "" else ""
