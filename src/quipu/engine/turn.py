"""Turns: of all processes on an index one at a time has models derive something, so that nothing is paid for twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from quipu.engine.components import Models
from quipu.errors import Busy
from quipu.ingest.workers import lease_heartbeat
from quipu.ports.store import Store

POLL_S = 0.2  # how often to look whether the process whose turn it is has finished


@asynccontextmanager
async def turn_to_derive(store: Store, models: Models) -> AsyncIterator[None]:
    """Wait for the turn and have it within this context; without models, which cost something, nobody waits.

    What the process before has made is there then. That of one that died is free.
    """
    if not models.chains and models.embedder_chain is None:
        yield
        return
    try:  # begins here: who is cancelled while taking the turn has it all the same
        while not await store.begin_deriving():  # noqa: ASYNC110 - no event reaches us from another process
            await asyncio.sleep(POLL_S)
        async with lease_heartbeat(store):
            yield
    finally:
        with suppress(Busy):  # its lease will end
            await asyncio.shield(store.end_deriving())
