"""Persistent: what exists only in memory is written as soon as the index is free."""

import asyncio

import pytest

from quipu.errors import Busy, Unavailable
from quipu.wrap.persistence import MAX_TRIES, run_to_end, write_durably
from tests.unit.wrap.fakes import settle
from tests.unit.wrap.virtual_time import now, run


class Index:
    """Is busy for a number of writes, and remembers when it was tried."""

    def __init__(self, n_busy: int, error: Exception | None = None) -> None:
        self.n_busy = n_busy
        self.error = error or Busy("Another process writes.")
        self.tried_at: list[float] = []

    async def write(self) -> None:
        """Write, or fail."""
        self.tried_at.append(now())
        if len(self.tried_at) <= self.n_busy:
            raise self.error


def test_a_write_is_tried_until_the_index_is_free() -> None:
    async def scenario() -> None:
        index = Index(5)
        await write_durably(index.write)
        assert len(index.tried_at) == 6
        assert index.tried_at == sorted(set(index.tried_at))

    run(scenario())


def test_an_index_that_is_never_free_is_told_of_at_last() -> None:
    async def scenario() -> None:
        index = Index(1_000)
        with pytest.raises(Busy):
            await write_durably(index.write)
        assert len(index.tried_at) == MAX_TRIES
        assert 60.0 <= now() <= 600.0

    run(scenario())


async def test_another_fault_is_raised_at_once() -> None:
    class Gone(Index):
        async def write(self) -> None:
            self.tried_at.append(asyncio.get_running_loop().time())
            raise Unavailable("The index has been closed.")

    index = Gone(1)
    with pytest.raises(Unavailable):
        await write_durably(index.write)
    assert len(index.tried_at) == 1


async def test_work_ends_before_a_cancellation_takes_effect() -> None:
    gate, done = asyncio.Event(), list[str]()

    async def work() -> None:
        await gate.wait()
        done.append("work")

    task = asyncio.create_task(run_to_end(work()))
    await settle()
    for _ in range(3):
        task.cancel()
        await settle()
    assert not task.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["work"]


async def test_what_work_raises_is_raised() -> None:
    async def work() -> None:
        raise ValueError("disk full")

    with pytest.raises(ValueError, match="disk full"):
        await run_to_end(work())
