"""Workers: a pool that processes groups of chunks concurrently, and the heartbeat that keeps leases alive."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Self

from quipu.errors import QuipuError
from quipu.model.usage import LedgerSums
from quipu.ports.store import RENEWALS_PER_LEASE, Store, WorkerLedger

_FIRST_RENEWAL_S = 0.3  # after the leases began, which last a second at least: short work renews none

ChunkTask = Callable[[Callable[[int], None]], Coroutine[None, None, None]]


class WorkerPool:
    """Runs tasks that each process a group of chunks, so that about `n_ahead` chunks wait for an outcome.

    An extractor that waits for a model then always has chunks to read. With `n_ahead` 0, one task runs after another.
    If a task fails, its error is raised at the next use of the pool. Leaving the context waits for all tasks; leaving
    it by an error cancels them.
    """

    def __init__(self, n_ahead: int) -> None:
        self._n_ahead = n_ahead
        self._n_waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._progress = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Return whether no task is running."""
        return not self._tasks

    def start(self, chunk_task: ChunkTask, n_chunks: int) -> None:
        """Start a task of `n_chunks` chunks. It receives a function to call with the number of chunks just finished."""
        n_unfinished = n_chunks

        def on_finished(n: int) -> None:
            nonlocal n_unfinished
            n_unfinished -= n
            self._n_waiting -= n
            self._progress.set()

        self._n_waiting += n_chunks
        task = asyncio.create_task(chunk_task(on_finished))
        self._tasks.add(task)
        task.add_done_callback(lambda _: on_finished(n_unfinished))

    async def wait_for_room(self) -> None:
        """Wait until another task should be started."""
        while self._tasks and (self._n_ahead == 0 or self._n_waiting >= self._n_ahead):
            await self._wait_for_progress()
        self._remove_done()

    async def wait_until_idle(self) -> None:
        """Wait until no task is running."""
        while self._tasks:
            await self._wait_for_progress()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self.wait_until_idle()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait_for_progress(self) -> None:
        self._remove_done()
        if self._tasks:
            self._progress.clear()
            await self._progress.wait()
            self._remove_done()

    def _remove_done(self) -> None:
        """Forget the tasks that are done; raises the error of one that failed."""
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.remove(task)
            task.result()


@asynccontextmanager
async def lease_heartbeat(store: Store) -> AsyncIterator[None]:
    """Renew every lease that the store holds, until the context ends."""
    async with _heartbeat(store.renew_leases, _FIRST_RENEWAL_S):
        yield


@asynccontextmanager
async def shared_limits(ledger: WorkerLedger, share_calls: Callable[[int], None]) -> AsyncIterator[None]:
    """Be a worker of the ledger until the context ends; `share_calls` gets the number of workers, from time to time.

    Raises Busy or Unavailable if the ledger cannot be written at first.
    """

    async def renew() -> float:
        share_calls((await ledger.add(LedgerSums())).n_workers)
        return ledger.lease_s / RENEWALS_PER_LEASE

    await renew()
    try:
        async with _heartbeat(renew, _FIRST_RENEWAL_S):
            yield
    finally:
        share_calls(1)
        with suppress(QuipuError):  # its lease will end
            await asyncio.shield(ledger.leave())


@asynccontextmanager
async def _heartbeat(beat: Callable[[], Awaitable[float]], pause_s: float) -> AsyncIterator[None]:
    """Call `beat` after `pause_s`, and then each time after the seconds that it returns, until the context ends."""

    async def beat_on() -> None:
        seconds = pause_s
        while True:
            await asyncio.sleep(seconds)
            with suppress(QuipuError):  # busy, or a full disk: the next beat comes before the lease ends
                seconds = await beat()

    task = asyncio.create_task(beat_on())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
