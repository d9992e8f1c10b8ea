"""Tests of what is read of a model's replies on aggregates."""

import json

from quipu.derive.aggregate_inputs import AggregateInputs, ClusterRelationInputs
from quipu.derive.aggregate_writer import AggregateWriter, LowerReports, parse_aggregate_report
from quipu.model.chat import ChatRequest, Completion, FinishReason, PromptText, TokenCount
from quipu.model.cluster import Cluster, ClusterRelation, ClusterReport, Finding, Hierarchy
from quipu.prompts.aggregate import SCHEMA
from quipu.providers.local import ByteTokenizer

_INPUTS = AggregateInputs(
    cluster=Cluster(id="k", hierarchy=Hierarchy.AGGREGATES, level=1, inputs_hash="h"),
    entities=(),
    children=(),
    top_entities=(),
    relations=(),
    chunks=("c",),
)


def _parse(text: str) -> ClusterReport | None:
    return parse_aggregate_report(text, _INPUTS)


def test_a_reply_is_read_whole() -> None:
    said = {"name": "Ports", "description": "They\ntrade.", "findings": [{"summary": "One.", "explanation": "So."}]}
    finding = Finding(summary="One.", explanation="So.")
    expected = ClusterReport(
        cluster="k", title="Ports", summary="They trade.", findings=(finding,), chunks=("c",), inputs_hash="h"
    )
    assert _parse(json.dumps(said)) == expected
    assert _parse(f"Here it is:\n```json\n{json.dumps(said)}\n```") == expected
    assert json.loads(SCHEMA)["required"] == list(said)


def test_what_is_malformed_in_a_reply_is_left_out() -> None:
    findings = ["One.", {"explanation": "Two."}, {"summary": " "}, 3, None, {"summary": "Four.", "explanation": 4}]
    reply = _parse(json.dumps({"name": "Ports", "description": "They trade.", "findings": findings}))
    assert reply is not None
    assert reply.findings == (Finding(summary="One."), Finding(summary="Two."), Finding(summary="Four."))
    many = json.dumps({"name": "a", "description": "b", "findings": ["x"] * 40})
    assert len(getattr(_parse(many), "findings", ())) == 10
    for text in (
        "",
        "no",
        "[]",
        "7",
        '{"name": "Ports"}',
        '{"name": "", "description": "b"}',
        '{"name": 1, "description": 2}',
    ):
        assert _parse(text) is None


async def test_a_relation_is_asked_for_and_signed_with_the_users_own_instructions() -> None:
    requests: list[ChatRequest] = []

    async def ask(request: ChatRequest) -> Completion:
        requests.append(request)
        return Completion(text="They traded.", finish=FinishReason.STOP, tokens=TokenCount(), model="m")

    relation = ClusterRelation(source="a", target="b", level=1, description="", weight=1.0, n_relations=1)
    inputs = ClusterRelationInputs(relation=relation, depth=3, relations=())
    lower = LowerReports(reports=[ClusterReport(cluster=name, title=name, summary="") for name in "ab"], documents=[])
    own = PromptText(prompt="aggregate_relation", text="Say it in verse. {language} {max_words}")
    models = []
    for prompts in ((), (own,)):
        writer = AggregateWriter(ask=ask, tokenizer=ByteTokenizer(), prompts=prompts)
        models.append((await writer.write_relation(inputs, lower)).model)
    default, versed = (request.messages[0].text for request in requests)
    assert "Say it in verse." in versed and "Say it in verse." not in default
    assert models[0] == "m aggregate/1" and models[1].startswith("m aggregate/1+")
