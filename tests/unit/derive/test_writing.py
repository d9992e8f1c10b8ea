"""Writing many texts: read ahead, written side by side, kept as they come, stopped where a step fails."""

import asyncio
from collections.abc import Sequence

import pytest

from quipu.derive.writing import READ_AT_ONCE, Calls, Work, write_all
from quipu.errors import Unavailable
from quipu.model.chat import ChatRequest, Message, Role
from tests.unit.derive.writer import Writer

_REQUEST = ChatRequest(messages=(Message("user", "#a#\n- x\n#a#"),), role=Role.REPORT, max_output_tokens=9)


class _Desk:
    """Doubles numbers; knows which it has read and kept."""

    def __init__(self) -> None:
        self.read_blocks: list[Sequence[int]] = []
        self.kept: list[int] = []
        self.n_at_once, self.peak = 0, 0

    async def read(self, keys: Sequence[int]) -> Sequence[int]:
        self.read_blocks.append(keys)
        return [each for each in keys if each % 10 != 3]

    async def write(self, number: int) -> int | None:
        self.n_at_once += 1
        self.peak = max(self.peak, self.n_at_once)
        await asyncio.sleep(0)
        self.n_at_once -= 1
        return None if number % 10 == 7 else 2 * number

    async def keep(self, written: Sequence[int]) -> None:
        self.kept += written

    def work(self) -> Work[int, int, int]:
        return Work(read=self.read, write=self.write, keep=self.keep)


async def test_all_is_written_but_what_is_gone_and_what_was_not_tried() -> None:
    desk, done = _Desk(), list[int]()
    await write_all(range(50), desk.work(), n_at_once=4, on_done=done.append)
    assert sorted(desk.kept) == [2 * n for n in range(50) if n % 10 not in (3, 7)]
    assert done == sorted(done)
    assert done[-1] == 50
    assert desk.peak == 4
    assert max(map(len, desk.read_blocks)) == READ_AT_ONCE


async def test_nothing_is_done_where_there_is_nothing_to_do() -> None:
    desk = _Desk()
    await write_all([], desk.work(), n_at_once=2, on_done=lambda _: None)
    assert desk.read_blocks == []


@pytest.mark.parametrize("step", ["read", "write", "keep"])
async def test_what_a_step_raises_ends_the_run(step: str) -> None:
    async def fail(_: object) -> None:
        raise LookupError(step)

    desk = _Desk()
    steps = {"read": desk.read, "write": desk.write, "keep": desk.keep, step: fail}
    with pytest.raises(LookupError, match=step):
        await write_all(range(20), Work(**steps), n_at_once=2, on_done=lambda _: None)  # type: ignore[arg-type]


async def test_calls_end_with_the_first_that_says_so() -> None:
    writer = Writer(reply=lambda _: Unavailable("gone"))
    calls = Calls(writer, 1)
    for _ in range(3):
        with pytest.raises(Unavailable, match="gone"):
            await calls.ask(_REQUEST)
    assert len(writer.asked) == 1
    assert calls.end is not None
