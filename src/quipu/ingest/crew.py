"""Crew: groups of chunks worked on side by side, so that whoever answers slowly always has enough to do."""

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Self

Group = Callable[[Callable[[int], None]], Coroutine[None, None, None]]


class Crew:
    """Runs groups as tasks, with about `n_ahead` chunks waiting for an outcome; with 0, one group after the other.

    The failure of one group stops the others and is raised where the crew is used next. Leaving the context waits for
    all groups, or stops them where it is left by an error.
    """

    def __init__(self, n_ahead: int) -> None:
        self._n_ahead = n_ahead
        self._n_waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._moved = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Say whether no group is being worked on."""
        return not self._tasks

    def start(self, group: Group, n_chunks: int) -> None:
        """Begin work on a group of so many chunks; it is given a function to call as their outcomes come."""
        left = n_chunks
        self._n_waiting += n_chunks

        def answered(n: int) -> None:
            nonlocal left
            left -= n
            self._n_waiting -= n
            self._moved.set()

        task = asyncio.create_task(group(answered))
        self._tasks.add(task)
        task.add_done_callback(lambda _: answered(left))

    async def room(self) -> None:
        """Wait until another group should be started."""
        while self._tasks and (self._n_ahead == 0 or self._n_waiting >= self._n_ahead):
            await self._next_move()
        self._collect()

    async def all_done(self) -> None:
        """Wait until no group is left."""
        while self._tasks:
            await self._next_move()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self.all_done()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _next_move(self) -> None:
        self._collect()
        if self._tasks:
            self._moved.clear()
            await self._moved.wait()
            self._collect()

    def _collect(self) -> None:
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.remove(task)
            task.result()
