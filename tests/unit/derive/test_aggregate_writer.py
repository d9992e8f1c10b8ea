"""Tests of what is read of a model's replies on aggregates."""

import json

from quipu.derive.aggregate_writer import AggregateReply, parse_aggregate_reply
from quipu.model.cluster import Finding
from quipu.prompts.aggregate import SCHEMA


def test_a_reply_is_read_whole() -> None:
    said = {"name": "Ports", "description": "They\ntrade.", "findings": [{"summary": "One.", "explanation": "So."}]}
    expected = AggregateReply(
        name="Ports", description="They trade.", findings=(Finding(summary="One.", explanation="So."),)
    )
    assert parse_aggregate_reply(json.dumps(said)) == expected
    assert parse_aggregate_reply(f"Here it is:\n```json\n{json.dumps(said)}\n```") == expected
    assert json.loads(SCHEMA)["required"] == list(said)


def test_what_is_malformed_in_a_reply_is_left_out() -> None:
    findings = ["One.", {"explanation": "Two."}, {"summary": " "}, 3, None, {"summary": "Four.", "explanation": 4}]
    reply = parse_aggregate_reply(json.dumps({"name": "Ports", "description": "They trade.", "findings": findings}))
    assert reply is not None
    assert reply.findings == (Finding(summary="One."), Finding(summary="Two."), Finding(summary="Four."))
    many = json.dumps({"name": "a", "description": "b", "findings": ["x"] * 40})
    assert len(getattr(parse_aggregate_reply(many), "findings", ())) == 10
    for text in (
        "",
        "no",
        "[]",
        "7",
        '{"name": "Ports"}',
        '{"name": "", "description": "b"}',
        '{"name": 1, "description": 2}',
    ):
        assert parse_aggregate_reply(text) is None
