"""Law: worker processes share one queue in PostgreSQL; each document is read once, also where a worker is killed."""

import asyncio
import time
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from quipu.ingest.llm.extractor import CHECK_INPUT
from quipu.model.ids import digest
from quipu.settings import Settings
from quipu.testing.postgres_server import PostgresServer
from quipu.testing.scripted.script import Latency, RequestKind
from quipu.testing.server.process import ServerHandle
from quipu.testing.server.request_log import LoggedRequest
from quipu.wiring import open_engine
from tests.children import PATIENCE_S, running
from tests.laws.model_counts import asked_again, completed
from tests.laws.model_world import dump_of, fresh_dump, model_settings, script, travels

DOCUMENTS = [travels(f"{name}.md") for name in ("amber", "birch", "cedar", "daisy", "elder", "fir")]
_SETTINGS = (
    *("llm", "llm_base_url", "llm_concurrency", "chunk_tokens", "always_glean", "cache"),
    *("embedder", "embedder_model", "embedder_base_url", "embedder_dimension"),
)
READING = (RequestKind.EXTRACT, RequestKind.GLEAN)


def _settings(postgres: PostgresServer, server: ServerHandle, tmp_path: Path, workspace: str) -> Settings:
    index = postgres.address(workspace)
    return model_settings(Path(), server.base_url, index=index, cache=tmp_path / "cache", llm_concurrency=1)


def _worker(settings: Settings, *options: str) -> AbstractAsyncContextManager[Process]:
    """Run `quipu work` with these settings until the queue is empty."""
    environment = {f"QUIPU_{name.upper()}": str(getattr(settings, name)) for name in _SETTINGS}
    arguments = ("--index", str(settings.index), "work", "--until-empty", "--poll", "0.05", "--quiet", *options)
    return running("quipu", *arguments, environment=environment)


async def _enqueue(settings: Settings) -> None:
    async with await open_engine(settings) as kb:
        await kb.enqueue(*DOCUMENTS)


def _wait_until_read(server: ServerHandle, n: int) -> None:
    """Wait until the model has given this many replies to those that read."""
    deadline = time.monotonic() + PATIENCE_S
    while len(completed(server.stats().requests, *READING)) < n:
        assert time.monotonic() < deadline, f"there were no {n} replies in {PATIENCE_S:g} s"


def _of_documents(requests: Sequence[LoggedRequest]) -> list[LoggedRequest]:
    """Leave out the sentence that each worker has the model read first: those that start together all ask for it."""
    return [request for request in requests if request.text_hash != digest(CHECK_INPUT.text)]


async def _check_end_state(settings: Settings, server: ServerHandle, tmp_path: Path) -> None:
    """Check that nothing waits, and that the index is the one that a process alone makes."""
    server.configure(script())
    expected = await fresh_dump(model_settings(tmp_path / "alone", server.base_url), *DOCUMENTS)
    async with await open_engine(settings) as kb:
        assert (await kb.status()).jobs == ()
        assert (await dump_of(kb), await kb.verify()) == (expected, [])


async def test_two_workers_share_a_queue_and_pay_once(
    running_postgres: PostgresServer, server: ServerHandle, tmp_path: Path
) -> None:
    settings = _settings(running_postgres, server, tmp_path, "two-workers")
    server.configure(script(latency=Latency(mean_s=0.5)))
    await _enqueue(settings)
    server.reset()
    async with _worker(settings) as one, _worker(settings) as other:
        async with asyncio.timeout(PATIENCE_S):
            assert [await one.wait(), await other.wait()] == [0, 0]
    requests = _of_documents((await asyncio.to_thread(server.settled)).requests)
    assert asked_again(requests) == []
    assert max(request.n_under_way for request in requests) == 2  # each worker makes one call at a time
    await _check_end_state(settings, server, tmp_path)


async def test_two_workers_keep_one_budget_and_leave_the_rest_in_the_queue(
    running_postgres: PostgresServer, server: ServerHandle, tmp_path: Path
) -> None:
    settings = _settings(running_postgres, server, tmp_path, "one-budget")
    server.configure(script(latency=Latency(mean_s=0.2)))
    await _enqueue(settings)
    server.reset()
    budget = "--budget", "5 calls"
    async with _worker(settings, *budget) as one, _worker(settings, *budget) as other:
        async with asyncio.timeout(PATIENCE_S):
            assert [await one.wait(), await other.wait()] == [1, 1]
    requests = (await asyncio.to_thread(server.settled)).requests
    assert len(requests) == 5
    async with _worker(settings) as heir, asyncio.timeout(PATIENCE_S):
        assert await heir.wait() == 0
    again = _of_documents((await asyncio.to_thread(server.settled)).requests)
    assert asked_again(again) == []
    await _check_end_state(settings, server, tmp_path)


async def test_what_a_killed_worker_had_read_is_not_paid_for_again(
    running_postgres: PostgresServer, server: ServerHandle, tmp_path: Path
) -> None:
    """Two calls at most were under way when it was killed: their replies reached nobody."""
    settings = _settings(running_postgres, server, tmp_path, "killed-worker")
    server.configure(script(latency=Latency(mean_s=0.05)))
    await _enqueue(settings)
    server.reset()
    async with _worker(settings) as mortal:
        await asyncio.to_thread(_wait_until_read, server, 3)
        mortal.kill()
        await mortal.wait()
        async with _worker(settings) as heir, asyncio.timeout(PATIENCE_S):
            assert await heir.wait() == 0
    requests = (await asyncio.to_thread(server.settled)).requests
    n_by_key = Counter(request.key for request in completed(_of_documents(requests), *READING))
    assert sum(n - 1 for n in n_by_key.values()) <= 2
    assert len(n_by_key) > 3
    await _check_end_state(settings, server, tmp_path)
