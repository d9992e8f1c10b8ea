"""A language model that says what it is told to, in small pieces."""

from quipu.errors import QuipuError
from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.ports.providers import TextSink, ignore_text


class Talker:
    """Gives the replies in turn, the last of them again and again; raises those that are errors."""

    identity = "fake/talker"

    def __init__(self, *replies: str | Completion | QuipuError, size: int = 3) -> None:
        self.requests: list[ChatRequest] = []
        self._replies, self._size = replies, size

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        reply = self._replies[min(len(self.requests), len(self._replies) - 1)]
        self.requests.append(request)
        if isinstance(reply, QuipuError):
            raise reply
        completion = reply if isinstance(reply, Completion) else said(reply)
        for start in range(0, len(completion.text), self._size):
            on_text(completion.text[start : start + self._size])
        return completion


def said(text: str, finish: FinishReason = FinishReason.STOP) -> Completion:
    """Return a reply."""
    return Completion(text=text, finish=finish, tokens=TokenCount())
