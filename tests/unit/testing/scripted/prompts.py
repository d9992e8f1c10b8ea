"""Prompts for tests, in the form of ours."""

from quipu.model.chat import Message
from quipu.model.extraction import ChunkInput
from quipu.prompts import extraction as prompt
from quipu.testing.scripted.model import ChatCall

TEXT = (
    "Alice Kober was born in New York. She taught classics at Brooklyn College.\n"
    "The World Health Organization (WHO) invited Michael Ventris to Geneva."
)


def extraction(text: str = TEXT, *said: str, again: str = "And the rest?") -> tuple[Message, ...]:
    """Return a request for an extraction; after each earlier reply the user asks `again`."""
    messages = [
        Message("system", prompt.render_system(prompt.Guidance())),
        Message("user", prompt.render_user(ChunkInput(text=text, title="A title"), 20)),
    ]
    for reply in said:
        messages += [Message("assistant", reply), Message("user", again)]
    return tuple(messages)


def call(messages: tuple[Message, ...], *, max_tokens: int | None = None, schema: str | None = None) -> ChatCall:
    """Return a call of a model."""
    return ChatCall(model="m", messages=messages, max_tokens=max_tokens, schema=schema)
