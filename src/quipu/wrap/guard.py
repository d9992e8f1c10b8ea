"""Guards: what stands around each call of a service, whatever the service is."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from quipu.model.chat import ChatRequest, Completion, Role
from quipu.ports.providers import LLM, Embedder, Reranker, TextSink, ignore_text

T = TypeVar("T")

URGENT_ROLES = frozenset({Role.KEYWORDS, Role.ANSWER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a guard knows of a call: calls of one `kind` are alike; somebody waits for the outcome of an urgent one."""

    kind: str
    is_urgent: bool = False


EMBED = Call(kind="embed")
EMBED_QUERY = Call(kind="embed query", is_urgent=True)
RERANK = Call(kind="rerank", is_urgent=True)


class Guard(Protocol):
    """Runs work, perhaps later, perhaps more than once. One guard is shared by all calls of a service."""

    async def run(self, work: Callable[[], Awaitable[T]], call: Call) -> T:
        """Return what `work` returns, or raise what it raises."""
        ...


async def guarded(guards: Sequence[Guard], work: Callable[[], Awaitable[T]], call: Call) -> T:
    """Run `work` within guards, the first outermost."""
    for guard in reversed(guards):
        work = partial(guard.run, work, call)
    return await work()


class GuardedLLM:
    """A chat model within guards, the first outermost."""

    def __init__(self, llm: LLM, guards: Sequence[Guard]) -> None:
        self._llm = llm
        self._guards = guards

    @property
    def identity(self) -> str:
        """That of the model."""
        return self._llm.identity

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply; raises as `LLM.complete` does."""
        call = Call(kind=request.role.value, is_urgent=request.role in URGENT_ROLES)
        return await guarded(self._guards, partial(self._llm.complete, request, on_text), call)


class GuardedEmbedder:
    """An embedder within guards, the first outermost."""

    def __init__(self, embedder: Embedder, guards: Sequence[Guard]) -> None:
        self._embedder = embedder
        self._guards = guards

    @property
    def identity(self) -> str:
        """That of the embedder."""
        return self._embedder.identity

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector a text, shape [n, dimension]."""
        return await guarded(self._guards, partial(self._embedder.embed, texts), EMBED)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors to look for, shape [n, dimension]."""
        return await guarded(self._guards, partial(self._embedder.embed_queries, texts), EMBED_QUERY)


class GuardedReranker:
    """A reranker within guards, the first outermost."""

    def __init__(self, reranker: Reranker, guards: Sequence[Guard]) -> None:
        self._reranker = reranker
        self._guards = guards

    @property
    def identity(self) -> str:
        """That of the reranker."""
        return self._reranker.identity

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, higher is better."""
        return await guarded(self._guards, partial(self._reranker.score, question, texts), RERANK)
