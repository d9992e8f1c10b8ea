"""Crew: groups of chunks side by side."""

import asyncio
import gc
from collections.abc import Callable

import pytest

from quipu.ingest.crew import Crew, Group


class Work:
    """Groups that end when they are told to, and what they did."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.answered: dict[str, Callable[[int], None]] = {}
        self.gates: dict[str, asyncio.Event] = {}

    def group(self, name: str) -> Group:
        self.gates[name] = asyncio.Event()

        async def run(answered: Callable[[int], None]) -> None:
            self.begun.append(name)
            self.answered[name] = answered
            await self.gates[name].wait()
            self.ended.append(name)

        return run


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def _has_room(crew: Crew) -> bool:
    task = asyncio.create_task(crew.room())
    await _settle()
    is_done = task.done()
    task.cancel()
    return is_done


async def test_without_chunks_ahead_one_group_follows_the_other() -> None:
    work = Work()
    async with Crew(0) as crew:
        crew.start(work.group("a"), 5)
        assert not await _has_room(crew)
        work.answered["a"](5)
        assert not await _has_room(crew)  # all is answered, but not published yet
        work.gates["a"].set()
        assert await _has_room(crew)
    assert work.ended == ["a"]


async def test_there_is_room_while_fewer_chunks_wait_than_are_wanted_ahead() -> None:
    work = Work()
    async with Crew(4) as crew:
        assert await _has_room(crew)
        crew.start(work.group("a"), 3)
        assert await _has_room(crew)
        crew.start(work.group("b"), 3)
        assert not await _has_room(crew)
        work.answered["a"](2)
        assert not await _has_room(crew)
        work.answered["b"](1)
        assert await _has_room(crew)
        work.gates["a"].set()
        work.gates["b"].set()
    assert sorted(work.ended) == ["a", "b"]


async def test_chunks_a_group_never_answered_are_not_waited_for() -> None:
    work = Work()
    async with Crew(2) as crew:
        crew.start(work.group("a"), 100)
        await _settle()
        work.gates["a"].set()
        assert await _has_room(crew)
        assert crew.is_idle


async def test_the_failure_of_a_group_stops_the_others_and_is_raised() -> None:
    work = Work()

    async def fail(_: Callable[[int], None]) -> None:
        raise ZeroDivisionError("out of order")

    with pytest.raises(ZeroDivisionError, match="out of order"):
        async with Crew(10) as crew:
            crew.start(work.group("a"), 1)
            crew.start(fail, 1)
            await crew.all_done()
    assert work.begun == ["a"]
    assert work.ended == []


async def test_leaving_by_an_error_stops_every_group() -> None:
    work = Work()
    with pytest.raises(KeyboardInterrupt):
        async with Crew(10) as crew:
            crew.start(work.group("a"), 1)
            await _settle()
            raise KeyboardInterrupt
    assert (work.begun, work.ended) == (["a"], [])


async def test_groups_that_fail_together_leave_no_failure_that_nobody_heard_of() -> None:
    unheard: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(str(context["message"])))

    async def fail(_: Callable[[int], None]) -> None:
        raise ZeroDivisionError("out of order")

    with pytest.raises(ZeroDivisionError):
        async with Crew(10) as crew:
            for _ in range(3):
                crew.start(fail, 1)
            await crew.all_done()
    del crew
    gc.collect()
    assert unheard == []
