"""A model for the tests of summaries: its replies depend on the request alone, and it can be told to fail."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quipu.errors import QuipuError
from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.model.ids import digest
from quipu.ports.providers import TextSink, ignore_text

_MATERIAL = re.compile(r"^(#\w+#)\n(.*)\n\1$", re.MULTILINE | re.DOTALL)


def notes_of(request: ChatRequest) -> list[str]:
    """Return the notes a request holds."""
    match = _MATERIAL.search(request.messages[-1].text)
    assert match is not None
    return [line.removeprefix("- ") for line in match[2].splitlines() if line.startswith("- ")]


def subjects_of(request: ChatRequest) -> str:
    """Return what a request says its notes are about."""
    match = _MATERIAL.search(request.messages[-1].text)
    assert match is not None
    return match[2].splitlines()[0].removeprefix("Subjects: ")


def _step(_: ChatRequest) -> Awaitable[object]:
    return asyncio.sleep(0)


@dataclass
class Writer:
    """An LLM that sums notes up by their number and a digest; `reply` may say something else, or raise.

    `work` is what it does before it replies.
    """

    identity: str = "tests/writer"
    reply: Callable[[ChatRequest], Completion | QuipuError | None] = lambda _: None
    work: Callable[[ChatRequest], Awaitable[object]] = _step
    asked: list[ChatRequest] = field(default_factory=list)
    n_under_way: int = 0
    peak_under_way: int = 0

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return a text that depends on the request alone."""
        self.asked.append(request)
        self.n_under_way += 1
        self.peak_under_way = max(self.peak_under_way, self.n_under_way)
        await self.work(request)
        self.n_under_way -= 1
        outcome = self.reply(request)
        if isinstance(outcome, QuipuError):
            raise outcome
        said = " ".join(message.text for message in request.messages)
        return outcome or completion(f"{len(notes_of(request))} notes, {digest(said)[:8]}.")


def completion(text: str, finish: FinishReason = FinishReason.STOP) -> Completion:
    """Return a reply."""
    return Completion(text=text, finish=finish, tokens=TokenCount(input=10, output=5))
