"""`quipu serve` as a process: it listens, answers, ends when it is asked to, and does not wait for slow clients."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest
import uvicorn
from uvicorn.server import ServerState

from quipu.errors import InvalidInput
from quipu.server import ServerOptions, ServerPlan, serve
from quipu.server.access import KEYS_FILE, KeyFile, Permission
from quipu.server.listening import JoiningTransport, TimedProtocol, listen

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to send")


@contextmanager
def running(index: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a server of an index during the block; yield its address and its process."""
    command = [sys.executable, "-m", "quipu", "--index", str(index), "serve", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield process.stderr.readline().rsplit(" ", 1)[1].strip(), process
        finally:
            process.terminate()


def connection(address: str) -> socket.socket:
    """Return an open connection to a server."""
    parts = urlsplit(address)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port or 80), timeout=60)


def test_a_server_answers_and_ends_on_sigterm(tmp_path: Path) -> None:
    with running(tmp_path / "kb") as (address, process):
        with urllib.request.urlopen(f"{address}/health", timeout=60) as response:
            assert json.load(response) == {"status": "ok"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) in (0, -signal.SIGTERM)


def test_workers_serve_one_port_and_end_together(tmp_path: Path) -> None:
    with running(tmp_path / "kb", "--workers", "2") as (address, process):
        for _ in range(4):
            with urllib.request.urlopen(f"{address}/health", timeout=60) as response:
                assert json.load(response) == {"status": "ok"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    with pytest.raises(OSError, match="refused"):
        connection(address)


def test_the_printed_address_has_the_sub_path_of_the_proxy(tmp_path: Path) -> None:
    with running(tmp_path / "kb", "--prefix", "/tools/quipu/") as (address, _):
        assert urlsplit(address).path == "/tools/quipu"
        with urllib.request.urlopen(f"{address}/health", timeout=60) as response:
            assert json.load(response) == {"status": "ok"}


def test_streams_of_events_do_not_delay_the_end(tmp_path: Path) -> None:
    with running(tmp_path / "kb") as (address, process):
        with connection(address) as client, client.makefile("rb") as lines:
            client.sendall(b"GET /api/v1/workspaces/default/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert next(line for line in lines if line.startswith(b"event: ")) == b"event: state\n"
            process.send_signal(signal.SIGTERM)
            assert lines.read().endswith(b"\r\n0\r\n\r\n")  # the stream ended as a whole
        assert process.wait(timeout=60) in (0, -signal.SIGTERM)
        assert process.stderr is not None
        assert "Error" not in process.stderr.read()


def test_workers_count_calls_together(tmp_path: Path) -> None:
    """However the connections are spread, one more call than the limit allows is refused."""
    key = KeyFile(tmp_path / KEYS_FILE).create("a", Permission.READ).text
    codes = []
    with running(tmp_path, "--workers", "2", "--calls-per-minute", "60") as (address, _):
        for _ in range(9):  # each on a connection of its own
            request = urllib.request.Request(f"{address}/api/v1/version", headers={"authorization": f"Bearer {key}"})
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    codes.append(response.status)
            except HTTPError as error:
                codes.append(error.code)
    assert codes.count(200) >= 6
    assert 429 in codes


def test_too_many_headers_end_a_connection(tmp_path: Path) -> None:
    with running(tmp_path / "kb") as (address, _), connection(address) as client:
        client.sendall(b"GET /health HTTP/1.1\r\n")
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
            for _ in range(10_000):
                client.sendall(b"x-filler: " + b"x" * 1_000 + b"\r\n")


def test_requests_are_logged_as_json(tmp_path: Path) -> None:
    with running(tmp_path / "kb", "--log-json") as (address, process):
        with urllib.request.urlopen(f"{address}/health", timeout=60):
            pass
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        lines = [line for line in process.stderr if line.startswith("{")]
    logged = json.loads(lines[0])
    assert (logged["operation"], logged["status"], logged["message"]) == ("health", 200, "request")


def test_an_address_of_another_machine_is_named(tmp_path: Path) -> None:
    plan = ServerPlan(index=tmp_path, options=ServerOptions(host="192.0.2.1"))
    with pytest.raises(InvalidInput, match=r"192\.0\.2\.1, port 8787"):
        serve(plan, lambda _: None)


@asynccontextmanager
async def one_connection() -> AsyncIterator[tuple[TimedProtocol, asyncio.StreamReader]]:
    """Yield the server's side of a connection, and what the client receives."""
    accepted: asyncio.Future[TimedProtocol] = asyncio.get_running_loop().create_future()

    class Accepted(TimedProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            accepted.set_result(self)

    config = uvicorn.Config(lambda: None, http=Accepted, ws="none", log_config=None)
    config.load()
    server = await asyncio.get_running_loop().create_server(
        lambda: Accepted(config=config, server_state=ServerState(), app_state={}), sock=listen(ServerOptions(port=0))
    )
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            yield await accepted, reader
        finally:
            writer.close()
            (await accepted).transport.abort()


async def test_the_body_of_a_reply_does_not_wait_for_the_client() -> None:
    """TCP_NODELAY: without it, each reply takes 40 ms more."""
    async with one_connection() as (protocol, _):
        accepted = protocol.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_the_headers_of_a_reply_are_sent_with_the_beginning_of_its_body() -> None:
    sent: list[bytes] = []

    class Recorded(asyncio.Transport):
        def write(self, data: bytes | bytearray | memoryview) -> None:
            sent.append(bytes(data))

        def close(self) -> None:
            sent.append(b"closed")

    transport, headers = JoiningTransport(Recorded(), asyncio.get_running_loop()), b"HTTP/1.1 200 OK\r\n\r\n"
    for part in (headers, b"body", b" and more"):
        transport.write(part)
    assert sent == [headers + b"body", b" and more"]
    transport.write(headers)  # of a stream, whose first part comes later
    await asyncio.sleep(0)
    transport.write(headers)  # of a reply without a body
    transport.close()
    assert sent[2:] == [headers, headers, b"closed"]


async def test_a_client_that_sends_no_headers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quipu.server.listening._HEADERS_S", 0.01)
    async with asyncio.timeout(60), one_connection() as (_, reader):
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
