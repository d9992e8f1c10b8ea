"""Which error an answer is: the whole table."""

import json

import pytest

from quipu.errors import Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.providers.openai.catalog import PROVIDERS
from quipu.providers.openai.endpoint import Endpoint, Target
from quipu.providers.openai.errors import (
    error_from_reply,
    max_output_that_fits,
    names_context_window,
    retry_after_s,
    start_remedy,
)
from quipu.providers.openai.reply import ParsedReply, parse_reply
from tests.unit.providers.openai.raw import endpoint


def _target(provider: str = "openai", url: str = "", model: str = "gpt-4.1-mini") -> Target:
    return Target(endpoint=endpoint(url or "http://gate.example/v1", provider), model=model)


def _error(status: int, message: str, target: Target | None = None, **named: object) -> QuipuError:
    body = json.dumps({"error": {"message": message, **named}}).encode()
    return error_from_reply(parse_reply(status, {}, body), target or _target(), clock=lambda: 0.0)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (401, "Incorrect API key provided.", Unavailable),
        (403, "Your project has no access to this model.", Unavailable),
        (400, "API key not valid. Please pass a valid API key.", Unavailable),
        (402, "Insufficient Balance", Unavailable),
        (400, "Your credit balance is too low to access the API.", Unavailable),
        (404, "The model 'gpt-9' does not exist", Unavailable),
        (400, "Model Not Exist", Unavailable),
        (400, "x is not a valid model ID", Unavailable),
        (404, "Not Found", Unavailable),
        (405, "Method Not Allowed", Unavailable),
        (301, "Moved", Unavailable),
        (501, "This server does not support embeddings. Start it with `--embeddings`", Unavailable),
        (500, "model requires more system memory (9.1 GiB) than is available (7.2 GiB)", Unavailable),
        (429, "Rate limit reached", Overloaded),
        (408, "Request timeout", Overloaded),
        (409, "Conflict", Overloaded),
        (500, "The server had an error", Overloaded),
        (503, "Loading model", Overloaded),
        (529, "Overloaded", Overloaded),
        (200, "Upstream fell over", Overloaded),
        (413, "Payload too large", TooLong),
        (413, "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 7000", TooLong),
        (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000", TooLong),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", TooLong),
        (400, "the request exceeds the available context size (4096 tokens), try increasing it", TooLong),
        (500, "Input length 5000 exceeds maximum context length", TooLong),
        (400, "The response was filtered due to Azure OpenAI's content management policy", Refused),
        (403, "Your input was flagged by moderation", Refused),
        (400, "Unknown parameter: 'foo'", Refused),
        (422, "Input should be a valid string", Refused),
    ],
)
def test_every_answer_is_one_error(status: int, message: str, kind: type[QuipuError]) -> None:
    error = _error(status, message)
    assert type(error) is kind
    assert f"openai/gpt-4.1-mini at gate.example answered {status}: {message}".rstrip(".") in error.message
    assert error.remedy


def test_a_quota_that_is_used_up_does_not_pass() -> None:
    error = _error(429, "You exceeded your current quota.", type="insufficient_quota", code="insufficient_quota")
    assert isinstance(error, Unavailable)
    assert "Add credit" in error.remedy


def test_geminis_rate_limit_speaks_of_a_quota_and_passes() -> None:
    details = [{"@type": "RetryInfo", "retryDelay": "17s"}]
    error = _error(429, "You exceeded your current quota, check your plan and billing.", details=details)
    assert isinstance(error, Overloaded)
    assert error.retry_after_s == 17.0


