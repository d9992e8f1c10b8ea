"""Heartbeat: the leases of a store renewed while work goes on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from quipu.errors import QuipuError
from quipu.ports.store import Store


@asynccontextmanager
async def heartbeat(store: Store) -> AsyncIterator[None]:
    """Renew, within this context, whatever the store holds under a lease."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(store.lease_s / 3)
            with suppress(QuipuError):  # busy, or a full disk: the next beat comes before the lease ends
                await store.renew()

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
