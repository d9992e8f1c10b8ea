"""A chat model against the scripted server and against one that sends raw bytes."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from quipu.errors import InvalidInput, Overloaded, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, FinishReason, Message, Role, TokenCount
from quipu.providers.openai.catalog import PROVIDERS, JsonSupport
from quipu.providers.openai.chat import (
    ChatCapabilities,
    ChatParameters,
    OpenAIChat,
    initial_capabilities,
    without_rejected_part,
    write_chat_request,
)
from quipu.providers.openai.endpoint import Endpoint, Target
from quipu.providers.openai.reply import ParsedReply, parse_reply
from quipu.testing.scripted.script import CannedReply, Fault, FaultName, ReplyRules, Script, Service
from quipu.testing.server import ServerHandle
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


def _script(*faults: FaultName, **service: Any) -> Script:
    return Script(
        faults=tuple(Fault(name=name) for name in faults),
        answering=ReplyRules(replies=(CannedReply(text=SAID),)),
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
    form = chat.capabilities
    assert (form.limit_name, form.has_temperature, form.has_usage_option) == ("max_tokens", False, False)
    assert form.json is JsonSupport.NONE


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


async def test_a_page_from_on_the_way_is_transient_once_the_address_has_succeeded(server: ServerHandle) -> None:
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


REQUEST = ChatRequest(
    messages=(Message("system", "Read."), Message("user", "Кипу.")),
    role=Role.EXTRACT,
    max_output_tokens=4_096,
    schema='{"type": "object"}',
)


def _target(provider: str = "openai", model: str = "gpt-4.1-mini") -> Target:
    return Target(endpoint=endpoint("http://gate.example/v1", provider), model=model)


def _body(
    form: ChatCapabilities, parameters: ChatParameters | None = None, request: ChatRequest = REQUEST
) -> dict[str, object]:
    parsed: dict[str, object] = json.loads(
        write_chat_request(request, _target(), form, parameters or ChatParameters(), is_streamed=form.can_stream)
    )
    return parsed


def _rejected(message: str, param: str = "", status: int = 400) -> ParsedReply:
    return parse_reply(status, {}, json.dumps({"error": {"message": message, "param": param or None}}).encode())


def test_a_request_is_written_in_full() -> None:
    assert _body(ChatCapabilities()) == {
        "model": "gpt-4.1-mini",
        "messages": [{"role": "system", "content": "Read."}, {"role": "user", "content": "Кипу."}],
        "max_tokens": 4_096,
        "temperature": 0.0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": {"type": "object"}, "strict": True},
        },
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_what_a_server_does_not_take_is_left_out() -> None:
    form = ChatCapabilities(has_temperature=False, json=JsonSupport.NONE, has_usage_option=False, can_stream=False)
    assert set(_body(form)) == {"model", "messages", "max_tokens"}
    assert _body(replace(form, json=JsonSupport.OBJECT))["response_format"] == {"type": "json_object"}


def test_free_text_is_asked_for_without_a_format() -> None:
    assert "response_format" not in _body(ChatCapabilities(), request=replace(REQUEST, schema=""))


def test_parameters_of_the_user_count_over_all_others() -> None:
    extra = '{"temperature": null, "reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": false}}'
    body = _body(ChatCapabilities(), ChatParameters(extra=extra, max_output_tokens=100))
    assert "temperature" not in body
    assert (body["reasoning_effort"], body["max_tokens"]) == ("low", 100)
    assert _body(ChatCapabilities(), ChatParameters(temperature=0.7))["temperature"] == 0.7


def test_the_lowest_limit_on_output_counts() -> None:
    assert _body(ChatCapabilities(max_output=50), ChatParameters(max_output_tokens=100))["max_tokens"] == 50
    assert _body(ChatCapabilities(max_output=9_999), ChatParameters(max_output_tokens=9_999))["max_tokens"] == 4_096


def test_half_a_character_does_not_stop_a_request() -> None:
    halved = replace(REQUEST, messages=(Message("user", "\ud83e"),))
    assert _body(ChatCapabilities(), request=halved)["messages"] == [{"role": "user", "content": "?"}]


@pytest.mark.parametrize("extra", ["[]", "no json", '{"api_key": "sk-SENTINEL"}'])
def test_extra_parameters_that_are_no_object_or_hold_a_key_are_refused(extra: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ChatParameters(extra=extra)
    assert "SENTINEL" not in str(caught.value)


def test_only_what_changes_replies_is_part_of_the_identity() -> None:
    assert ChatParameters(is_streamed=False).identity() == ""
    first = ChatParameters(extra='{"b": 1, "a": 2}', temperature=0.2).identity()
    assert first == ChatParameters(extra='{"a":2,"b":1}', temperature=0.2).identity()
    assert first != ChatParameters(extra='{"a":2,"b":1}').identity() != ChatParameters(max_output_tokens=5).identity()
    assert "kober" not in ChatParameters(extra='{"user": "kober"}').identity()


@pytest.mark.parametrize(
    ("provider", "model", "limit_name", "has_temperature"),
    [
        ("openai", "gpt-4.1-mini", "max_completion_tokens", True),
        ("openai", "gpt-5-mini", "max_completion_tokens", False),
        ("openai", "gpt-5-chat-latest", "max_completion_tokens", True),
        ("openai", "o4-mini", "max_completion_tokens", False),
        ("azure", "my-deployment", "max_tokens", True),
        ("ollama", "gpt-oss:20b", "max_tokens", True),
    ],
)
def test_what_is_known_is_not_tried(provider: str, model: str, limit_name: str, has_temperature: bool) -> None:
    form = initial_capabilities(_target(provider, model))
    assert (form.limit_name, form.has_temperature) == (limit_name, has_temperature)


@pytest.mark.parametrize(
    ("said", "changed"),
    [
        (
            _rejected(
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
                "max_tokens",
            ),
            {"limit_name": "max_completion_tokens"},
        ),
        (
            _rejected("Unsupported value: 'temperature' does not support 0.0 with this model.", "temperature"),
            {"has_temperature": False},
        ),
        (_rejected("This model does not support temperature."), {"has_temperature": False}),
        (
            _rejected(
                "max_tokens is too large: 32768. This model supports at most 16384 completion tokens", "max_tokens"
            ),
            {"max_output": 16_384},
        ),
        (_rejected("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), {"max_output": 8_192}),
        (
            _rejected(
                "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for claude-4-0514"
            ),
            {"max_output": 32_000},
        ),
        (
            _rejected("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`"),
            {"max_output": 8_192},
        ),
        (_rejected("Invalid parameter: 'response_format' of type 'json_schema' is not supported"), {"json": "object"}),
        (_rejected("Extra inputs are not permitted", "stream_options", 422), {"has_usage_option": False}),
        (_rejected("Unrecognized request argument supplied: stream_options"), {"has_usage_option": False}),
        (_rejected("Your organization must be verified to stream this model.", "stream"), {"can_stream": False}),
        (_rejected("Streaming is not supported."), {"can_stream": False}),
    ],
)
def test_what_a_server_rejects_by_name_is_changed_and_nothing_else(
    said: ParsedReply, changed: dict[str, object]
) -> None:
    form = ChatCapabilities(limit_name="max_tokens")
    assert without_rejected_part(form, said) == replace(form, **changed)  # type: ignore[arg-type]


def test_json_is_given_up_step_by_step() -> None:
    said = _rejected("response_format is not supported", "response_format")
    first = without_rejected_part(ChatCapabilities(), said)
    second = without_rejected_part(first, said) if first else None
    assert [first and first.json, second and second.json] == [JsonSupport.OBJECT, JsonSupport.NONE]
    assert second is not None
    assert without_rejected_part(second, said) is None


def test_a_limit_may_have_its_older_name() -> None:
    form = ChatCapabilities(limit_name="max_completion_tokens")
    changed = without_rejected_part(form, _rejected("Extra inputs are not permitted", "max_completion_tokens", 422))
    assert changed == replace(form, limit_name="max_tokens")


@pytest.mark.parametrize(
    "said",
    [
        _rejected("Unknown parameter: 'foo'", "foo"),
        _rejected("temperature", status=500),
        _rejected("'messages[0].content' must be text, 'temperature' is fine", "messages"),
    ],
)
def test_an_error_about_something_else_changes_nothing(said: ParsedReply) -> None:
    assert without_rejected_part(ChatCapabilities(), said) is None


def test_what_was_changed_before_is_not_changed_again() -> None:
    assert (
        without_rejected_part(ChatCapabilities(has_temperature=False), _rejected("no temperature", "temperature"))
        is None
    )
    assert without_rejected_part(ChatCapabilities(has_usage_option=False), _rejected("no", "stream_options")) is None
    assert without_rejected_part(ChatCapabilities(can_stream=False), _rejected("no", "stream")) is None
