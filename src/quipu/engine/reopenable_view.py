"""Reopenable view: a snapshot that is released while a service is asked, the turns of questions, and their services."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self, cast

import numpy as np

from quipu.errors import Overloaded, QuipuError
from quipu.model.chat import ChatRequest, FinishReason, Role
from quipu.model.query import Filter
from quipu.ports.providers import LLM
from quipu.ports.store import ReadView, Store
from quipu.text.formatting import format_count
from quipu.wrap.embedder import Embed, EmbedCall, Vectors

MAX_ROUNDS = 24  # batches of requests to a model in one question: more than any method needs
MAX_WASTED_ROUNDS = 2  # batches whose replies may be lost because documents changed; then the view stays open
MAX_EMBED_CALLS = 12  # calls of a remote embedder with the view released: more than any method needs


class RevisionMoved(Exception):
    """The index changed while a view was released, so what a strategy has read is out of date: run it again."""


class RetrievalTurns:
    """Lets `n_turns` questions search at the same time; the others wait in the order they came.

    Once `max_waiting` questions wait, a new one is refused. A question that has begun is never refused: its replies of
    models may have been paid for.
    """

    def __init__(self, n_turns: int = 1, max_waiting: int = 64) -> None:
        self._free = asyncio.Semaphore(n_turns)
        self._max_waiting = max_waiting
        self._n_waiting = 0

    @property
    def n_waiting(self) -> int:
        """How many questions wait for their turn."""
        return self._n_waiting

    @property
    def are_taken(self) -> bool:
        """Whether a question that comes now has to wait."""
        return self._free.locked()

    def check_room(self) -> None:
        """Raise Overloaded if a new question would have to wait, and as many wait as may."""
        if self.are_taken and self._n_waiting >= self._max_waiting:
            raise Overloaded(
                f"{format_count(self._n_waiting, 'question')} already wait for their search.",
                remedy="Ask again later, let several processes answer, or raise max_waiting_questions.",
            )

    async def take(self) -> None:
        """Wait for a turn, and take it."""
        self._n_waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._n_waiting -= 1

    def end(self) -> None:
        """Give a turn to the question that has waited longest."""
        self._free.release()


class ReopenableView:
    """A ReadView whose snapshot can be released and opened again; use it as an async context manager.

    Every name of ReadView is looked up in the current snapshot. A method that was looked up before a release therefore
    reads the snapshot opened after it. Between the two nothing can be read. It is not safe to read in one task while
    another one releases the view; strategies read and ask in one task.

    A view that can be read holds one of the `turns`, so that few questions compute at the same time. A question gives
    its turn back while it waits for a service, whether its snapshot is released meanwhile or stays open. Entering it
    raises Overloaded where too many questions wait.
    """

    def __init__(self, store: Store, allowed: Filter, turns: RetrievalTurns) -> None:
        self._store = store
        self._filter = allowed
        self._turns = turns
        self._has_turn = False
        self._stack = AsyncExitStack()
        self._snapshot: ReadView | None = None

    async def __aenter__(self) -> Self:
        self._turns.check_room()
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._current(), name)
        if not callable(member):
            return member

        def read(*args: Any, **options: Any) -> Any:
            return getattr(self._current(), name)(*args, **options)

        return read

    @property
    def reads(self) -> ReadView:
        """This view, typed as a ReadView: type checkers do not follow `__getattr__`."""
        return cast("ReadView", self)

    @asynccontextmanager
    async def released(self) -> AsyncIterator[None]:
        """Close the snapshot, and open a new one after the block: of the same revision or of a later one."""
        await self._close()
        yield
        await self._open()

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Like `released`, but raise RevisionMoved if the new snapshot is not the one that the strategy was reading.

        Both the revision and the history nonce are compared: an index that was replaced may have equal revisions.
        """
        before = await self._version()
        async with self.released():
            yield
        if await self._version() != before:
            raise RevisionMoved

    @asynccontextmanager
    async def kept_open(self) -> AsyncIterator[None]:
        """Keep the snapshot during the block, but not the turn: others may read while this question waits."""
        self._end_turn()
        yield
        await self._take_turn()

    async def _version(self) -> tuple[int, int | None]:
        revision = self._current().revision
        changes = await self._current().changes_since(revision)
        return revision, changes.history_nonce if changes is not None else None

    async def _open(self) -> None:
        await self._take_turn()
        try:
            self._snapshot = await self._stack.enter_async_context(self._store.view(self._filter))
        except BaseException:
            self._end_turn()
            raise

    async def _close(self) -> None:
        self._snapshot = None
        try:
            await self._stack.aclose()
        finally:
            self._end_turn()

    async def _take_turn(self) -> None:
        await self._turns.take()
        self._has_turn = True

    def _end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._turns.end()

    def _current(self) -> ReadView:
        if self._snapshot is None:
            raise RuntimeError("The view is released: nothing can be read while a service is asked.")
        return self._snapshot


