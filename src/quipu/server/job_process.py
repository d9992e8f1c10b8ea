"""Job process: the work of jobs and large uploads in a process of its own, so that questions do not wait for it.

It reads orders from its input, one a line, and prints a reply for each. It ends with its input. Its memory goes back to
the system when it ends, so a large document does not make the server larger.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from pydantic import TypeAdapter

import quipu.errors
from quipu.engine import Quipu
from quipu.errors import QuipuError, Unavailable
from quipu.model.document import MetadataValue, SourceDocument
from quipu.model.results import EnqueuedDocuments
from quipu.server.job_runners import work_once
from quipu.server.wire import json_bytes
from quipu.settings import Settings
from quipu.stores.sqlite.server_state import ServerState
from quipu.wiring import open_engine

_IDLE_S = 60.0  # after which a process without work ends
_END_S = 3.0  # which it has to give its work back
_MAX_LINE = 1 << 28
_NICENESS = 5  # questions come first


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeFile:
    """A document whose content is in a file."""

    path: str
    id: str
    title: str = ""
    source: str = ""
    media_type: str
    metadata: dict[str, MetadataValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobOrder:
    """What to do with an index: put a file into its queue; without one, the work of its jobs."""

    number: int
    index: str
    file: LargeFile | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobReply:
    """The reply to an order: what was put into the queue, or an error: its class, message and remedy."""

    number: int
    enqueued: EnqueuedDocuments | None = None
    error: tuple[str, str, str] | None = None


_ORDER, _REPLY = TypeAdapter(_JobOrder), TypeAdapter(_JobReply)


class JobProcess:
    """Gives orders to a process of its own, which is started for the first one, and ends when it has none for long."""

    def __init__(self, idle_s: float = _IDLE_S) -> None:
        self._idle_s = idle_s
        self._starting = asyncio.Lock()
        self._child: _Child | None = None

    async def work(self, index: Path) -> None:
        """Do the work of the jobs of an index. Raises Unavailable if the process ends before."""
        await self._do(_JobOrder(number=0, index=str(index)))

    async def enqueue(self, index: Path, file: LargeFile) -> EnqueuedDocuments:
        """Put a file into the queue of an index; raises as `Quipu.enqueue`, and Unavailable if the process ends."""
        reply = await self._do(_JobOrder(number=0, index=str(index), file=file))
        return reply.enqueued or EnqueuedDocuments()

    async def close(self) -> None:
        """End the process: what is unfinished is given back."""
        if self._child is not None:
            await self._child.end()
            self._child = None

    async def started(self) -> int:
        """Start the process unless it runs, and return its id."""
        async with self._starting:
            return (await self._running()).process_id

    async def ended(self) -> None:
        """Wait until the process has ended by itself."""
        if self._child is not None:
            await self._child.ended()

    async def _do(self, order: _JobOrder) -> _JobReply:
        async with self._starting:
            child = await self._running()
            reply = child.send(order)
        return await child.receive(reply)

    async def _running(self) -> "_Child":
        if self._child is None or self._child.has_ended:
            self._child = await _Child.start(self._idle_s)
        return self._child


class _Child:
    """A process that runs, and the orders that it has not replied to."""

    def __init__(self, process: Process, idle_s: float) -> None:
        self._process = process
        self._idle_s = idle_s
        self._numbers = count(1)
        self._reply_by_number: dict[int, asyncio.Future[_JobReply]] = {}
        self._ending: asyncio.TimerHandle | None = None
        self._reading = asyncio.create_task(self._read())
        self.has_ended = False

    @classmethod
    async def start(cls, idle_s: float) -> "_Child":
        """Start a process. It has a session of its own: Ctrl-C ends the server, and the server ends it."""
        command = [sys.executable, "-P", "-c", f"from {__name__} import main; main()"]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, limit=_MAX_LINE, start_new_session=True
        )
        return cls(process, idle_s)

    @property
    def process_id(self) -> int:
        """The id of the process."""
        return self._process.pid

    def send(self, order: _JobOrder) -> asyncio.Future[_JobReply]:
        """Send an order, and return the reply to come."""
        assert self._process.stdin is not None
        if self._ending is not None:
            self._ending.cancel()
        number = next(self._numbers)
        self._reply_by_number[number] = reply = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json_bytes(replace(order, number=number)) + b"\n")
        return reply

    async def receive(self, reply: asyncio.Future[_JobReply]) -> _JobReply:
        """Wait for a reply, and raise the error that it tells of."""
        result = await reply
        if result.error is not None:
            kind, message, remedy = result.error
            raise getattr(quipu.errors, kind)(message, remedy=remedy)
        return result

    async def end(self) -> None:
        """End the process; kill it if it does not end in time."""
        self._close_input()
        try:
            await asyncio.wait_for(self._process.wait(), _END_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
        await self._reading

    async def ended(self) -> None:
        """Wait until the process has ended, and its last replies are read."""
        await self._reading

    def _close_input(self) -> None:
        assert self._process.stdin is not None
        self.has_ended = True
        self._process.stdin.close()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            reply = _REPLY.validate_json(line)
            future = self._reply_by_number.pop(reply.number)
            if not future.done():  # whoever waited may be cancelled
                future.set_result(reply)
            if not self._reply_by_number:
                self._ending = asyncio.get_running_loop().call_later(self._idle_s, self._close_input)
        self.has_ended = True
        await self._process.wait()
        for future in self._reply_by_number.values():
            if not future.done():
                future.set_exception(
                    Unavailable(
                        "The process that does the work of jobs has ended.",
                        remedy="It may have needed more memory than there is. The work goes on with the next job.",
                    )
                )


def main() -> None:
    """Follow the orders of the input until it ends."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    asyncio.run(_serve())


async def _serve() -> None:
    """Follow each order in a task; what is unfinished when the input ends is given back."""
    tasks = set[asyncio.Task[None]]()
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        task = asyncio.create_task(_follow(_ORDER.validate_json(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _follow(order: _JobOrder) -> None:
    reply = _JobReply(number=order.number)
    try:
        async with await open_engine(Settings(index=Path(order.index)), create=False) as kb:
            if order.file is None:
                await work_once(kb, await asyncio.to_thread(ServerState, Path(order.index)))
            else:
                reply = replace(reply, enqueued=await _enqueue(kb, order.file))
    except QuipuError as error:
        reply = replace(reply, error=(type(error).__name__, error.message, error.remedy))
    sys.stdout.buffer.write(json_bytes(reply) + b"\n")
    sys.stdout.buffer.flush()


async def _enqueue(kb: Quipu, file: LargeFile) -> EnqueuedDocuments:
    source = SourceDocument(
        id=file.id,
        content=await asyncio.to_thread(Path(file.path).read_bytes),
        title=file.title,
        source=file.source,
        media_type=file.media_type,
        metadata=file.metadata,
    )
    return await kb.enqueue(source)
