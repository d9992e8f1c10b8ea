"""A chat model against the scripted server and against one that sends raw bytes."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from quipu.errors import Overloaded, Refused, TooLong, Unavailable
from quipu.model.chat import FinishReason, Message, TokenCount
from quipu.providers.openai.catalog import PROVIDERS, JsonAbility
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.endpoint import Endpoint
from quipu.providers.openai.form import ChatParameters
from quipu.testing.scripted.fault import Fault, FaultName
from quipu.testing.scripted.script import Answering, Reply, Script, Service
from quipu.testing.server import ServerHandle, serving
from tests.unit.providers.openai.raw import (
    HELLO,
    KEY,
    STREAM,
    answering,
    chat_reply,
    chatting,
    count,
    endpoint,
    event,
    failure,
    reply,
    speaking_first,
)

WHOLE = ChatParameters(is_streamed=False)
SAID = "Knots are records."


@pytest.fixture(scope="module")
def server() -> Iterator[ServerHandle]:
    with serving() as handle:
        yield handle


def _script(*faults: FaultName, **service: Any) -> Script:
    return Script(
        faults=tuple(Fault(name=name) for name in faults),
        answering=Answering(replies=(Reply(text=SAID),)),
        service=Service(piece_chars=6, **service),
    )


@pytest.mark.parametrize("parameters", [ChatParameters(), WHOLE])
async def test_a_reply_comes_with_what_the_server_counted(server: ServerHandle, parameters: ChatParameters) -> None:
    server.configure(_script(api_key=KEY))
    async with chatting(server.base_url, parameters=parameters) as chat:
        completion = await chat.complete(HELLO)
    assert (completion.text, completion.finish, completion.is_estimate) == (SAID, FinishReason.STOP, False)
    assert completion.tokens.input > 0 < completion.tokens.output


@pytest.mark.parametrize("parameters", [ChatParameters(), WHOLE])
async def test_whoever_watches_is_given_the_pieces_of_the_text(
    server: ServerHandle, parameters: ChatParameters
) -> None:
    server.configure(_script())
    pieces: list[str] = []
    async with chatting(server.base_url, parameters=parameters) as chat:
        completion = await chat.complete(HELLO, pieces.append)
    assert "".join(pieces) == completion.text == SAID
    assert len(pieces) == 3


async def test_a_server_that_does_not_count_is_counted_for(server: ServerHandle) -> None:
    server.configure(_script(FaultName.NO_USAGE))
    async with chatting(server.base_url) as chat:
        completion = await chat.complete(HELLO)
    assert completion.is_estimate
    assert completion.tokens == TokenCount(input=1, output=3)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (FaultName.BAD_REQUEST, Refused),
        (FaultName.TOO_MANY_REQUESTS, Overloaded),
        (FaultName.QUOTA, Unavailable),
        (FaultName.SERVER_ERROR, Overloaded),
        (FaultName.BAD_GATEWAY, Overloaded),
        (FaultName.SERVICE_UNAVAILABLE, Overloaded),
        (FaultName.RESET, Overloaded),
        (FaultName.ERROR_IN_200, Overloaded),
        (FaultName.NOT_JSON, Unavailable),
    ],
)
@pytest.mark.parametrize("parameters", [ChatParameters(), WHOLE])
async def test_every_fault_instead_of_a_reply_is_one_error(
    server: ServerHandle, name: FaultName, kind: type[Exception], parameters: ChatParameters
) -> None:
    server.configure(_script(name))
    async with chatting(server.base_url, parameters=parameters) as chat:
        with pytest.raises(kind, match=r"openai/gpt-4\.1-mini at 127\.0\.0\.1"):
            await chat.complete(HELLO)


@pytest.mark.parametrize(
    "name",
    [FaultName.RESET_MIDWAY, FaultName.CUT_BODY, FaultName.UNFINISHED, FaultName.ERROR_MIDWAY, FaultName.STALL],
)
async def test_a_stream_that_breaks_off_keeps_its_text(server: ServerHandle, name: FaultName) -> None:
    server.configure(replace(_script(), faults=(Fault(name=name, n_pieces=2),)))
    pieces: list[str] = []
    async with chatting(server.base_url, silence_s=0.1) as chat:
        completion = await chat.complete(HELLO, pieces.append)
    assert completion.finish is FinishReason.INTERRUPTED
    assert completion.text == "".join(pieces) == SAID[:12]
    assert completion.is_estimate
    assert completion.tokens.output == count(SAID[:12])


@pytest.mark.parametrize("name", [FaultName.RESET_MIDWAY, FaultName.CUT_BODY, FaultName.STALL])
async def test_a_whole_reply_that_breaks_off_is_no_reply(server: ServerHandle, name: FaultName) -> None:
    server.configure(_script(name))
    async with chatting(server.base_url, parameters=WHOLE, total_s=0.2) as chat:
        with pytest.raises(Overloaded) as caught:
            await chat.complete(HELLO)
    assert caught.value.may_cost


@pytest.mark.parametrize("parameters", [ChatParameters(), WHOLE])
async def test_a_server_that_never_answers_is_left_after_a_while(
    server: ServerHandle, parameters: ChatParameters
) -> None:
    server.configure(_script(FaultName.TIMEOUT))
    async with chatting(server.base_url, parameters=parameters, silence_s=0.05, total_s=0.1) as chat:
        with pytest.raises(Overloaded, match=r"did not answer in time\. Raise llm_timeout_s") as caught:
            await chat.complete(HELLO)
    assert caught.value.may_cost


async def test_a_reply_cut_by_the_limit_or_a_filter_says_so(server: ServerHandle) -> None:
    async with chatting(server.base_url) as chat:
        server.configure(_script(FaultName.LENGTH))
        assert (await chat.complete(HELLO)).finish is FinishReason.LENGTH
        server.configure(_script(FaultName.FILTERED))
        filtered = await chat.complete(HELLO)
    assert (filtered.finish, bool(filtered.text)) == (FinishReason.FILTERED, True)


async def test_an_empty_reply_is_a_reply(server: ServerHandle) -> None:
    server.configure(_script(FaultName.EMPTY))
    async with chatting(server.base_url) as chat:
        assert (await chat.complete(HELLO)).text == ""


async def test_a_wrong_key_names_the_variable(server: ServerHandle) -> None:
    server.configure(_script(api_key="sk-another-key-altogether"))
    async with chatting(server.base_url) as chat:
        with pytest.raises(Unavailable, match=r"The key was not accepted\. Set QUIPU_LLM_KEY to a key of 127"):
            await chat.complete(HELLO)


async def test_an_unknown_model_is_answered_with_the_names_that_come_near(server: ServerHandle) -> None:
    server.configure(_script(models=("gpt-4.1-mini-2025", "whisper")))
    async with chatting(server.base_url) as chat:
        with pytest.raises(Unavailable, match=r"Did you mean openai/gpt-4\.1-mini-2025\?"):
            await chat.complete(HELLO)


async def test_parameters_a_server_rejects_are_not_sent_again(server: ServerHandle) -> None:
    server.reset()
    rejects = ("max_completion_tokens", "temperature", "json_schema", "json_object", "stream_options")
    server.configure(_script(rejects=rejects))
    request = replace(HELLO, schema='{"type": "object"}')
    async with chatting(server.base_url) as chat:
        await asyncio.gather(*(chat.complete(request) for _ in range(4)))
        n_asked = len(server.stats().requests)
        completion = await chat.complete(request)
        assert len(server.stats().requests) == n_asked + 1
    assert completion.text == SAID
    form = chat.form
    assert (form.limit_name, form.has_temperature, form.has_usage_option) == ("max_tokens", False, False)
    assert form.json is JsonAbility.NONE


async def test_a_request_that_fits_gets_the_room_there_is_for_its_reply(server: ServerHandle) -> None:
    server.configure(_script(context_window=2_000))
    long = replace(HELLO, messages=(Message("user", "knot " * 1_000),), max_output_tokens=4_000)
    async with chatting(server.base_url) as chat:
        assert (await chat.complete(long)).text == SAID


async def test_a_request_beyond_the_window_is_too_long(server: ServerHandle) -> None:
    server.configure(_script(context_window=500))
    long = replace(HELLO, messages=(Message("user", "knot " * 2_000),))
    async with chatting(server.base_url) as chat:
        with pytest.raises(TooLong, match=r"maximum context length is 500 tokens.*chunk_tokens"):
            await chat.complete(long)


async def test_nothing_answers_at_a_closed_port() -> None:
    async with chatting("http://127.0.0.1:9/v1", "ollama") as chat:
        with pytest.raises(
            Overloaded, match=r"Nothing answers at 127\.0\.0\.1:9.*Start Ollama \(ollama serve\)"
        ) as caught:
            await chat.complete(HELLO)
        assert not caught.value.may_cost


async def test_a_host_that_does_not_exist_is_named() -> None:
    async with chatting("http://no-such-host.invalid/v1", "custom") as chat:
        with pytest.raises(Overloaded, match=r"no-such-host\.invalid"):
            await chat.complete(HELLO)


async def test_a_missing_key_is_noticed_before_anything_is_sent() -> None:
    chat = OpenAIChat(Endpoint(provider=PROVIDERS["openai"]), "gpt-4.1-mini", count_tokens=count)
    with pytest.raises(Unavailable, match=r"needs a key, and none is set\. Set OPENAI_API_KEY"):
        await chat.complete(HELLO)
    await chat.aclose()


async def test_a_page_from_on_the_way_is_transient_once_the_address_has_answered(server: ServerHandle) -> None:
    async with chatting(server.base_url) as chat:
        server.configure(_script())
        await chat.complete(HELLO)
        server.configure(_script(FaultName.NOT_JSON))
        with pytest.raises(Overloaded, match="answered 200"):
            await chat.complete(HELLO)


# Framings only raw bytes have.


@pytest.mark.parametrize(
    "body",
    [
        event({"content": "Kno"}) + event({"content": "ts"}, "stop") + b"data: [DONE]\n\n",
        event({"content": "Kno"}) + event({"content": "ts"}, "stop"),
        event({"content": "Knots"}) + b"data: [DONE]\n\n",
        event({"content": "Knots"}, "stop").rstrip(b"\n"),
        b": OPENROUTER PROCESSING\n\n" + event({"content": "Knots"}, "stop").replace(b"\n", b"\r\n"),
        b'data: {"choices": [], "prompt_filter_results": []}\n\n' + event({"content": "Knots"}, "stop"),
        event({"role": "assistant", "content": ""}) + event({"content": [{"type": "text", "text": "Knots"}]}, "stop"),
    ],
)
@pytest.mark.parametrize("size", [3, 10_000])
async def test_a_stream_is_whole_in_every_framing(body: bytes, size: int) -> None:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    async with answering([STREAM, *pieces[:40], b"".join(pieces[40:])]) as raw, chatting(raw.url) as chat:
        completion = await chat.complete(HELLO)
    assert (completion.text, completion.finish) == ("Knots", FinishReason.STOP)


async def test_a_server_that_stays_on_after_its_last_word_is_not_waited_for() -> None:
    body = event({"content": "Knots"}, "stop") + b"data: [DONE]\n\n"
    endless = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 999999\r\n\r\n" + body
    async with answering(endless) as raw, chatting(raw.url) as chat:
        assert (await chat.complete(HELLO)).finish is FinishReason.STOP


@pytest.mark.parametrize("usage", [{"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 9}, {}])
async def test_a_server_that_counts_nothing_is_counted_for(usage: dict[str, int]) -> None:
    body = {"choices": [{"message": {"content": "Knots and cords"}, "finish_reason": "stop"}], "usage": usage}
    async with answering(reply(body)) as raw, chatting(raw.url) as chat:
        completion = await chat.complete(HELLO)
    assert completion.is_estimate
    assert completion.tokens.input > 0 and completion.tokens.output > 0


async def test_a_server_that_writes_on_beyond_the_limit_is_paid_for_little_more_than_that() -> None:
    pieces = [event({"content": "knots and cords " * 10})] * 2_000
    async with answering([STREAM, *pieces]) as raw, chatting(raw.url) as chat:
        completion = await chat.complete(replace(HELLO, max_output_tokens=1_000))
    assert (completion.finish, completion.is_estimate) == (FinishReason.LENGTH, True)
    assert completion.tokens.output < 3_000


async def test_a_stream_without_any_text_is_no_reply() -> None:
    for body in (b"", b"data: [DONE]\n\n", event({"role": "assistant"}), b": only a comment\n\n"):
        async with answering(STREAM + body) as raw, chatting(raw.url) as chat:
            with pytest.raises(Overloaded, match="ended its reply before any text") as caught:
                await chat.complete(HELLO)
        assert caught.value.may_cost


async def test_an_error_as_the_first_event_is_that_error() -> None:
    body = b'data: {"error": {"message": "Rate limit", "code": 429}}\n\n'
    async with answering(STREAM + body) as raw, chatting(raw.url) as chat:
        with pytest.raises(Overloaded, match="answered 429: Rate limit"):
            await chat.complete(HELLO)


async def test_a_server_that_does_not_stream_when_asked_to_is_understood() -> None:
    async with answering(chat_reply("Knots")) as raw, chatting(raw.url) as chat:
        pieces: list[str] = []
        completion = await chat.complete(HELLO, pieces.append)
    assert (completion.text, pieces) == ("Knots", ["Knots"])


async def test_a_model_that_must_not_stream_is_asked_for_the_whole() -> None:
    unverified = failure(400, "Your organization must be verified to stream this model.", param="stream")
    async with answering(unverified, chat_reply("Knots")) as raw, chatting(raw.url) as chat:
        assert (await chat.complete(HELLO)).text == "Knots"
    assert raw.posted("stream") == [True, None]


async def test_a_model_that_spent_its_limit_on_reasoning_gave_an_empty_reply() -> None:
    message = "Could not finish the message because max_tokens or model output limit was reached."
    async with answering(failure(400, message)) as raw, chatting(raw.url) as chat:
        completion = await chat.complete(HELLO)
    assert (completion.text, completion.finish, completion.is_estimate) == ("", FinishReason.LENGTH, True)
    assert completion.tokens == TokenCount(input=1, output=1_000)
    assert len(raw.asked) == 1


async def test_a_refusal_and_a_withheld_reply_are_refused_and_may_cost() -> None:
    refusal = reply({"choices": [{"message": {"content": None, "refusal": "I cannot."}, "finish_reason": "stop"}]})
    for answer, words in ((refusal, "refused: I cannot"), (chat_reply("", "content_filter"), "filter withheld")):
        async with answering(answer) as raw, chatting(raw.url) as chat:
            with pytest.raises(Refused, match=words) as caught:
                await chat.complete(HELLO)
        assert caught.value.may_cost


async def test_half_a_reply_in_json_is_a_broken_one() -> None:
    half = b'{"choices": [{"message": {"cont'
    whole = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + half
    async with answering(whole) as raw, chatting(raw.url, parameters=WHOLE) as chat:
        with pytest.raises(Overloaded, match="broke off within its reply"):
            await chat.complete(HELLO)


@pytest.mark.parametrize(
    "answer",
    [
        reply("<html><title>Ollama is running</title></html>"),
        reply({"status": "ok"}),
        reply({"message": "hello"}, 404),
        b"HTTP/1.1 307 X\r\nLocation: https://elsewhere.example/v1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
    ],
)
async def test_what_is_no_such_server_is_told_so(answer: bytes) -> None:
    async with answering(answer) as raw, chatting(raw.url.removesuffix("/v1"), "custom") as chat:
        with pytest.raises(Unavailable, match=r"not the address of an OpenAI-compatible server.*did you forget /v1\?"):
            await chat.complete(HELLO)


async def test_encryption_where_there_is_none_is_told_so() -> None:
    async with speaking_first() as url, chatting(url.replace("http:", "https:")) as chat:
        with pytest.raises(Unavailable, match="offers no trusted encryption"):
            await chat.complete(HELLO)


async def test_a_reply_that_goes_on_beyond_all_patience_keeps_its_text() -> None:
    slow = [STREAM, *(event({"content": "x"}) for _ in range(500))]
    async with answering(slow) as raw, chatting(raw.url, silence_s=1.0, total_s=0.1) as chat:
        completion = await chat.complete(HELLO)
    assert completion.finish is FinishReason.INTERRUPTED
    assert 0 < len(completion.text) < 500


async def test_comments_do_not_count_as_signs_of_a_reply() -> None:
    comments = [STREAM, *(b": processing\n\n" for _ in range(500))]
    async with answering(comments) as raw, chatting(raw.url, silence_s=0.1) as chat:
        with pytest.raises(Overloaded, match="did not answer in time"):
            await chat.complete(HELLO)


async def test_an_error_of_whoever_watches_is_not_taken_for_the_servers() -> None:
    def stop(_text: str) -> None:
        raise Overloaded("mine")

    async with answering(STREAM + event({"content": "x"}, "stop")) as raw, chatting(raw.url) as chat:
        with pytest.raises(Overloaded, match="mine"):
            await chat.complete(HELLO, stop)


async def test_a_cancelled_call_closes_its_connection() -> None:
    async with answering(b"") as raw, chatting(raw.url) as chat:
        call = asyncio.ensure_future(chat.complete(HELLO))
        await raw.is_asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await raw.is_left.wait()


async def test_what_is_sent_names_model_key_and_the_users_parameters() -> None:
    parameters = ChatParameters(extra='{"options": {"num_ctx": 16384}}')
    async with answering(chat_reply("x")) as raw, chatting(raw.url, parameters=parameters) as chat:
        await chat.complete(HELLO)
    (asked,) = raw.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (asked.fields["model"], asked.fields["options"]) == ("gpt-4.1-mini", {"num_ctx": 16384})


def test_the_identity_names_provider_model_and_parameters_and_never_key_or_address() -> None:
    def identity(provider: str, url: str = "", parameters: ChatParameters | None = None) -> str:
        where = endpoint(url, provider)
        return OpenAIChat(where, "m", count_tokens=count, parameters=parameters or ChatParameters()).identity

    assert identity("openai") == identity("openai", "http://localhost:1/v1") == "openai/m"
    assert identity("custom", "http://gpu:1/v1") == "custom(gpu:1)/m"
    assert identity("openai", parameters=ChatParameters(temperature=0.5)) == 'openai/m?{"temperature": 0.5}'


async def test_connections_are_made_once_for_each_event_loop(server: ServerHandle) -> None:
    server.configure(_script())
    chat = OpenAIChat(endpoint(server.base_url), "m", count_tokens=count)

    async def ask() -> str:
        try:
            return (await chat.complete(HELLO)).text
        finally:
            await chat.aclose()

    texts = [await asyncio.to_thread(asyncio.run, ask()) for _ in range(2)]
    assert [*texts, await ask()] == [SAID] * 3
    await chat.aclose()
