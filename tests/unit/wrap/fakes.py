"""Services that answer as they are told, and a shelf of replies in memory."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from quipu.errors import Busy
from quipu.model.chat import ChatRequest, Completion, FinishReason, Message, Role, TokenCount
from quipu.model.usage import Price, UsageRow
from quipu.ports.providers import TextSink, ignore_text
from quipu.ports.store import CallReply
from quipu.wrap.meter import ModelPricing

PRICE = Price(input=1.0, output=2.0)  # a token costs a millionth, or two
PRICING = ModelPricing(model="fake/model", price=PRICE, count_tokens=len)
UNKNOWN_PRICE = ModelPricing(model="fake/unknown", price=None, count_tokens=len)


def request(text: str = "Who?", *, role: Role = Role.EXTRACT, max_output_tokens: int = 100) -> ChatRequest:
    """Return a request of one message."""
    return ChatRequest(messages=(Message("user", text),), role=role, max_output_tokens=max_output_tokens)


def completion(text: str = "Alice.", finish: FinishReason = FinishReason.STOP, *, output: int = 5) -> Completion:
    """Return a reply to `request()`."""
    return Completion(text=text, finish=finish, tokens=TokenCount(input=4, output=output))


Outcome = Completion | BaseException


@dataclass
class FakeLLM:
    """Gives its outcomes one after the other, the last for ever; streams word by word to who watches."""

    outcomes: Sequence[Outcome] = field(default_factory=lambda: (completion(),))
    identity: str = "fake/model"
    latency_s: float = 0.0
    asked: list[ChatRequest] = field(default_factory=list)
    n_running: int = 0
    peak: int = 0
    was_watched: bool = False

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return or raise the next outcome."""
        self.asked.append(request)
        outcome = self.outcomes[min(len(self.asked), len(self.outcomes)) - 1]
        self.n_running += 1
        self.peak = max(self.peak, self.n_running)
        try:
            await asyncio.sleep(self.latency_s)
        finally:
            self.n_running -= 1
        if isinstance(outcome, BaseException):
            raise outcome
        self.was_watched = on_text is not ignore_text
        for piece in _pieces(outcome.text):
            on_text(piece)
            await asyncio.sleep(self.latency_s)
        return outcome


@dataclass
class FakeEmbedder:
    """Embeds texts as their lengths; `faults` are raised first, one a call."""

    faults: Sequence[BaseException] = ()
    identity: str = "fake/embedder"
    dimension: int = 2
    asked: list[tuple[str, ...]] = field(default_factory=list)
    is_query: list[bool] = field(default_factory=list)

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return a vector for each text."""
        return await self._embed(texts, is_query=False)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return a vector for each text."""
        return await self._embed(texts, is_query=True)

    async def _embed(self, texts: Sequence[str], *, is_query: bool) -> npt.NDArray[np.float32]:
        self.is_query.append(is_query)
        self.asked.append(tuple(texts))
        await asyncio.sleep(0)
        if len(self.asked) <= len(self.faults):
            raise self.faults[len(self.asked) - 1]
        return np.array([[len(text), 1] for text in texts], np.float32).reshape(len(texts), 2)


class CountingFakeEmbedder(FakeEmbedder):
    """An embedder whose service counts 7 tokens a text."""

    async def embed_counted(
        self, texts: Sequence[str], *, is_query: bool
    ) -> tuple[npt.NDArray[np.float32], TokenCount]:
        """Return vectors and what they took."""
        return await self._embed(texts, is_query=is_query), TokenCount(input=7 * len(texts))


@dataclass
class FakeReranker:
    """Scores texts by their lengths; `faults` are raised first, one a call."""

    faults: Sequence[BaseException] = ()
    identity: str = "fake/reranker"
    n_asked: int = 0

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text."""
        self.n_asked += 1
        await asyncio.sleep(0)
        if self.n_asked <= len(self.faults):
            raise self.faults[self.n_asked - 1]
        return [float(len(text)) for text in texts]


class CountingFakeReranker(FakeReranker):
    """A reranker whose service counts 9 tokens a text."""

    async def score_counted(self, question: str, texts: Sequence[str]) -> tuple[list[float], TokenCount]:
        """Return scores and what they took."""
        return await self.score(question, texts), TokenCount(input=9 * len(texts))


@dataclass
class Shelf:
    """Replies in memory, with what they cost. `pause` is waited for within each transaction; the first are refused."""

    payloads: dict[str, str] = field(default_factory=dict)
    spent: list[UsageRow] = field(default_factory=list)
    pause: Callable[[], "asyncio.Future[None]"] | None = None
    n_found: int = 0
    n_refused: int = 0
    requests: list[ChatRequest] = field(default_factory=list)
    revision: int = 0

    async def find_replies(self, input_hashes: Sequence[str]) -> dict[str, str]:
        """Return the payloads."""
        self.n_found += 1
        await asyncio.sleep(0)
        return {key: self.payloads[key] for key in input_hashes if key in self.payloads}

    async def record_call(self, usage: Sequence[UsageRow], reply: CallReply | None = None) -> None:
        """Keep the cost, and payload and request of the reply."""
        await self._begin()
        if reply is not None:
            self.payloads.setdefault(reply.input_hash, reply.payload)
            self.requests.append(reply.request)
        self.spent.extend(usage)

    async def facts_revision(self) -> int:
        """Return the revision."""
        return self.revision

    async def _begin(self) -> None:
        if self.pause:
            await self.pause()
        if self.n_refused:
            self.n_refused -= 1
            raise Busy("Another process writes.")


async def settle() -> None:
    """Let every task go on until it waits."""
    for _ in range(20):
        await asyncio.sleep(0)


def _pieces(text: str) -> Iterator[str]:
    first, space, rest = text.partition(" ")
    yield first + space
    if rest:
        yield from _pieces(rest)
