"""Working: through the queue until what was handed in is finished, here or by another worker."""

import asyncio
from collections.abc import Collection

from quipu.ingest.documents import IngestConfig
from quipu.ingest.pipeline import PipelineResult, process_queue
from quipu.model.document import DocumentStatus
from quipu.model.event import EventSink
from quipu.ports.store import Store

UNFINISHED = (DocumentStatus.QUEUED, DocumentStatus.PARSING, DocumentStatus.EXTRACTING, DocumentStatus.REMOVING)
POLL_S = 0.2  # how often to look whether another process has finished what was handed in here


async def work_through(
    handed_in: Collection[str], store: Store, ingest_config: IngestConfig, turn: asyncio.Lock, on_event: EventSink
) -> PipelineResult:
    """Work until nothing is queued, and nothing of what was handed in is left with another worker."""
    work = PipelineResult()
    while True:
        async with turn:  # one pipeline an engine: it takes whatever is queued, for all who wait
            await process_queue(store, ingest_config, work, on_event)
        if work.stopped is not None:
            return work
        async with store.view() as view:
            if not any(document.status in UNFINISHED for document in await view.documents(sorted(handed_in))):
                return work
        await asyncio.sleep(POLL_S)
