"""Reply shapes: malformed replies and instances of JSON schemas."""

import json

import pytest

from quipu.testing.scripted.fault_injection import RequestDraw
from quipu.testing.scripted.prompt_parsing import parse_prompt
from quipu.testing.scripted.replies import ScriptedReplyWriter
from quipu.testing.scripted.reply_shapes import build_instance
from quipu.testing.scripted.script import Fault, FaultName, ReplyRules, RequestKind
from tests.unit.testing.scripted.prompts import extraction

PLAIN_FIRST = "entity<|>Alice Kober<|>Concept<|>Alice Kober was born in New York."


def spoiled(name: FaultName | None, *, key: str = "key") -> str:
    fault = Fault(name=name) if name else None
    lot = RequestDraw(kind=RequestKind.EXTRACT, key=key, attempt=1, latency_s=0, fault=fault)
    return ScriptedReplyWriter(ReplyRules()).answer(parse_prompt(extraction()), lot, None)


@pytest.mark.parametrize(
    ("name", "begins", "ends"),
    [
        (FaultName.THINKING, "<think>\n", "\n<|done|>"),
        (FaultName.THINKING_UNOPENED, "Let me see", "\n<|done|>"),
        (FaultName.THINKING_UNCLOSED, "<think>\n", "\n<|done|>"),
        (FaultName.FENCES, "```text\nentity", "<|done|>\n```"),
        (FaultName.CHATTER, "Sure!", "need more!"),
        (FaultName.LANGUAGE, "好的", "内容。"),
        (FaultName.SWAPPED, "entity<|>Concept<|>Alice Kober<|>", "\n<|done|>"),
        (FaultName.MISSING, "entity<|>Alice Kober<|>Concept\n", "\n<|done|>"),
        (FaultName.UNCLOSED, PLAIN_FIRST, "<|>WHO"),
        (FaultName.LOOP, PLAIN_FIRST, "<|>WHO"),
    ],
)
def test_a_fault_gives_the_reply_its_shape(name: FaultName, begins: str, ends: str) -> None:
    said = spoiled(name)
    assert said.startswith(begins) and said.endswith(ends)


def test_thinking_is_closed_but_where_the_fault_says_otherwise() -> None:
    tags = {name: spoiled(name).count("</think>") for name in FaultName if name.startswith("thinking")}
    assert tags == {FaultName.THINKING: 1, FaultName.THINKING_UNOPENED: 1, FaultName.THINKING_UNCLOSED: 0}


def test_an_empty_reply_is_empty() -> None:
    assert spoiled(FaultName.EMPTY) == ""


def test_json_comes_in_the_place_of_lines() -> None:
    assert json.loads(spoiled(FaultName.JSON))["entities"][0]["name"] == "Alice Kober"


def test_wrong_delimiters_differ_from_request_to_request() -> None:
    firsts = {spoiled(FaultName.DELIMITERS, key=str(n)).splitlines()[0] for n in range(40)}
    assert len(firsts) > 4 and PLAIN_FIRST not in firsts


def test_a_loop_repeats_one_record() -> None:
    lines = spoiled(FaultName.LOOP).splitlines()
    assert len(lines) > 400 and len(set(lines[-400:])) == 1


def test_faults_of_other_kinds_leave_the_text_alone() -> None:
    assert spoiled(FaultName.RESET) == spoiled(None)


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
    assert json.loads(build_instance(json.dumps(SCHEMA), "a text")) == {
        "name": "a text",
        "kind": "person",
        "score": 1,
        "version": 2,
        "parts": [{"done": True}],
    }


def test_without_a_schema_it_is_any_object() -> None:
    assert json.loads(build_instance("", "a text")) == {"text": "a text"}
