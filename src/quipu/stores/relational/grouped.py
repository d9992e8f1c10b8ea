"""Grouped: what many tasks ask for while one call runs is done by the next call, together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Grouped(Generic[T, R]):
    """Calls `run` with all items that wait: one by one when they come slowly, in groups when they come fast.

    What was put in is done even where the task that waits for it is cancelled.
    """

    def __init__(self, run: Callable[[Sequence[T]], Awaitable[Sequence[R]]]) -> None:
        self._run = run
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._task: asyncio.Task[None] | None = None

    async def do(self, item: T) -> R:
        """Return what `run` gives for this item, or raise what it raises."""
        outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, outcome))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run_all())
        return await outcome

    async def finish(self) -> None:
        """Wait until nothing is left to do."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _run_all(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            try:
                results = await self._run([item for item, _ in group])
            except Exception as error:
                for outcome in _awaited(group):
                    outcome.set_exception(error)
            else:
                result_by_outcome = dict(zip((outcome for _, outcome in group), results, strict=True))
                for outcome in _awaited(group):
                    outcome.set_result(result_by_outcome[outcome])


def _awaited(group: Sequence[tuple[T, "asyncio.Future[R]"]]) -> list["asyncio.Future[R]"]:
    """Return the outcomes that are still waited for: not those whose task was cancelled."""
    return [outcome for _, outcome in group if not outcome.done()]
