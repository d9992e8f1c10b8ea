"""Tests of RequestCoalescer: requests that arrive during one call run together in the next."""

import asyncio
from collections.abc import Sequence

import pytest

from quipu.stores.relational.replies import RequestCoalescer


class Slow:
    """Doubles numbers when let through, and remembers which came together; a negative one fails its group."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.gate = asyncio.Event()

    async def run(self, items: Sequence[int]) -> list[int]:
        """Wait, then double."""
        await self.gate.wait()
        self.groups.append(list(items))
        if min(items) < 0:
            raise ValueError(min(items))
        return [2 * item for item in items]


async def _started(coalescer: RequestCoalescer[int, int], *items: int) -> list["asyncio.Task[int]"]:
    tasks = [asyncio.create_task(coalescer.submit(item)) for item in items]
    await asyncio.sleep(0)
    return tasks


async def test_what_comes_while_a_group_is_done_is_done_together_next() -> None:
    slow = Slow()
    coalescer = RequestCoalescer(slow.run)
    tasks = await _started(coalescer, 1)
    await asyncio.sleep(0)
    tasks += await _started(coalescer, 2, 3, 2)
    slow.gate.set()
    assert await asyncio.gather(*tasks) == [2, 4, 6, 4]
    assert slow.groups == [[1], [2, 3, 2]]
    assert await coalescer.submit(5) == 10


async def test_a_failure_is_that_of_its_group_alone() -> None:
    slow = Slow()
    slow.gate.set()
    coalescer = RequestCoalescer(slow.run)
    assert [
        type(each) for each in await asyncio.gather(coalescer.submit(-1), coalescer.submit(1), return_exceptions=True)
    ] == [
        ValueError,
        ValueError,
    ]
    assert await coalescer.submit(1) == 2


async def test_the_work_of_a_cancelled_task_is_done_all_the_same() -> None:
    slow = Slow()
    coalescer = RequestCoalescer(slow.run)
    first, second = await _started(coalescer, 1, 2)
    first.cancel()
    slow.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await second == 4
    await coalescer.finish()
    assert slow.groups == [[1, 2]]


async def test_finishing_waits_for_all_that_was_put_in() -> None:
    slow = Slow()
    coalescer = RequestCoalescer(slow.run)
    await coalescer.finish()
    tasks = await _started(coalescer, 1, 2)
    finishing = asyncio.create_task(coalescer.finish())
    await asyncio.sleep(0)
    assert not finishing.done()
    slow.gate.set()
    await finishing
    assert slow.groups == [[1, 2]]
    assert await asyncio.gather(*tasks) == [2, 4]
