"""What is left of a context window, out of what servers say of it."""

import json

import pytest

from quipu.providers.openai.room import room_for_reply, states_window
from quipu.providers.openai.said import Said, read_said


def _said(message: str, **named: object) -> Said:
    return read_said(400, {}, json.dumps({"error": {"message": message, **named}}).encode())


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
def test_the_room_beside_the_request_is_found(said: Said, room: int | None) -> None:
    assert room_for_reply(said) == room


def test_a_window_that_is_named_as_the_reason_is_known() -> None:
    assert states_window(_said("maximum context length is 8192 tokens"))
    assert not states_window(_said("max_tokens is too large: 32768 > 16384"))
