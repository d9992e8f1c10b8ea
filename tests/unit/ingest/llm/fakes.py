"""A model for tests of the extractor: it says what it is told to, and keeps what it was asked."""

import asyncio
from collections.abc import Callable, Sequence

from quipu.errors import QuipuError
from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.model.extraction import ChunkInput
from quipu.ports.ingest import ExtractionResult, Extractor
from quipu.ports.providers import TextSink, ignore_text

Said = str | tuple[str, FinishReason] | QuipuError
Speaker = Callable[[ChatRequest], Said]

ANN = "entity<|>Ann Lee<|>Person<|>Ann Lee founded Acme."
ACME = "entity<|>Acme<|>Company<|>Acme is in Leeds."
LEEDS = "entity<|>Leeds<|>City<|>Leeds is where Acme is."
FOUNDED = "relation<|>Ann Lee<|>Acme<|>founder<|>Ann Lee founded Acme.<|>9"
DONE = "<|done|>"
TEXT = "Ann Lee founded Acme in Leeds. She led it for years."
CHUNK = ChunkInput(text=TEXT, documents=("d1",))


class SpokenLLM:
    """Says the next of `replies` to each request, the last one again and again; or what a function says."""

    identity = "fake/model"

    def __init__(self, *replies: Said, speaker: Speaker | None = None) -> None:
        self._replies = list(replies)
        self._speaker = speaker
        self.requests: list[ChatRequest] = []
        self.n_under_way = self.peak = 0

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        self.requests.append(request)
        self.n_under_way += 1
        self.peak = max(self.peak, self.n_under_way)
        try:
            await asyncio.sleep(0)
        finally:
            self.n_under_way -= 1
        said = self._speaker(request) if self._speaker else self._next()
        if isinstance(said, QuipuError):
            raise said
        text, finish = (said, FinishReason.STOP) if isinstance(said, str) else said
        on_text(text)
        return Completion(text=text, finish=finish, tokens=TokenCount())

    def _next(self) -> Said:
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]

    @property
    def limits(self) -> list[int]:
        """The limit on output of each request."""
        return [request.max_output_tokens for request in self.requests]


def reply(*lines: str) -> str:
    """Return a whole reply of these lines."""
    return "\n".join((*lines, DONE))


async def outcomes(extractor: Extractor, inputs: Sequence[ChunkInput]) -> list[ExtractionResult]:
    """Return all outcomes, by index."""
    found = [outcome async for outcome in extractor.extract(inputs)]
    return sorted(found, key=lambda outcome: outcome.index)
