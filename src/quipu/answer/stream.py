"""Stream: an answer in pieces while it is written, then whole."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from quipu.model.answer import Answer, AnswerPiece
from quipu.ports.providers import TextSink


async def stream(work: Callable[[TextSink], Awaitable[Answer]]) -> AsyncGenerator[AnswerPiece, None]:
    """Yield the pieces of text that `work` writes to the sink it is given, then one that holds its answer.

    What `work` raises is raised here. Closing the generator cancels the work and waits until it has ended.
    """
    pieces: asyncio.Queue[AnswerPiece | None] = asyncio.Queue()

    async def run() -> Answer:
        try:
            return await work(lambda text: pieces.put_nowait(AnswerPiece(text=text)))
        finally:
            pieces.put_nowait(None)

    task = asyncio.create_task(run())
    try:
        while (piece := await pieces.get()) is not None:
            yield piece
        yield AnswerPiece(answer=await task)
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # it has been raised, or nobody is there to hear of it
