"""Tests of what the server accepts, and of what it says where it does not."""

from typing import Any

import pytest

from quipu.model.chat import Message
from quipu.testing.scripted.script import RequestKind, Script, Service
from quipu.testing.server import ServerHandle
from tests.unit.testing.server.client import Client

HI = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}


async def test_a_key_is_wanted_where_the_script_has_one(server: ServerHandle, client: Client) -> None:
    server.configure(Script(service=Service(api_key="sesame")))
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        rejected = await client.post("/chat/completions", HI, headers=headers)
        assert (rejected.status, rejected.error) == (401, "invalid_api_key")
        assert (await client.post("/models", None, headers=headers, method="GET")).status == 401
    accepted = await client.post("/chat/completions", HI, headers={"Authorization": "Bearer sesame"})
    assert accepted.status == 200
    assert [served.is_completed for served in server.stats().requests] == [False, False, True]


async def test_an_unknown_model_is_refused_and_known_ones_are_listed(server: ServerHandle, client: Client) -> None:
    server.configure(Script(service=Service(models=("small", "large"), context_window=8192)))
    refused = await client.chat()
    assert (refused.status, refused.error) == (404, "model_not_found")
    listed = await client.post("/models", None, method="GET")
    assert [(model["id"], model["max_model_len"]) for model in listed.json()["data"]] == [
        ("small", 8192),
        ("large", 8192),
    ]


async def test_a_context_window_holds_prompt_and_reply(server: ServerHandle, client: Client) -> None:
    server.configure(Script(service=Service(context_window=200)))
    short = (Message("user", "word " * 80),)
    assert (await client.chat(short, max_tokens=50)).status == 200
    for refused in (await client.chat(short, max_tokens=120), await client.chat((Message("user", "word " * 200),))):
        assert (refused.status, refused.error) == (400, "context_length_exceeded")
    assert (await client.embed("word " * 200)).error == "context_length_exceeded"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("max_tokens", {"max_tokens": 5}),
        ("stream_options", {"stream": True, "stream_options": {"include_usage": True}}),
        ("json_schema", {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}}),
    ],
)
async def test_a_parameter_may_be_rejected(
    server: ServerHandle, client: Client, name: str, fields: dict[str, Any]
) -> None:
    server.configure(Script(service=Service(rejects=(name,))))
    refused = await client.chat(**fields)
    assert (refused.status, refused.error) == (400, "unsupported_parameter")
    assert name in refused.json()["error"]["message"]
    assert (await client.chat()).status == 200


@pytest.mark.parametrize(
    "body", [[], {"model": "m"}, {"messages": []}, {**HI, "max_tokens": 0}, {"messages": [{"role": "wizard"}]}]
)
async def test_a_body_that_is_none_is_refused(client: Client, body: object) -> None:
    refused = await client.post("/chat/completions", body)
    assert (refused.status, refused.error) == (400, "invalid_value")


async def test_usage_may_be_kept_back(server: ServerHandle, client: Client) -> None:
    server.configure(Script(service=Service(reports_usage=False)))
    assert "usage" not in (await client.chat()).json()
    assert "usage" not in (await client.embed("a")).json()
    assert server.stats().total(RequestKind.EXTRACT).tokens.output > 0
