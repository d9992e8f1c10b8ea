"""Tests of the server as a process: how it starts, what it says on the wire, how it ends, what outlives whom."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from quipu.errors import InvalidInput, Unavailable
from quipu.testing.scripted.script import Fault, FaultName, Latency, ReplyRules, RequestKind, Script, write_script
from quipu.testing.server import ServerHandle, serving
from quipu.testing.server.request_log import read_log

PING = {"model": "m", "messages": [{"role": "user", "content": "Reply with OK."}]}

# Asks, says that it was answered, and asks again.
CLIENT = """
import json, sys, urllib.request
for n in range(2):
    body = {"model": "m", "messages": [{"role": "user", "content": f"Number {n}"}]}
    request = urllib.request.Request(sys.argv[1] + "/chat/completions", json.dumps(body).encode())
    urllib.request.urlopen(request).read()
    print("answered", flush=True)
"""
PARENT = """
import sys, time
from quipu.testing.server import serving
with serving() as server:
    print(server.address, server.pid, flush=True)
    sys.stdin.read()
"""


def ask(address: str, *, is_streamed: bool = False) -> bytes:
    """Send a request over a socket and return every byte that comes back."""
    body = json.dumps({**PING, "stream": is_streamed}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(head.encode() + body)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def is_up(address: str) -> bool:
    try:
        with urlopen(f"{address}/v1/models", timeout=5):
            return True
    except OSError:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_events_are_framed_as_the_standard_says(server: ServerHandle) -> None:
    head, _, chunked = ask(server.address, is_streamed=True).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Type: text/event-stream" in head and b"Transfer-Encoding: chunked" in head
    stream = b""
    while chunked:
        size, _, rest = chunked.partition(b"\r\n")
        stream += rest[: int(size, 16)]
        assert rest[int(size, 16) :][:2] == b"\r\n"
        chunked = rest[int(size, 16) + 2 :]
    blocks = stream.split(b"\n\n")
    assert blocks.pop() == b""
    assert [block[:6] for block in blocks] == [b"data: "] * len(blocks)
    assert blocks[-1] == b"data: [DONE]"
    assert [json.loads(block[6:])["object"] for block in blocks[:-1]] == ["chat.completion.chunk"] * (len(blocks) - 1)


def test_a_reset_is_a_reset_and_no_orderly_end(server: ServerHandle) -> None:
    server.configure(Script(faults=(Fault(name=FaultName.RESET),)))
    with pytest.raises(ConnectionResetError):
        ask(server.address)


def test_the_server_ends_with_its_block() -> None:
    with serving() as server:
        assert is_up(server.address)
    assert not is_up(server.address)
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_the_server_ends_at_once_though_a_request_hangs() -> None:
    with serving(Script(faults=(Fault(name=FaultName.TIMEOUT),))) as server:
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            body = json.dumps(PING).encode()
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            connection.sendall(body)
            wait_for(lambda: server.summary().n_under_way == 1)
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_the_server_ends_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        address = parent.stdout.readline().split()[0]
        assert is_up(address)
        parent.kill()
        parent.wait()
        wait_for(lambda: not is_up(address))


def test_the_log_keeps_what_was_served_to_a_client_that_was_killed(server: ServerHandle, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    server.configure(Script(log=str(log), faults=(Fault(name=FaultName.TIMEOUT, containing="Number 1"),)))
    with subprocess.Popen([sys.executable, "-c", CLIENT, server.base_url], stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"answered\n"
        client.send_signal(signal.SIGKILL)
        client.wait()
    settled = server.settled()
    first = read_log(log)[0]
    assert (first.kind, first.status, first.is_completed) == (RequestKind.OTHER, 200, True)
    assert read_log(log) == list(settled.requests)
    assert settled.total().n_completed == 1


def test_a_log_with_half_a_line_is_read_up_to_it(server: ServerHandle, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    server.configure(Script(log=str(log)))
    ask(server.address)
    with log.open("ab") as lines:
        lines.write(b'{"n": 2, "ki')
    assert [served.n for served in read_log(log)] == [1]


def test_what_was_counted_outlives_a_new_script_and_not_a_reset(server: ServerHandle) -> None:
    ask(server.address)
    server.configure(Script(latency=Latency(mean_s=0.001)))
    ask(server.address)
    stats = server.stats()
    assert [(served.n, served.latency_s, served.attempt) for served in stats.requests] == [(1, 0, 1), (2, 0.001, 1)]
    assert server.summary().by_kind == stats.by_kind and server.summary().requests == ()
    assert stats.own_cpu_s > 0
    server.reset()
    assert server.stats().requests == ()


def test_a_script_that_cannot_be_followed_changes_nothing(server: ServerHandle) -> None:
    with pytest.raises(InvalidInput, match="recorded extractions"):
        server.configure(Script(answering=ReplyRules(extraction="/nowhere/extraction.jsonl")))
    assert b"You said" in ask(server.address)


def test_a_server_that_does_not_start_says_why() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(Unavailable, match="address already in use"),
        serving(port=taken.getsockname()[1]),
    ):
        pass


def test_the_command_takes_a_script_a_recording_and_a_log(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"id": "1", "text": "Anna met Bruno."}\n')
    (tmp_path / "extraction.jsonl").write_text('{"passage_id": "1", "entities": ["Anna"], "triples": []}\n')
    (tmp_path / "script.json").write_bytes(write_script(Script(latency=Latency(mean_s=0.001))))
    options = [f"--script={tmp_path}/script.json", f"--extraction={tmp_path}/extraction.jsonl", f"--log={tmp_path}/log"]
    with subprocess.Popen(
        [sys.executable, "-m", "quipu.testing.server", *options], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        ask(process.stdout.readline().strip())
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert [served.latency_s for served in read_log(tmp_path / "log")] == [0.001]


def test_the_command_names_what_it_cannot_read(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"sed": "1"}')
    ran = subprocess.run(
        [sys.executable, "-m", "quipu.testing.server", "--script", str(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, "sed" in ran.stderr) == (1, True)