class ViewReleasingLayer:
    """A layer of a remote embedder for one question: the view is released while it is asked, and no text is sent twice.

    After `MAX_EMBED_CALLS` calls the view stays open, so that a search ends even if documents change all the time.
    """

    def __init__(self, view: ReopenableView) -> None:
        self._view = view
        self._vector_by_text: dict[str, Vectors] = {}
        self._n_calls = 0

    async def __call__(self, call: EmbedCall, below: Embed) -> Vectors:
        """Return one vector per text; for questions it raises RevisionMoved as `paused` does.

        The vectors are kept even then. No strategy embeds passages, so for these the view stays open.
        """
        if not call.is_query:
            return await below(call)
        missing = [text for text in dict.fromkeys(call.texts) if text not in self._vector_by_text]
        if missing:
            self._n_calls += 1
            async with self._view.paused() if self._n_calls <= MAX_EMBED_CALLS else self._view.kept_open():
                self._vector_by_text |= zip(missing, await below(replace(call, texts=missing)), strict=True)
        return np.stack([self._vector_by_text[text] for text in call.texts])


@dataclass(slots=True)
class QuestionReplies:
    """What models replied in one question, by request key; it outlives a strategy that is run again."""

    llm: Callable[[Role], LLM | None]
    text_by_key: dict[str, str] = field(default_factory=dict)
    n_rounds: int = 0
    problems: Counter[str] = field(default_factory=Counter)

    def notes(self) -> tuple[str, ...]:
        """Return the notes for the trace about calls that gave no text, or only part of it."""
        return tuple(text if n == 1 else f"{text} ({n:,} times)" for text, n in sorted(self.problems.items()))

    async def fetch(self, requests: Sequence[ChatRequest]) -> None:
        """Ask all requests without a reply at the same time. A call that fails becomes "" and a note."""
        missing = {_key(request): request for request in requests if _key(request) not in self.text_by_key}
        async with asyncio.TaskGroup() as tasks:  # if one call breaks, the others are cancelled
            texts = {key: tasks.create_task(self._ask(request)) for key, request in missing.items()}
        self.text_by_key |= {key: task.result() for key, task in texts.items()}
        self.n_rounds += 1

    async def _ask(self, request: ChatRequest) -> str:
        llm = self.llm(request.role)
        if llm is None:
            self.problems[f"no model is set for the role '{request.role}'"] += 1
            return ""
        try:
            completion = await llm.complete(request)
        except QuipuError as error:
            self.problems[f"a model gave no reply: {error.message}"] += 1
            return ""
        if completion.finish is not FinishReason.STOP:
            self.problems[f"a reply of a model was cut short ({completion.finish})"] += 1
        return completion.text


@dataclass(slots=True)
class QuestionModel:
    """The Model of one run of a strategy: it releases the view while models are asked.

    `n_answered` counts the calls of `ask` answered in this run. A run that starts again after the revision moved asks
    the same requests for free. Where it asks others, the earlier replies were paid for in vain: after
    `MAX_WASTED_ROUNDS` such rounds the view stays open, so that the next reply can be used.
    """

    replies: QuestionReplies
    view: ReopenableView
    n_answered: int = 0

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str]:
        """Return the text of each reply, in order; raises RevisionMoved as `paused` does. See `retrieve.strategy`."""
        replies = self.replies
        if any(_key(request) not in replies.text_by_key for request in requests):
            if replies.n_rounds >= MAX_ROUNDS:
                replies.problems[
                    f"a model was asked {MAX_ROUNDS} times, the limit of one question: later replies are empty"
                ] = 1
            else:
                quoting = [_quoting(self.view.reads.revision, request) for request in requests]
                is_released = replies.n_rounds - self.n_answered < MAX_WASTED_ROUNDS
                async with self.view.paused() if is_released else self.view.kept_open():
                    await replies.fetch(quoting)
        self.n_answered += 1
        return [replies.text_by_key.get(_key(request), "") for request in requests]


def _quoting(revision: int, request: ChatRequest) -> ChatRequest:
    """Return the request with the revision it quotes, so that a reply about removed documents is not cached."""
    return request if request.revision is not None else replace(request, revision=revision)


def _key(request: ChatRequest) -> str:
    return request.hash(request.role)
