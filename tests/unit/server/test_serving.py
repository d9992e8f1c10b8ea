"""`quipu serve` as a process: it listens, answers, ends when it is asked to, and does not wait for slow clients."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest
import uvicorn
from uvicorn.server import ServerState

from quipu.errors import InvalidInput
from quipu.server import ServerOptions, ServerPlan, serve
from quipu.server.access import KEYS_FILE, KeyFile, Permission
from quipu.server.listening import TimedProtocol, listen

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


async def test_the_body_of_a_reply_does_not_wait_for_the_client() -> None:
    """TCP_NODELAY: without it, each reply takes 40 ms more."""
    protocols: list[TimedProtocol] = []

    def make() -> TimedProtocol:
        config = uvicorn.Config(lambda: None, http=TimedProtocol, ws="none", log_config=None)
        config.load()
        protocols.append(TimedProtocol(config=config, server_state=ServerState(), app_state={}))
        return protocols[0]

    server = await asyncio.get_running_loop().create_server(make, sock=listen(ServerOptions(port=0)))
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        while not protocols:
            await asyncio.wait_for(server.start_serving(), 10)
        accepted = protocols[0].transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        writer.close()
        protocols[0].transport.close()
        await writer.wait_closed()
