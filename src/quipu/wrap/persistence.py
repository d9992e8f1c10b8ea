"""Durable writes: repeated while another process locks the index, and not interrupted by a cancellation."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from quipu.errors import Busy

T = TypeVar("T")

MAX_TRIES = 20
_MAX_PAUSE_S = 5.0
_FIRST_PAUSE_S = 0.05


async def write_durably(write: Callable[[], Awaitable[None]]) -> None:
    """Run `write` until the index accepts it. A cancellation takes effect after that.

    Raises Busy if the index stays locked for more than a minute, not counting the time `write` itself waits.
    """
    await run_to_end(_retry_while_busy(write))


async def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end and return its result; a cancellation takes effect after that."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await wait_for_end(task)
        raise


async def wait_for_end(task: asyncio.Task[Any]) -> None:
    """Wait until a task has ended, even if the waiting is cancelled several times. Its exception is dropped."""
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    if not task.cancelled():
        task.exception()


async def _retry_while_busy(write: Callable[[], Awaitable[None]]) -> None:
    for n_failed in range(1, MAX_TRIES):
        try:
            return await write()
        except Busy:
            await asyncio.sleep(min(_MAX_PAUSE_S, _FIRST_PAUSE_S * 2**n_failed))
    return await write()
