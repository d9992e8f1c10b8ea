"""What one small call shows of a model."""

import json
from collections.abc import Callable
from itertools import count as counting

import pytest

from quipu.providers.openai.catalog import JsonSupport
from quipu.providers.openai.embeddings import EmbeddingParameters, open_embedder
from quipu.providers.openai.probe import probe_chat, probe_embedder, probe_reranker
from quipu.providers.openai.rerank import HttpReranker
from quipu.testing.scripted.script import CannedReply, ReplyRules, Script, Service
from quipu.testing.server import ServerHandle
from tests.unit.providers.openai.raw import (
    STREAM,
    Answer,
    Asked,
    answering,
    chat_reply,
    chatting,
    count,
    endpoint,
    event,
    failure,
    reply,
)

FITTING = '{"quipu": "A knot is a bend in a cord."}'


def _clock(step_s: float = 1.0) -> Callable[[], float]:
    ticks = counting()
    return lambda: next(ticks) * step_s


def _serving(chat: Answer, **others: object) -> Callable[[Asked], bytes]:
    """Answer chat with these bytes and a path's last word with JSON."""

    def answer(asked: Asked) -> bytes:
        if asked.path.endswith("/chat/completions"):
            assert isinstance(chat, bytes)
            return chat
        return reply(others.get(asked.path.rpartition("/")[2], {}))

    return answer


async def test_a_model_that_works_is_described() -> None:
    stream = STREAM + event({"content": FITTING[:9]}) + event({"content": FITTING[9:]}, "stop")
    usage = json.dumps({"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 40}})
    listed = {"data": [{"id": "gpt-4.1-mini", "max_model_len": 32_768}]}
    answer = _serving(stream + f"data: {usage}\n\n".encode(), models=listed)
    async with answering(answer) as raw, chatting(raw.url, "vllm") as chat:
        found = await probe_chat(chat, _clock())
    assert (found.name, found.is_reachable, found.problem) == ("vllm/gpt-4.1-mini", True, "")
    assert (found.is_listed, found.json, found.context_window) == (True, JsonSupport.SCHEMA, 32_768)
    assert (found.first_token_s, found.tokens_per_s, found.took_s) == (1.0, 40.0, 3.0)
    assert found.advice == ()


@pytest.mark.parametrize(
    ("text", "ability"),
    [
        (FITTING, JsonSupport.SCHEMA),
        (f"<think>Hm.</think>\n```json\n{FITTING}\n```", JsonSupport.SCHEMA),
        ('{"knot": "A bend."}', JsonSupport.OBJECT),
        ("A knot is a bend.", JsonSupport.NONE),
    ],
)
async def test_what_is_enforced_of_a_reply_is_seen_by_the_reply(text: str, ability: JsonSupport) -> None:
    async with answering(_serving(chat_reply(text))) as raw, chatting(raw.url) as chat:
        assert (await probe_chat(chat)).json is ability


async def test_json_that_nobody_enforced_counts_as_none() -> None:
    async with answering(_serving(chat_reply(FITTING))) as raw, chatting(raw.url, "anthropic") as chat:
        assert (await probe_chat(chat)).json is JsonSupport.NONE


@pytest.mark.parametrize(
    ("provider", "others", "advice"),
    [
        (
            "ollama",
            {"ps": {"models": [{"name": "gpt-4.1-mini", "context_length": 4096}]}},
            "OLLAMA_CONTEXT_LENGTH=16384",
        ),
        ("llamacpp", {"props": {"default_generation_settings": {"n_ctx": 4096}}}, "llama-server with -c 16384"),
        ("custom", {"models": {"data": [{"id": "gpt-4.1-mini", "context_length": 4096}]}}, "chunk_tokens"),
    ],
)
async def test_a_window_too_small_for_extraction_comes_with_what_to_change(
    provider: str, others: dict[str, object], advice: str
) -> None:
    async with answering(_serving(chat_reply(FITTING), **others)) as raw, chatting(raw.url, provider) as chat:
        found = await probe_chat(chat)
    assert "A context window of 4,096 tokens is too small for extraction." in found.advice[0]
    assert advice in found.advice[0]


async def test_a_model_that_only_thinks_and_one_that_is_slow_are_told() -> None:
    async with answering(_serving(chat_reply("<think>Hm, a knot", "length"))) as raw, chatting(raw.url) as chat:
        found = await probe_chat(chat, _clock(100.0))
    assert "reasoning_effort" in found.advice[0]
    assert "tokens a second" in found.advice[1]


async def test_a_model_the_server_does_not_list_is_told_from_a_server_without_a_list() -> None:
    listed = {"data": [{"id": "another"}]}
    async with answering(_serving(chat_reply(FITTING), models=listed)) as raw, chatting(raw.url) as chat:
        assert (await probe_chat(chat)).is_listed is False
    async with answering(_serving(chat_reply(FITTING))) as raw, chatting(raw.url) as chat:
        assert (await probe_chat(chat)).is_listed is None


async def test_a_call_that_fails_is_described_with_its_remedy() -> None:
    async with answering(failure(401, "no")) as raw, chatting(raw.url) as chat:
        found = await probe_chat(chat)
    assert found.is_reachable
    assert "answered 401" in found.problem
    assert "OPENAI_API_KEY" in found.remedy
    async with chatting("http://127.0.0.1:9/v1", "ollama") as chat:
        found = await probe_chat(chat)
    assert (found.is_reachable, "ollama serve" in found.remedy) == (False, True)


async def test_an_embedder_is_described(server: ServerHandle) -> None:
    server.configure(Script(service=Service(dimension=48)))
    where = endpoint(server.base_url, "vllm")
    for dimension, problem in ((48, ""), (47, "")):
        embedder = await open_embedder(
            where, "m", count_tokens=count, parameters=EmbeddingParameters(dimension=dimension)
        )
        found = await probe_embedder(embedder, _clock())
        await embedder.aclose()
        assert (found.dimension, found.took_s, found.problem) == (dimension, 1.0, problem)
    server.configure(Script(service=Service(rejects=("dimensions",), dimension=48)))
    embedder = await open_embedder(where, "m", count_tokens=count, parameters=EmbeddingParameters(dimension=9))
    assert "vectors of 48 numbers where 9 were expected" in (await probe_embedder(embedder)).problem
    await embedder.aclose()


async def test_a_reranker_is_described(server: ServerHandle) -> None:
    server.configure(Script(answering=ReplyRules(replies=(CannedReply(text="x"),))))
    reranker = HttpReranker(endpoint(server.base_url, "jina"), "m", count_tokens=count)
    found = await probe_reranker(reranker, "jina/m", "here", _clock())
    await reranker.aclose()
    assert (found.name, found.host, found.problem, found.advice, found.took_s) == ("jina/m", "here", "", (), 1.0)
    upside_down = reply({"results": [{"index": 0, "relevance_score": 0}, {"index": 1, "relevance_score": 1}]})
    async with answering(upside_down) as raw:
        odd = HttpReranker(endpoint(raw.url, "jina"), "m", count_tokens=count)
        assert "is it a reranker?" in (await probe_reranker(odd, "jina/m", "here")).advice[0]
        await odd.aclose()
    async with answering(failure(500, "no")) as raw:
        broken = HttpReranker(endpoint(raw.url, "jina"), "m", count_tokens=count)
        assert "answered 500" in (await probe_reranker(broken, "jina/m", "here")).problem
        await broken.aclose()
