"""Keys are shown nowhere: not when a server repeats them, not in any form of any error."""

import logging
import traceback
from collections.abc import Awaitable, Callable

import pytest

from quipu.errors import QuipuError
from quipu.model.secret import Secret
from quipu.providers.openai.catalog import PROVIDERS
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import open_embedder
from quipu.providers.openai.endpoint import Endpoint, Timeouts
from quipu.providers.openai.probe import probe_chat
from quipu.providers.openai.rerank import HttpReranker
from tests.unit.providers.openai.raw import (
    HELLO,
    STREAM,
    Answer,
    Asked,
    answering,
    chat_reply,
    count,
    failure,
    reply,
)

SENTINEL = "sk-SENTINEL-d41d8cd98f00b204"
PIECE = "SENTINEL"

Call = Callable[[Endpoint], Awaitable[object]]


def _echo(status: int) -> Callable[[Asked], bytes]:
    return lambda asked: failure(
        status, f"Incorrect key provided: {asked.headers.get('authorization')}.", code=SENTINEL
    )


ANSWERS: dict[str, Answer] = {
    **{str(status): _echo(status) for status in (301, 400, 401, 403, 404, 413, 422, 429, 500, 503, 200)},
    "html": lambda asked: reply(f"<html><title>{asked.headers.get('authorization')}</title></html>"),
    "text": lambda asked: reply(f"no: {asked.headers}", 500),
    "other json": lambda asked: reply({"seen": dict(asked.headers)}),
    "unknown model": lambda asked: (
        failure(404, "model not found") if asked.fields else reply({"data": [{"id": SENTINEL}]})
    ),
    "refusal": reply({"choices": [{"message": {"refusal": f"not with {SENTINEL}"}, "finish_reason": "stop"}]}),
    "stream error": STREAM + b'data: {"error": {"message": "' + SENTINEL.encode() + b'"}}\n\n',
    "cut": b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + SENTINEL.encode(),
    "garbage": SENTINEL.encode() + b"\r\n\r\n",
    "bad header": b"HTTP/1.1 200 OK\r\nA " + SENTINEL.encode() + b"\r\n\r\n",
    "redirect": b"HTTP/1.1 307 X\r\nLocation: /" + SENTINEL.encode() + b"\r\nContent-Length: 0\r\n\r\n",
    "halved": lambda asked: failure(401, f"Bad key {SENTINEL[:20]}…"),
    "no answer": b"",
}


async def _chat(endpoint: Endpoint) -> None:
    chat = OpenAIChat(endpoint, "m", count_tokens=count)
    try:
        await chat.complete(HELLO)
    finally:
        await chat.aclose()


async def _embed(endpoint: Endpoint) -> None:
    await open_embedder(endpoint, "m", count_tokens=count)


async def _rerank(endpoint: Endpoint) -> None:
    reranker = HttpReranker(endpoint, "m", count_tokens=count)
    try:
        await reranker.score("q", ["a"])
    finally:
        await reranker.aclose()


def _endpoint(url: str) -> Endpoint:
    return Endpoint(
        provider=PROVIDERS["custom"],
        base_url=url.replace("//", f"//user:{SENTINEL}@", 1) + f"?token={SENTINEL}",
        key=Secret(SENTINEL),
        timeouts=Timeouts(connect_s=1.0, silence_s=0.1, total_s=0.1),
    )


def _shown(error: BaseException) -> str:
    chain = "".join(traceback.format_exception(error))
    behind = error.__cause__ or error.__context__
    return f"{error} {error!r} {error.args} {vars(error)} {chain} {_shown(behind) if behind else ''}"


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("call", [_chat, _embed, _rerank], ids=lambda call: call.__name__)
async def test_no_error_shows_a_key(name: str, call: Call, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with answering(ANSWERS[name]) as raw:
        endpoint = Endpoint(
            provider=PROVIDERS["openai"],
            base_url=raw.url,
            key=Secret(SENTINEL),
            timeouts=Timeouts(connect_s=1.0, silence_s=0.1, total_s=0.1),
        )
        with pytest.raises(QuipuError) as caught:
            await call(endpoint)
        assert PIECE not in _shown(caught.value)
    assert PIECE not in caplog.text


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1", "https://127.0.0.1:9/v1"])
@pytest.mark.parametrize("call", [_chat, _embed, _rerank], ids=lambda call: call.__name__)
async def test_no_error_of_a_connection_shows_what_is_in_the_address(url: str, call: Call) -> None:
    with pytest.raises(QuipuError) as caught:
        await call(_endpoint(url))
    assert PIECE not in _shown(caught.value)


async def test_no_finding_shows_a_key() -> None:
    async with answering(chat_reply("{}")) as raw:
        chat = OpenAIChat(
            Endpoint(provider=PROVIDERS["openai"], base_url=raw.url, key=Secret(SENTINEL)), "m", count_tokens=count
        )
        assert PIECE not in repr(await probe_chat(chat)) + chat.identity + repr(chat.target)
        await chat.aclose()
