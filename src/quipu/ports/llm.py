"""LLM: a chat model, asked one request at a time."""

from collections.abc import Callable
from typing import Protocol

from quipu.model.chat import ChatRequest, Completion

TextSink = Callable[[str], None]


def no_text(text: str) -> None:
    """Take a piece of a reply and do nothing."""


class LLM(Protocol):
    """Answers chat requests. `identity` changes whenever the same request may get another reply."""

    @property
    def identity(self) -> str:
        """Provider, model and parameters, as in "openai/gpt-4.1-mini"; part of the key under which replies are kept."""
        ...

    async def complete(self, request: ChatRequest, on_text: TextSink = no_text) -> Completion:
        """Return the reply; `on_text` is given its pieces in order as they arrive, together the whole text.

        A reply that breaks off after some text is returned with finish `interrupted`, not raised. Raises Overloaded
        where the same request may succeed later, TooLong where it does not fit the model's context window, Unavailable
        where nothing will be answered until something is changed (key, model name, address), Refused where this request
        will never be answered (a filter, a parameter the server rejects).
        """
        ...
