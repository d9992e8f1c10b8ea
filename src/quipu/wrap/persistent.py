"""Persistent: what exists only in memory is written again and again while another process holds the index."""

import asyncio
from collections.abc import Awaitable, Callable

from quipu.errors import Busy

MAX_TRIES = 20
MAX_PAUSE_S = 5.0
_FIRST_PAUSE_S = 0.05


async def persist(write: Callable[[], Awaitable[None]]) -> None:
    """Run `write` until the index takes it. Raises Busy where it does not for over a minute, waits of its own aside."""
    for n_failed in range(1, MAX_TRIES):
        try:
            return await write()
        except Busy:
            await asyncio.sleep(min(MAX_PAUSE_S, _FIRST_PAUSE_S * 2**n_failed))
    return await write()
