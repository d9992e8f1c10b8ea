"""OpenAPI: the description of the API (version 3.1), and a page of its operations for a person to read.

Both are made from the functions and dataclasses that serve the API.
"""

import base64
import hashlib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter
from starlette.responses import Response

from quipu.server.operations import Operation
from quipu.server.wire import CONTENT_POLICY, Problem, problem_response

_REFERENCE = "#/components/schemas/{model}"
_Mode = Literal["validation", "serialization"]

_CONVERTER = re.compile(r":[a-z]+}")  # the type of a part of a path, as in {document:path}

Schema = Mapping[str, Any]
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code{font-size:.9em}summary{cursor:pointer;padding:.25rem 0}details>:not(summary){margin-left:1.5rem}"
    "table{border-collapse:collapse}caption{text-align:left;font-weight:600;padding-top:.75rem}"
    "td,th{text-align:left;vertical-align:top;padding:.15rem .75rem .15rem 0}"
)
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
PAGE_POLICY = f"{CONTENT_POLICY}; style-src 'sha256-{_DIGEST}'"


def openapi_document(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """Return the OpenAPI document of these operations."""
    described = tuple(operations)
    schemas, definitions = _schemas(described)
    paths: dict[str, dict[str, Any]] = {}
    for operation in described:
        path = _CONVERTER.sub("}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _entry(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Quipu", "version": version, "description": "A graph-RAG engine: documents in, answers out."},
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(operations: Iterable[Operation]) -> tuple[Mapping[tuple[str, str], Any], dict[str, Any]]:
    """Return a schema for each (function and part) of the operations, and the definitions they refer to."""
    inputs: list[tuple[str, _Mode, TypeAdapter[Any]]] = [("problem", "serialization", TypeAdapter(Problem))]
    for operation in operations:
        name = operation.function.__name__
        if operation.body is not None:
            inputs.append((f"{name} body", "validation", operation.body))
        if _returns_json(operation):
            inputs.append((f"{name} reply", "serialization", TypeAdapter(operation.hints["return"])))
    schemas, document = TypeAdapter.json_schemas(inputs, ref_template=_REFERENCE)
    return {(key, mode): schema for (key, mode), schema in schemas.items()}, document.get("$defs", {})


def _entry(operation: Operation, schemas: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    name = operation.function.__name__
    summary, _, description = (inspect.getdoc(operation.function) or "").partition("\n\n")
    content = {"schema": schemas[f"{name} reply", "serialization"]} if _returns_json(operation) else {}
    entry: dict[str, Any] = {
        "operationId": name,
        "summary": summary.replace("\n", " ").rstrip("."),
        "tags": [operation.subject],
        "responses": {
            str(operation.status): _result(operation, content),
            "default": _error_response(operation, schemas),
        },
    }
    if description:
        entry["description"] = description
    if parameters := [*_path_parameters(operation), *_query_parameters(operation)]:
        entry["parameters"] = parameters
    if operation.body is not None:
        body = {"schema": schemas[f"{name} body", "validation"]}
        entry["requestBody"] = {"required": True, "content": {operation.body_media_type: body}}
    if operation.permission is not None:
        entry["security"] = [{"key": []}]
        entry["x-permission"] = operation.permission.value
    return entry


def _result(operation: Operation, content: Mapping[str, Any]) -> dict[str, Any]:
    has_body = operation.status != 204 and operation.method != "HEAD"
    return {"description": "The result."} | ({"content": {operation.media_type: content}} if has_body else {})


def _error_response(operation: Operation, schemas: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    if operation.render_error is not problem_response:
        return {"description": "An error, in the form of this API.", "content": {"application/json": {}}}
    content = {"application/problem+json": {"schema": schemas["problem", "serialization"]}}
    return {"description": "An error, with its remedy.", "content": content}


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in sorted(operation.path_parameters)
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    model: type[BaseModel] | None = operation.query_parameters
    if model is None:
        return []
    schema = model.model_json_schema(ref_template=_REFERENCE)
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": part}
        for name, part in schema["properties"].items()
    ]


def _returns_json(operation: Operation) -> bool:
    kind = operation.hints["return"]
    return not (isinstance(kind, type) and issubclass(kind, Response))


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
