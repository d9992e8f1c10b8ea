"""Listening: the server's socket, its connections, and its worker processes."""

import asyncio
import json
import logging
import multiprocessing
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from quipu.errors import InvalidInput
from quipu.model.usage import NO_LIMIT, LedgerSums, SpendingLimit
from quipu.server.app import make_app
from quipu.server.components import ServerComponents, ServerOptions
from quipu.server.workspaces import Workspaces
from quipu.stores.sqlite.server_state import SpendingFile

_MAX_HEADER_BYTES = 64 << 10
_HEADERS_S = 10.0  # which a client has to send the headers of a request
_LOGGED = ("request_id", "operation", "status", "ms")
_RESTART_S = 1.0  # between two starts of a worker that ends by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """What a server process is made from: one index, or the folder of all; options; and how many processes serve."""

    index: Path | None = None
    root: Path | None = None
    options: ServerOptions = field(default_factory=ServerOptions)
    n_workers: int = 1

    def components(self, shared: Path | None = None, number: int = 0) -> ServerComponents:
        """Return the components of one process.

        `shared` is the folder in which all processes count calls and spending, and `number` that of this one. Jobs run
        in another process, so that this one answers.
        """
        options = replace(self.options, work_apart=True)
        if shared is None:
            return ServerComponents.of(Workspaces(index=self.index, root=self.root), options)
        workspaces = Workspaces(
            index=self.index,
            root=self.root,
            make_ledger=lambda name: SharedLedger(shared / f"{name}.spending", number),
        )
        return ServerComponents.of(workspaces, options, shared / "calls")


class SharedLedger:
    """What all processes of a server spend of the budget of a workspace."""

    def __init__(self, path: Path, process: int) -> None:
        self._file = SpendingFile(path, process)

    async def add(self, change: LedgerSums, limit: SpendingLimit = NO_LIMIT) -> LedgerSums:
        with self._file.locked():
            sums = self._file.read()
            if sums.fits(change, limit):
                self._file.add(change)
        return sums

    def settle(self, change: LedgerSums) -> None:
        with self._file.locked():
            self._file.add(change)


def serve(plan: ServerPlan, on_ready: Callable[[str], None]) -> None:
    """Serve until the process is asked to end (SIGINT, SIGTERM); `on_ready` gets the address once it listens.

    Open streams end after a few seconds. Raises InvalidInput if the address cannot be listened on.
    """
    with listen(plan.options) as listening:
        host = f"[{plan.options.host}]" if ":" in plan.options.host else plan.options.host
        on_ready(f"http://{host}:{listening.getsockname()[1]}")
        if plan.n_workers > 1:
            _serve_in_workers(plan, listening)
        else:
            _run(plan, listening)


def listen(options: ServerOptions) -> socket.socket:
    """Return a socket that listens on the address of the options; raises InvalidInput where that is impossible."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host, options.port), family=family, backlog=1_024)
    except OSError as error:
        raise InvalidInput(
            f"The server cannot listen on {options.host}, port {options.port} ({error.strerror}).",
            remedy="Choose another port: quipu serve --port 8788",
        ) from error


async def serve_socket(server: ServerComponents, listening: socket.socket) -> None:
    """Serve the connections of a socket in this process until it is asked to end."""
    config = uvicorn.Config(
        make_app(server),
        http=TimedProtocol,
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=server.options.max_connections,
        timeout_graceful_shutdown=server.options.graceful_s,
    )
    await _EndingServer(config, server).serve(sockets=[listening])


class _EndingServer(uvicorn.Server):
    """Ends the streams of events as soon as it is asked to end; other replies have a few seconds."""

    def __init__(self, config: uvicorn.Config, server: ServerComponents) -> None:
        super().__init__(config)
        self._components = server

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._components.watches.close()
        await super().shutdown(sockets)


def log_as_json() -> None:
    """Log what the server logs as lines of JSON on stderr, with a line for each request."""
    logger, handler = logging.getLogger("quipu.server"), logging.StreamHandler()
    handler.setFormatter(_JsonFormatter())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


class _JsonFormatter(logging.Formatter):
    """One JSON object for each record. A request is named by its operation: no question, key or path is in it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"time": moment, "level": record.levelname.lower(), "message": record.getMessage()}
        line |= {name: getattr(record, name) for name in _LOGGED if hasattr(record, name)}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class JoiningTransport:
    """A connection that sends the headers of a reply together with the first part of its body, if that comes at once.

    A system call less is a third of the CPU of a short reply. All else is that of the connection itself.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._headers = b""

    def write(self, part: bytes) -> None:
        if not self._headers and part.startswith(b"HTTP/"):
            self._headers = part
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(self._headers + part)
            self._headers = b""

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._headers:
            self._transport.write(self._headers)
            self._headers = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class TimedProtocol(HttpToolsProtocol):
    """Closes a connection that sends the headers of a request too slowly, or too many of them."""

    _n_header_bytes = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = cast("asyncio.Transport", JoiningTransport(transport, self.loop))
        # Otherwise the body of a reply waits 40 ms for the client to confirm its headers.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, part: bytes) -> None:
        if self._timer is not None:
            self._n_header_bytes += len(part)
            if self._n_header_bytes > _MAX_HEADER_BYTES and len(part) < self._n_header_bytes:
                self.transport.abort()
                return
        super().data_received(part)

    def on_message_begin(self) -> None:
        self._start_timer()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        super().on_headers_complete()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._n_header_bytes = 0
            self._timer = self.loop.call_later(_HEADERS_S, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _serve_in_workers(plan: ServerPlan, listening: socket.socket) -> None:
    """Serve a socket with several processes: one that ends is started again, and all end with this one."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="quipu-") as folder:

        def start(number: int) -> BaseProcess:
            process = context.Process(target=_run, args=(plan, listening, Path(folder), number), daemon=True)
            process.start()
            return process

        signal.signal(signal.SIGTERM, _interrupt)
        workers = [start(number) for number in range(plan.n_workers)]
        try:
            while True:
                wait([worker.sentinel for worker in workers])
                time.sleep(_RESTART_S)
                workers = [worker if worker.is_alive() else start(number) for number, worker in enumerate(workers)]
        except KeyboardInterrupt:
            _end(workers, plan.options.graceful_s + 2)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end(workers: list[BaseProcess], seconds: float) -> None:
    """Ask processes to end, and kill those that still run after these seconds: the next start continues their work."""
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(seconds)
        if worker.is_alive():
            worker.kill()


def _run(plan: ServerPlan, listening: socket.socket, shared: Path | None = None, number: int = 0) -> None:
    """Serve a socket in this process until it is asked to end."""
    if plan.options.log_json:
        log_as_json()
    with suppress(KeyboardInterrupt):  # which uvicorn raises again after it has ended
        asyncio.run(serve_socket(plan.components(shared, number), listening))
