"""Working: through the queue until what was handed in is finished, here or by another worker."""

import asyncio
from collections.abc import Collection

from quipu.ingest.pipeline import Work, work_queue
from quipu.ingest.reading import Recipe
from quipu.model.document import DocumentStatus
from quipu.model.event import EventSink
from quipu.ports.store import Store

UNFINISHED = (DocumentStatus.QUEUED, DocumentStatus.PARSING, DocumentStatus.EXTRACTING, DocumentStatus.REMOVING)
POLL_S = 0.2  # how often to look whether another process has finished what was handed in here


async def work_through(
    handed_in: Collection[str], store: Store, recipe: Recipe, turn: asyncio.Lock, on_event: EventSink
) -> Work:
    """Work until nothing is queued, and nothing of what was handed in is left with another worker."""
    work = Work()
    while True:
        async with turn:  # one pipeline an engine: it takes whatever is queued, for all who wait
            await work_queue(store, recipe, work, on_event)
        if work.stopped is not None:
            return work
        async with store.view() as view:
            if not any(document.status in UNFINISHED for document in await view.documents(sorted(handed_in))):
                return work
        await asyncio.sleep(POLL_S)
