"""Unbroken: work that a cancellation must not cut off."""

import asyncio

import pytest

from quipu.wrap.unbroken import unbroken
from tests.unit.wrap.fakes import settle


async def test_work_ends_before_a_cancellation_takes_effect() -> None:
    gate, done = asyncio.Event(), list[str]()

    async def work() -> None:
        await gate.wait()
        done.append("work")

    task = asyncio.create_task(unbroken(work()))
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
        await unbroken(work())
