"""Writing: many texts by a language model side by side, read a little ahead of it and kept as they come."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from quipu.errors import OverBudget, QuipuError, Unavailable
from quipu.model.chat import ChatRequest, Completion
from quipu.ports.providers import LLM

READ_AT_ONCE = 16  # pieces of work whose inputs are read together
MAX_CAUSES = 3  # of failures, that are named

K = TypeVar("K")
T = TypeVar("T")
O = TypeVar("O")  # noqa: E741 - an outcome


class Calls:
    """Asks the model, a bounded number of requests at once, until it says that nothing more will be answered."""

    def __init__(self, llm: LLM, n_at_once: int) -> None:
        self.n_asked, self.n_reused = 0, 0
        self._failures: list[QuipuError] = []
        self._llm = llm
        self._room = asyncio.Semaphore(n_at_once)

    @property
    def end(self) -> QuipuError | None:
        """Unavailable or OverBudget with all causes, once nothing more will be answered."""
        return joined(self._failures, "calls of a model failed") if self._failures else None

    async def ask(self, request: ChatRequest) -> Completion:
        """Return the completion with the name of its model; what is under way when calls end is still waited for."""
        async with self._room:
            if self.end is not None:
                raise self.end
            try:
                completion = await self._llm.complete(request)
            except (Unavailable, OverBudget) as error:
                self._failures.append(error)
                raise
        self.n_asked += not completion.is_reused
        self.n_reused += completion.is_reused
        return replace(completion, model=completion.model or self._llm.identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Generic[K, T, O]):
    """How texts are written: `read` what some are made from, `write` one of them, `keep` those that are written.

    What is no longer wanted `read` leaves out; for what is not tried any more `read` and `write` return None. None of
    them raises but for what ends the run: then nothing is begun, and what is under way is ended and kept.
    """

    read: Callable[[Sequence[K]], Awaitable[Sequence[T] | None]]
    write: Callable[[T], Awaitable[O | None]]
    keep: Callable[[Sequence[O]], Awaitable[None]]


async def write_all(keys: Sequence[K], work: Work[K, T, O], *, n_at_once: int, on_done: Callable[[int], None]) -> None:
    """Write what all `keys` stand for, `n_at_once` at a time; `on_done` is told how many are done.

    What was not tried is not done, so that only a run that came to its end has done all. Raises the QuipuError
    that ended it, or one of the same class that tells of all there were.
    """
    run = _Run(work, n_at_once)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(run.feed(keys))
            for _ in range(n_at_once):
                tasks.create_task(run.write())
            await run.collect(len(keys), on_done)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    if run.failures:
        raise joined(run.failures, "texts could not be written")


def joined(failures: Sequence[QuipuError], what: str) -> QuipuError:
    """Return an error like the first that tells of all, each cause once: "3 calls failed: it is gone (2 times); …".

    Where all have one cause that is the first: how many were under way when it came up says nothing. What a budget did
    not allow has not failed, and is one cause, whatever each would have needed: the first stands behind the failures.
    """
    n_by_cause = Counter(each.message.rstrip(".") for each in failures if not isinstance(each, OverBudget))
    refused = [each for each in failures if isinstance(each, OverBudget)][:1]
    if len(n_by_cause) + len(refused) == 1:
        return failures[0]
    messages = [_told(n_by_cause, what), *(each.message for each in refused)]
    remedies = dict.fromkeys(each.remedy for each in failures if each.remedy)
    return type(failures[0])(" ".join(messages), remedy=" ".join(remedies))


def _told(n_by_cause: Counter[str], what: str) -> str:
    if len(n_by_cause) == 1:
        return f"{next(iter(n_by_cause))}."
    causes = [f"{cause} ({n} times)" if n > 1 else cause for cause, n in n_by_cause.items()]
    if len(causes) > MAX_CAUSES:
        causes = [*causes[:MAX_CAUSES], f"and {len(causes) - MAX_CAUSES:,} other causes"]
    return f"{n_by_cause.total():,} {what}: {'; '.join(causes)}."


class _Run(Generic[K, T, O]):
    """A feeder reads, workers write, and what they have written is kept whenever the last keeping is done."""

    def __init__(self, work: Work[K, T, O], n_at_once: int) -> None:
        self._work = work
        self._n_at_once = n_at_once
        self.failures: list[QuipuError] = []
        self._tasks: asyncio.Queue[tuple[T] | None] = asyncio.Queue(maxsize=READ_AT_ONCE)
        # What was written, and whether it is done.
        self._outcomes: asyncio.Queue[tuple[O | None, bool]] = asyncio.Queue()

    async def feed(self, keys: Sequence[K]) -> None:
        """Read what is to be written, a few pieces ahead of the workers."""
        for start in range(0, len(keys), READ_AT_ONCE):
            some = keys[start : start + READ_AT_ONCE]
            found = await self._read(some)
            tasks = found or []
            for task in tasks:
                await self._tasks.put((task,))
            for _ in range(len(some) - len(tasks)):
                self._outcomes.put_nowait((None, found is not None))
        for _ in range(self._n_at_once):
            await self._tasks.put(None)

    async def write(self) -> None:
        """Write until there is nothing more to read."""
        while task := await self._tasks.get():
            written = await self._written(task[0])
            self._outcomes.put_nowait((written, written is not None))

    async def _read(self, keys: Sequence[K]) -> Sequence[T] | None:
        try:
            return None if self.failures else await self._work.read(keys)
        except QuipuError as error:
            self.failures.append(error)
            return None

    async def _written(self, task: T) -> O | None:
        try:
            return None if self.failures else await self._work.write(task)
        except QuipuError as error:
            self.failures.append(error)
            return None

    async def collect(self, total: int, on_done: Callable[[int], None]) -> None:
        """Keep what has been written, as much at once as has come."""
        n_left, n_done = total, 0
        while n_left:
            arrived = [await self._outcomes.get()]
            while not self._outcomes.empty():
                arrived.append(self._outcomes.get_nowait())
            n_left -= len(arrived)
            if written := [each for each, _ in arrived if each is not None]:
                await self._work.keep(written)
            n_done += sum(is_done for _, is_done in arrived)
            on_done(n_done)
