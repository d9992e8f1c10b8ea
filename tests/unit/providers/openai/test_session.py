"""Connections: made late, once for each event loop, and never through a proxy to this machine."""

import subprocess
import sys

import pytest

from quipu.providers.openai.client import proxy_for
from quipu.providers.openai.endpoint import Endpoint, Target
from quipu.providers.openai.session import HttpSession, ListedModel, find_context_window, list_models, parse_model_list
from tests.unit.providers.openai.raw import Answer, Asked, RawServer, answering, endpoint, reply

_OFFLINE = """
import sys
from quipu.providers.litellm import LiteLlm
from quipu.providers.openai.catalog import PROVIDERS
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import OpenAIEmbedder
from quipu.providers.openai.endpoint import Endpoint
from quipu.providers.openai.probe import probe_chat
from quipu.providers.openai.rerank import HttpReranker
where = Endpoint(provider=PROVIDERS["ollama"])
OpenAIChat(where, "m", count_tokens=len), HttpReranker(where, "m", count_tokens=len)
assert "aiohttp" not in sys.modules , "too early"
"""


def test_nothing_of_http_is_imported_before_the_first_request() -> None:
    ran = subprocess.run([sys.executable, "-c", _OFFLINE], capture_output=True, text=True, check=False)
    assert ran.stderr == ""


def _endpoint(url: str) -> Endpoint:
    return endpoint(url)


def test_the_proxy_of_the_system_is_used_but_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_for(_endpoint("http://outside.example/v1")) == "http://proxy.example:3128"
    assert proxy_for(_endpoint("http://inside.example:8000/v1")) is None
    assert proxy_for(_endpoint("http://localhost:11434/v1")) is None
    assert proxy_for(_endpoint("http://[::1]:11434/v1")) is None


@pytest.mark.parametrize(
    ("body", "listed"),
    [
        ({"data": [{"id": "a", "context_length": 8192}]}, ListedModel(name="a", context_window=8_192)),
        ({"data": [{"id": "a", "max_model_len": 4096}]}, ListedModel(name="a", context_window=4_096)),
        ({"data": [{"id": "a", "context_window": 131072}]}, ListedModel(name="a", context_window=131_072)),
        (
            {"data": [{"id": "a", "max_context_length": 9, "loaded_context_length": 5}]},
            ListedModel(name="a", context_window=5),
        ),
        ({"data": [{"id": "models/gemini-2.5-flash"}]}, ListedModel(name="gemini-2.5-flash")),
        ([{"id": "a", "context_length": 0}], ListedModel(name="a")),
        ({"models": [{"name": "a"}]}, ListedModel(name="a")),
    ],
)
def test_lists_of_every_form_are_read(body: object, listed: ListedModel) -> None:
    assert parse_model_list(body) == [listed]


@pytest.mark.parametrize("body", [None, {}, [], {"data": [None, "a", {"id": 3}]}, {"data": {}}, "no"])
def test_what_is_no_list_is_empty(body: object) -> None:
    assert parse_model_list(body) == []


async def _window(provider: str, answer: Answer, model: str = "qwen3:8b") -> tuple[int | None, RawServer]:
    async with answering(answer) as raw:
        session = HttpSession(Target(endpoint=endpoint(raw.url, provider), model=model))
        found = await find_context_window(session)
        await session.aclose()
    return found, raw


async def test_the_window_ollama_has_loaded_a_model_with_is_found() -> None:
    running = reply({"models": [{"name": "other", "context_length": 9}, {"name": "qwen3:8b", "context_length": 4096}]})
    found, raw = await _window("ollama", running)
    assert (found, [each.path for each in raw.asked]) == (4_096, ["/api/ps"])


async def test_the_window_in_the_file_of_a_model_is_found_where_ollama_does_not_tell_the_other() -> None:
    def answer(asked: Asked) -> bytes:
        if asked.path == "/api/show" and asked.fields == {"model": "qwen3:8b"}:
            return reply({"parameters": 'stop "<|im_end|>"\nnum_ctx                        16384\n'})
        return reply({"models": []})

    assert (await _window("ollama", answer))[0] == 16_384


@pytest.mark.parametrize(
    ("provider", "path", "body"),
    [
        ("llamacpp", "/props", {"default_generation_settings": {"n_ctx": 2048}}),
        ("lmstudio", "/api/v0/models", {"data": [{"id": "qwen3:8b", "loaded_context_length": 2048}]}),
        ("vllm", "/v1/models", {"data": [{"id": "qwen3:8b", "max_model_len": 2048}]}),
    ],
)
async def test_other_servers_tell_it_in_their_own_places(provider: str, path: str, body: object) -> None:
    found, raw = await _window(provider, reply(body))
    assert (found, [each.path for each in raw.asked]) == (2_048, [path])


@pytest.mark.parametrize("answer", [reply("<html></html>"), reply({}, 404), reply({"parameters": "num_ctx x"}), b"no"])
@pytest.mark.parametrize("provider", ["ollama", "llamacpp", "openai"])
async def test_a_window_that_nobody_tells_is_unknown(provider: str, answer: bytes) -> None:
    assert (await _window(provider, answer))[0] is None


async def test_a_server_that_does_not_answer_lists_nothing() -> None:
    session = HttpSession(Target(endpoint=endpoint("http://127.0.0.1:9/v1"), model="m"))
    assert await list_models(session) == []
    await session.aclose()
