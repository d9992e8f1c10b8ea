"""How a request is written, and what is learnt from a server that rejects a part of it."""

import json
from dataclasses import replace

import pytest

from quipu.errors import InvalidInput
from quipu.model.chat import ChatRequest, Message, Role
from quipu.providers.openai.catalog import JsonAbility
from quipu.providers.openai.endpoint import Target
from quipu.providers.openai.form import ChatParameters, Form, adapted, first_form, write_body
from quipu.providers.openai.said import Said, read_said
from tests.unit.providers.openai.raw import endpoint

REQUEST = ChatRequest(
    messages=(Message("system", "Read."), Message("user", "Кипу.")),
    role=Role.EXTRACT,
    max_output_tokens=4_096,
    schema='{"type": "object"}',
)


def _target(provider: str = "openai", model: str = "gpt-4.1-mini") -> Target:
    return Target(endpoint=endpoint("http://gate.example/v1", provider), model=model)


def _body(form: Form, parameters: ChatParameters | None = None, request: ChatRequest = REQUEST) -> dict[str, object]:
    parsed: dict[str, object] = json.loads(
        write_body(request, _target(), form, parameters or ChatParameters(), is_streamed=form.can_stream)
    )
    return parsed


def _rejected(message: str, param: str = "", status: int = 400) -> Said:
    return read_said(status, {}, json.dumps({"error": {"message": message, "param": param or None}}).encode())


def test_a_request_is_written_in_full() -> None:
    assert _body(Form()) == {
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
    form = Form(has_temperature=False, json=JsonAbility.NONE, has_usage_option=False, can_stream=False)
    assert set(_body(form)) == {"model", "messages", "max_tokens"}
    assert _body(replace(form, json=JsonAbility.OBJECT))["response_format"] == {"type": "json_object"}


def test_free_text_is_asked_for_without_a_format() -> None:
    assert "response_format" not in _body(Form(), request=replace(REQUEST, schema=""))


def test_parameters_of_the_user_count_over_all_others() -> None:
    extra = '{"temperature": null, "reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": false}}'
    body = _body(Form(), ChatParameters(extra=extra, max_output_tokens=100))
    assert "temperature" not in body
    assert (body["reasoning_effort"], body["max_tokens"]) == ("low", 100)
    assert _body(Form(), ChatParameters(temperature=0.7))["temperature"] == 0.7


def test_the_lowest_limit_on_output_counts() -> None:
    assert _body(Form(most_output=50), ChatParameters(max_output_tokens=100))["max_tokens"] == 50
    assert _body(Form(most_output=9_999), ChatParameters(max_output_tokens=9_999))["max_tokens"] == 4_096


def test_half_a_character_does_not_stop_a_request() -> None:
    halved = replace(REQUEST, messages=(Message("user", "\ud83e"),))
    assert _body(Form(), request=halved)["messages"] == [{"role": "user", "content": "?"}]


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
    form = first_form(_target(provider, model))
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
            {"most_output": 16_384},
        ),
        (_rejected("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), {"most_output": 8_192}),
        (
            _rejected(
                "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for claude-4-0514"
            ),
            {"most_output": 32_000},
        ),
        (
            _rejected("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`"),
            {"most_output": 8_192},
        ),
        (_rejected("Invalid parameter: 'response_format' of type 'json_schema' is not supported"), {"json": "object"}),
        (_rejected("Extra inputs are not permitted", "stream_options", 422), {"has_usage_option": False}),
        (_rejected("Unrecognized request argument supplied: stream_options"), {"has_usage_option": False}),
        (_rejected("Your organization must be verified to stream this model.", "stream"), {"can_stream": False}),
        (_rejected("Streaming is not supported."), {"can_stream": False}),
    ],
)
def test_what_a_server_rejects_by_name_is_changed_and_nothing_else(said: Said, changed: dict[str, object]) -> None:
    form = Form(limit_name="max_tokens")
    assert adapted(form, said) == replace(form, **changed)  # type: ignore[arg-type]


def test_json_is_given_up_step_by_step() -> None:
    said = _rejected("response_format is not supported", "response_format")
    first = adapted(Form(), said)
    second = adapted(first, said) if first else None
    assert [first and first.json, second and second.json] == [JsonAbility.OBJECT, JsonAbility.NONE]
    assert second is not None
    assert adapted(second, said) is None


def test_a_limit_may_have_its_older_name() -> None:
    form = Form(limit_name="max_completion_tokens")
    changed = adapted(form, _rejected("Extra inputs are not permitted", "max_completion_tokens", 422))
    assert changed == replace(form, limit_name="max_tokens")


@pytest.mark.parametrize(
    "said",
    [
        _rejected("Unknown parameter: 'foo'", "foo"),
        _rejected("temperature", status=500),
        _rejected("'messages[0].content' must be text, 'temperature' is fine", "messages"),
    ],
)
def test_an_error_about_something_else_changes_nothing(said: Said) -> None:
    assert adapted(Form(), said) is None


def test_what_was_changed_before_is_not_changed_again() -> None:
    assert adapted(Form(has_temperature=False), _rejected("no temperature", "temperature")) is None
    assert adapted(Form(has_usage_option=False), _rejected("no", "stream_options")) is None
    assert adapted(Form(can_stream=False), _rejected("no", "stream")) is None
