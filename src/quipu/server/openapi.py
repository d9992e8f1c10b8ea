"""OpenAPI: the description of the API (version 3.1), made from the functions and dataclasses that serve it."""

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter
from starlette.responses import Response

from quipu.server.operations import Operation
from quipu.server.wire import Problem, problem_response

_REFERENCE = "#/components/schemas/{model}"
_Mode = Literal["validation", "serialization"]

_CONVERTER = re.compile(r":[a-z]+}")  # the type of a part of a path, as in {document:path}


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
