"""Tests of values that fit a schema."""

import json

from quipu.testing.scripted.schema import instance_of

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "kind": {"enum": ["person", "place"]},
        "score": {"type": ["integer", "null"]},
        "version": {"const": 2},
        "parts": {"type": "array", "items": {"type": "object", "properties": {"done": {"type": "boolean"}}}},
    },
}


def test_a_value_has_every_property_of_its_schema() -> None:
    assert json.loads(instance_of(json.dumps(SCHEMA), "a text")) == {
        "name": "a text",
        "kind": "person",
        "score": 1,
        "version": 2,
        "parts": [{"done": True}],
    }


def test_without_a_schema_it_is_any_object() -> None:
    assert json.loads(instance_of("", "a text")) == {"text": "a text"}
