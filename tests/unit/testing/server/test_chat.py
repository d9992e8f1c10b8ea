"""Tests of chat completions over HTTP."""

import asyncio
import json
from typing import Any

import pytest

from quipu.model.chat import Message, TokenCount
from quipu.testing.scripted.model import ScriptedModel
from quipu.testing.scripted.script import Latency, RequestKind, Script, Service
from quipu.testing.server import ServerHandle
from tests.unit.testing.scripted.prompts import call, extraction
from tests.unit.testing.server.client import Client

PING = (Message("user", "Reply with OK."),)


async def test_a_reply_is_what_the_model_of_this_process_says(client: Client) -> None:
    spoken = ScriptedModel(Script()).complete(call(extraction()))
    response = await client.chat()
    assert response.text == spoken.text
    assert response.json()["choices"][0]["finish_reason"] == "stop"
    assert response.json()["usage"] == {
        "prompt_tokens": spoken.tokens.input,
        "completion_tokens": spoken.tokens.output,
        "total_tokens": spoken.tokens.input + spoken.tokens.output,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


async def test_a_streamed_reply_is_the_same_in_pieces(client: Client) -> None:
    whole = await client.chat()
    streamed = await client.chat(stream=True)
    assert streamed.text == whole.text
    assert len(streamed.events()) > 10
    assert streamed.events()[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert streamed.events()[-1]["choices"][0]["finish_reason"] == "stop"
    assert streamed.body.endswith(b"data: [DONE]\n\n")


async def test_a_stream_says_what_it_cost_only_if_asked(client: Client) -> None:
    whole = await client.chat()
    asked = await client.chat(stream=True, stream_options={"include_usage": True})
    assert asked.events()[-1]["usage"] == whole.json()["usage"]
    assert asked.events()[-1]["choices"] == []
    assert not [event for event in (await client.chat(stream=True)).events() if "usage" in event]


async def test_both_limits_on_output_cut_the_reply(client: Client) -> None:
    whole = (await client.chat()).text
    for name in ("max_tokens", "max_completion_tokens"):
        for is_streamed in (False, True):
            limit: dict[str, Any] = {name: 10}
            cut = await client.chat(stream=is_streamed, **limit)
            assert cut.text == whole[:40]
            last = cut.events()[-1] if is_streamed else cut.json()
            assert last["choices"][0]["finish_reason"] == "length"


async def test_a_response_format_is_obeyed_or_ignored_as_the_script_says(server: ServerHandle, client: Client) -> None:
    schema = {"type": "object", "properties": {"reply": {"type": "string"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    assert json.loads((await client.chat(PING, response_format=wanted)).text) == {"reply": "You said: Reply with OK."}
    assert "entities" in json.loads((await client.chat(response_format={"type": "json_object"})).text)
    assert (await client.chat(response_format={"type": "text"})).text.startswith("entity<|>")
    server.configure(Script(service=Service(ignores_format=True)))
    assert (await client.chat(response_format={"type": "json_object"})).text.startswith("entity<|>")


async def test_content_may_come_in_parts_and_developers_are_the_system(client: Client) -> None:
    parts = [{"type": "text", "text": "Reply "}, {"type": "text", "text": "with OK."}]
    messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}]
    response = await client.post("/chat/completions", {"model": "m", "messages": messages})
    assert response.text == "You said: Reply with OK."


async def test_azure_names_the_model_in_the_path(server: ServerHandle, client: Client) -> None:
    server.configure(Script(service=Service(models=("mine",), api_key="sesame")))
    body = {"messages": [{"role": "user", "content": "Reply with OK."}]}
    url = f"{server.azure_url('mine')}/chat/completions?api-version=2024-10-21"
    response = await client.post(url, body, headers={"api-key": "sesame"})
    assert (response.status, response.json()["model"]) == (200, "mine")
    other = await client.post(url.replace("mine", "other"), body, headers={"api-key": "sesame"})
    assert (other.status, other.error) == (404, "model_not_found")


async def test_the_beginning_of_an_earlier_prompt_is_reported_as_cached(server: ServerHandle, client: Client) -> None:
    server.configure(Script(service=Service(caches_prefixes=True)))
    rules = Message("system", "Knowledge graph extraction\n" + "Follow the rules. " * 400)
    first = await client.chat((rules, Message("user", "One.")))
    second = await client.chat((rules, Message("user", "Two.")))
    cached = [each.json()["usage"]["prompt_tokens_details"]["cached_tokens"] for each in (first, second)]
    assert cached[0] == 0 and 1024 <= cached[1] < second.json()["usage"]["prompt_tokens"]
    assert server.stats().total(RequestKind.EXTRACT).tokens.cached == cached[1]


async def test_the_ledger_agrees_with_what_the_client_was_told(server: ServerHandle, client: Client) -> None:
    responses = await asyncio.gather(*(client.chat(extraction(f"Anna met Bruno{n}.")) for n in range(20)))
    usages = [response.json()["usage"] for response in responses]
    stats = server.stats()
    assert stats.total(RequestKind.EXTRACT).n_completed == len(stats.requests) == 20
    assert stats.total().tokens == TokenCount(
        input=sum(usage["prompt_tokens"] for usage in usages),
        output=sum(usage["completion_tokens"] for usage in usages),
    )


async def test_slow_tokens_arrive_one_by_one_and_make_the_same_reply(server: ServerHandle, client: Client) -> None:
    whole = (await client.chat(PING)).text
    server.configure(Script(latency=Latency(mean_s=0.004, first_share=0.5, piece_s=0.003)))
    assert (await client.chat(PING, stream=True)).text == whole
    assert (await client.chat(PING)).text == whole
    slow_s = pytest.approx(0.004 + 0.003 * 2)  # of 25 characters
    assert [served.latency_s for served in server.stats().requests] == [0, slow_s, slow_s]
