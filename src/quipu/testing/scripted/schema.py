"""Schema: the smallest value that fits a JSON schema."""

import json
from collections.abc import Mapping

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_BY_TYPE: Mapping[str, Json] = {"integer": 1, "number": 1, "boolean": True, "null": None}


def instance_of(schema: str, text: str) -> str:
    """Return JSON that fits a schema of objects, arrays, enumerations and plain types, with `text` for each string.

    Without a schema it is an object that holds the text.
    """
    return json.dumps(_instance(json.loads(schema), text) if schema else {"text": text}, ensure_ascii=False)


def _instance(schema: Json, text: str) -> Json:
    if not isinstance(schema, dict):
        return None
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else "null"
    properties = schema.get("properties")
    if kind == "object" or isinstance(properties, dict):
        return (
            {name: _instance(part, text) for name, part in properties.items()} if isinstance(properties, dict) else {}
        )
    if kind == "array":
        return [_instance(schema.get("items"), text)]
    if kind == "string":
        return text
    return _BY_TYPE.get(kind) if isinstance(kind, str) else None
