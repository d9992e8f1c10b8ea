"""Chat: which fields of a request determine the key of its reply."""

from dataclasses import replace

import pytest

from quipu.model.chat import ChatRequest, Message, ReplyLifetime, Role, TokenCount

REQUEST = ChatRequest(
    messages=(Message("system", "Be brief."), Message("user", "Who?")), role=Role.EXTRACT, max_output_tokens=100
)


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, messages=REQUEST.messages[1:]),
        replace(REQUEST, messages=REQUEST.messages[::-1]),
        replace(REQUEST, messages=(Message("system", "Be brief.Who?"), Message("user", ""))),
        replace(REQUEST, messages=(Message("user", "Be brief."), Message("user", "Who?"))),
        replace(REQUEST, max_output_tokens=101),
        replace(REQUEST, temperature=0.1),
        replace(REQUEST, schema="{}"),
        replace(REQUEST, attempt=1),
    ],
)
def test_every_field_that_is_sent_changes_the_key(other: ChatRequest) -> None:
    assert other.hash("m") != REQUEST.hash("m")


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, role=Role.ANSWER),
        replace(REQUEST, documents=("a.md",)),
        replace(REQUEST, lifetime=ReplyLifetime.FREE),
        replace(REQUEST, subject="Who?"),
    ],
)
def test_fields_that_are_never_sent_do_not_change_the_key(other: ChatRequest) -> None:
    assert other.hash("m") == REQUEST.hash("m")


def test_another_model_changes_the_key() -> None:
    assert REQUEST.hash("m") != REQUEST.hash("n")


def test_token_counts_are_added() -> None:
    one, other = TokenCount(input=1, cached=1, output=2), TokenCount(input=10, output=20)
    assert one + other == TokenCount(input=11, cached=1, output=22)
