"""A server under blows: everything killed, a full disk, an index of a later version, slow readers, half requests."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import islice
from pathlib import Path

import httpx
import pytest

from quipu import SourceDocument, sync
from tests.unit.server.conftest import LETTER

KB = "/api/v1/workspaces/default"
N_DOCUMENTS = 24


@contextmanager
def served(index: Path, *options: str, limited_by: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
    """Run a server in a process group of its own; yield its address and the group. All of it is killed at the end."""
    command = [*limited_by, sys.executable, "-m", "quipu", "--index", str(index), "serve", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().rsplit(" ", 1)[1].strip(), process.pid
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    with sync.open(tmp_path / "kb") as kb:
        kb.add_text(LETTER, id="letters/1.md")
    return tmp_path / "kb"


def text_of(n: int) -> str:
    return "\n\n".join(f"Keeper{n} Olsen{m} tends the lighthouse number {n} of the coast {m}." for m in range(40))


def test_what_was_accepted_is_read_although_everything_is_killed_under_load(index: Path) -> None:
    def put(address: str, n: int) -> bool:
        try:
            reply = httpx.put(f"{address}{KB}/documents/{n}.md", content=text_of(n).encode(), timeout=60)
        except httpx.HTTPError:
            return False  # killed before it answered: either is right
        assert reply.status_code == 202
        assert reply.json()["job"]
        return True

    def ask(address: str, _: int) -> None:
        with suppress(httpx.HTTPError):
            reply = httpx.post(f"{address}{KB}/query", json={"question": "Whom did Ada write to?"}, timeout=60)
            assert "Charles Babbage" in reply.json()["text"]  # a whole reply is a right one

    with served(index, "--workers", "2") as (address, group), ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, address, n) for n in range(8)]
        puts = [pool.submit(put, address, n) for n in range(N_DOCUMENTS)]
        n_early = sum(future.result() for future in islice(as_completed(puts), N_DOCUMENTS // 3))
        os.killpg(group, signal.SIGKILL)
        accepted = [n for n, reply in enumerate(puts) if reply.result()]
        for reply in asked:
            reply.result()
    assert len(accepted) >= n_early == N_DOCUMENTS // 3
    with served(index) as (address, _), httpx.Client(base_url=address, timeout=120) as client:
        for job in client.get(f"{KB}/jobs", params={"unfinished": True}).json()["jobs"]:
            client.get(f"{KB}/jobs/{job['id']}/events")  # ends with the job
        resumed = client.post(f"{KB}/resume").json()
        client.get(f"{KB}/jobs/{resumed['id']}/events")
        listed = client.get(f"{KB}/documents", params={"k": 1000}).json()["documents"]
        status_by_id = {document["id"]: document["status"] for document in listed}
        assert {f"{n}.md" for n in accepted} <= status_by_id.keys()
        assert set(status_by_id.values()) == {"ready"}
        assert client.post(f"{KB}/verify").json() == {"differences": []}


def test_a_full_disk_is_an_error_and_the_server_goes_on(index: Path) -> None:
    limit = (index / "index.sqlite").stat().st_size + (2 << 20)

    # No file may grow further, as on a full disk.
    shell = ("sh", "-c", f'ulimit -f {limit // 512}; exec "$@"', "sh")
    with served(index, limited_by=shell) as (address, _), httpx.Client(base_url=address, timeout=120) as client:
        large = os.urandom(3 * limit).hex().encode()
        reply = client.put(f"{KB}/documents/large.txt", content=large)
        assert reply.status_code in (500, 503, 507), reply.text
        assert str(index) not in reply.text
        answer = client.post(f"{KB}/query", json={"question": "Whom did Ada Lovelace write to?"})
        assert "Charles Babbage" in answer.json()["text"]
        small = client.put(f"{KB}/documents/small.md", content=b"Mary Somerville taught Ada.")
        assert small.status_code == 202
    with sync.open(index) as kb:
        assert kb.verify() == []
        assert "letters/1.md" in {document.id for document in kb.documents()}


def test_an_index_that_a_later_version_changes_while_it_is_served_is_named(index: Path) -> None:
    with served(index) as (address, _), httpx.Client(base_url=address, timeout=60) as client:
        assert client.get(f"{KB}/status").status_code == 200
        with closing(sqlite3.connect(index / "index.sqlite")) as connection, connection:
            connection.execute("UPDATE meta SET value = '9999' WHERE key = 'schema'")
        reply = client.put(f"{KB}/documents/new.md", content=b"Text.")
        assert reply.status_code >= 400, reply.text
        assert "Another version of Quipu migrated the index" in reply.json()["detail"]
        assert client.get("/health").json() == {"status": "ok"}


def _memory_mb(group: int) -> float:
    """Return the memory of a process without mapped files, in MB."""
    status = Path(f"/proc/{group}/status").read_text(encoding="utf-8")
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


@contextmanager
def _connections(address: str, n: int, request: bytes) -> Iterator[list[socket.socket]]:
    """Open connections that each send a request, or the beginning of one, and read nothing."""
    host, port = address.removeprefix("http://").split(":")
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(n)]
        for connection in sockets:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.sendall(request)
        yield sockets


def _answers_others(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    answer = client.post(f"{KB}/query", json={"question": "Whom did Ada Lovelace write to?"})
    assert "Charles Babbage" in answer.json()["text"]


def test_clients_that_read_nothing_cost_neither_memory_nor_the_others_their_answers(index: Path) -> None:
    with sync.open(index) as kb:
        kb.add(*(SourceDocument(id=f"{n}.md", content=text_of(n).encode()) for n in range(120)))
    with served(index) as (address, group), httpx.Client(base_url=address, timeout=60) as client:
        n_bytes = len(client.get(f"{KB}/dump").content)
        _answers_others(client)
        before = _memory_mb(group)
        request = f"GET {KB}/dump HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        with _connections(address, 20, request):
            _answers_others(client)
            assert _memory_mb(group) - before < 20 * n_bytes / 1e6 / 2  # what is not read is not made
        _answers_others(client)


def test_a_flood_of_half_requests_leaves_room_for_whole_ones(index: Path) -> None:
    with served(index) as (address, group), httpx.Client(base_url=address, timeout=60) as client:
        before = _memory_mb(group)
        with (
            _connections(address, 150, b"GET /health HT"),
            _connections(
                address, 150, f"POST {KB}/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{{".encode()
            ),
        ):
            _answers_others(client)
            assert _memory_mb(group) - before < 30
        _answers_others(client)
