"""Blocking work in threads, always finished: nothing is left running on a connection its caller has given up."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def finish_in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread. A caller that is cancelled meanwhile, even twice, still waits for its end."""
    task = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        raise