def test_how_long_to_wait_is_taken_from_the_header() -> None:
    error = error_from_reply(
        parse_reply(429, {"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, b""), _target(), clock=lambda: 50.0
    )
    assert isinstance(error, Overloaded)
    assert error.retry_after_s == 10.0


@pytest.mark.parametrize(("status", "may_cost"), [(429, False), (500, False), (504, True), (408, True), (200, True)])
def test_what_may_have_been_worked_on_may_cost(status: int, may_cost: bool) -> None:
    error = _error(status, "Sorry")
    assert isinstance(error, Overloaded)
    assert error.may_cost is may_cost


def test_the_variable_of_the_key_is_named() -> None:
    without = Target(endpoint=Endpoint(provider=PROVIDERS["deepseek"]), model="deepseek-chat")
    assert _error(401, "No key", without).remedy == "Set DEEPSEEK_API_KEY or QUIPU_LLM_KEY to a key of DeepSeek."
    assert "The key was not accepted. Set QUIPU_LLM_KEY" in _error(401, "Wrong key").remedy
    assert "may not use this model" in _error(403, "Forbidden").remedy
    assert _error(401, "No", _target("custom")).remedy.endswith(
        'Set QUIPU_LLM_KEY to a key of gate.example, or give it in secrets.toml, as "gate.example" = …'
    )


@pytest.mark.parametrize(
    ("provider", "models", "remedy"),
    [
        (
            "openai",
            ["gpt-4.1-mini-2025", "dall-e"],
            "Did you mean openai/gpt-4.1-mini-2025? Check the name of the model.",
        ),
        ("vllm", ["Qwen/Qwen3"], "The server has Qwen/Qwen3"),
        ("ollama", ["llama3"], "Run `ollama pull gpt-4.1-mini`, or name a model that `ollama list` shows."),
        ("azure", [], "On Azure the model is the name of your deployment: check it in the portal."),
        ("openai", [], "Check the name of the model."),
    ],
)
def test_an_unknown_model_is_answered_with_what_to_do(provider: str, models: list[str], remedy: str) -> None:
    said = parse_reply(404, {}, b'{"error": {"message": "model not found, try pulling it first"}}')
    assert error_from_reply(said, _target(provider), models=models).remedy == remedy


@pytest.mark.parametrize(
    ("url", "is_asked"), [("http://localhost:1", True), ("http://localhost:1/v1", False), ("http://a/openai", False)]
)
def test_a_forgotten_v1_is_asked_about(url: str, is_asked: bool) -> None:
    error = error_from_reply(parse_reply(200, {}, b"<html>Ollama is running</html>"), _target("custom", url))
    assert isinstance(error, Unavailable)
    assert ("did you forget /v1?" in error.remedy) is is_asked


def test_json_of_something_else_is_the_wrong_address() -> None:
    error = error_from_reply(parse_reply(200, {}, b'{"status": "ok"}'), _target())
    assert isinstance(error, Unavailable)
    assert "not the address of an OpenAI-compatible server" in error.remedy


def test_embeddings_a_server_does_not_make_are_no_matter_of_patience() -> None:
    error = _error(501, "This server does not support embeddings. Start it with `--embeddings`", _target("llamacpp"))
    assert error.remedy == "Name a model that makes embeddings; start llama.cpp with --embeddings."


def test_a_server_of_ones_own_is_to_be_started() -> None:
    local = Target(endpoint=Endpoint(provider=PROVIDERS["ollama"]), model="m")
    assert start_remedy(local) == "Start Ollama (ollama serve), or set the base URL to where it runs."
    assert start_remedy(_target()) == "Check the base URL and the network."


def test_a_local_server_may_get_a_larger_window() -> None:
    assert "larger context window" in _error(400, "context length exceeded", _target("llamacpp")).remedy


def test_a_hostile_text_in_the_request_that_is_repeated_decides_nothing() -> None:
    echoed = {"detail": [{"loc": ["body", "messages"], "msg": "Bad", "input": "insufficient_quota invalid api key"}]}
    assert isinstance(error_from_reply(parse_reply(422, {}, json.dumps(echoed).encode()), _target()), Refused)


def _said(message: str, **named: object) -> ParsedReply:
    return parse_reply(400, {}, json.dumps({"error": {"message": message, **named}}).encode())


@pytest.mark.parametrize(
    ("said", "room"),
    [
        (
            _said(
                "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens "
                "(5000 in the messages, 4000 in the completion). Please reduce the length."
            ),
            3_192,
        ),
        (
            _said(
                "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is "
                "8192 tokens and your request has 1000 input tokens (32768 > 8192 - 1000)."
            ),
            7_192,
        ),
        (
            _said(
                "You passed 4097 input tokens and requested 900 output tokens. "
                "However, the model's context length is only 4800"
            ),
            703,
        ),
        (_said("This model's maximum context length is 8192 tokens. Your messages resulted in 9000 tokens."), None),
        (_said("maximum context length is 8,192 tokens (8,000 in the messages, 400 in the completion)"), None),
        (_said("the request exceeds the available context size", n_prompt_tokens=3000, n_ctx=4096), 1_096),
        (_said("prompt is too long: 210000 tokens > 200000 maximum"), None),
        (_said("too long"), None),
        (_said("There are 5 errors > 3 in the messages"), None),
    ],
)
def test_the_room_beside_the_request_is_found(said: ParsedReply, room: int | None) -> None:
    assert max_output_that_fits(said) == room


def test_a_window_that_is_named_as_the_reason_is_known() -> None:
    assert names_context_window(_said("maximum context length is 8192 tokens"))
    assert not names_context_window(_said("max_tokens is too large: 32768 > 16384"))


NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        (
            {
                "x-ratelimit-reset-requests": "20ms",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-tokens": "100",
            },
            0.02,
        ),
        ({"x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-reset": "1800000005000"}, 5.0),
        ({"x-ratelimit-reset": "1800000008"}, 8.0),
        ({"x-ratelimit-reset": "12"}, 12.0),
        ({}, None),
    ],
)
def test_headers_of_every_kind_are_read(headers: dict[str, str], expected: float | None) -> None:
    found = retry_after_s(429, headers, None, "", NOW)
    assert found == (expected if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("remaining", "expected"),
    [({}, None), ({"x-ratelimit-remaining-requests": "7"}, None), ({"x-ratelimit-remaining-requests": "0"}, 360.0)],
)
def test_where_no_limit_was_met_only_one_that_is_used_up_is_waited_for(
    remaining: dict[str, str], expected: float | None
) -> None:
    headers = {"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "9m0s", **remaining}
    assert retry_after_s(500, headers, None, "", NOW) == expected
    assert retry_after_s(500, {**headers, "retry-after": "2"}, None, "", NOW) == 2.0


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Rate limit reached. Please try again in 1.2s. Visit …", 1.2),
        ("Please try again in 6m0s.", 360.0),
        ("Please try again in 350ms.", 0.35),
        ("Too many requests; try again later.", None),
    ],
)
def test_the_message_is_read_where_no_header_says_anything(message: str, expected: float | None) -> None:
    assert retry_after_s(429, {}, None, message, NOW) == (expected if expected is None else pytest.approx(expected))


def test_geminis_delay_is_read() -> None:
    body = {"error": {"details": [{"@type": "…Help"}, {"@type": "…RetryInfo", "retryDelay": "17s"}]}}
    assert retry_after_s(429, {}, body, "", NOW) == 17.0
