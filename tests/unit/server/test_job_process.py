"""Work in a process of its own: jobs, large uploads, errors, and the end of the process."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from quipu.engine import Quipu
from quipu.errors import NotFound, Unavailable
from quipu.server import ServerComponents, ServerOptions, Workspaces, documents
from quipu.server.job_process import JobProcess, LargeFile
from tests.unit.server.conftest import http_client
from tests.unit.server.test_documents import KB, finished


@pytest.fixture
async def apart(index: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of a server that may not work on jobs, nor put large files into the queue, in this process."""

    async def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("This is done in another process.")

    monkeypatch.setattr(Quipu, "resume", fail)
    monkeypatch.setattr(documents, "LARGE_BYTES", 1_000)
    server = ServerComponents.of(Workspaces(index=index), ServerOptions(work_apart=True))
    async with http_client(server) as client:
        yield client


async def test_jobs_are_worked_on_by_another_process(apart: httpx.AsyncClient) -> None:
    for name in ("one", "two"):
        reply = await apart.post(f"{KB}/texts", json={"text": f"Mary Somerville taught number {name}.", "id": name})
        job = await finished(apart, reply.json()["job"])
        assert (job["status"], job["documents"]) == ("finished", {"ready": 1})
    refreshed = await apart.post(f"{KB}/refresh", json={"names": ["communities"]})
    assert (await finished(apart, refreshed.json()))["status"] == "finished"


async def test_a_large_file_is_put_into_the_queue_by_another_process(
    apart: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Quipu, "enqueue", Quipu.resume)
    content = b"Mary Somerville taught Ada.\n\n" * 100
    key, metadata = {"idempotency-key": "once"}, {"metadata": '{"year": 1834}'}
    first = await apart.put(f"{KB}/documents/large", params=metadata, content=content, headers=key)
    assert (first.status_code, first.json()["added"]) == (202, ["large"])
    await finished(apart, first.json()["job"])
    assert (await apart.get(f"{KB}/originals/large")).content == content
    document = (await apart.get(f"{KB}/documents/large")).json()["document"]
    assert (document["metadata"]["year"], document["media_type"]) == (1834, "text/plain")
    again = await apart.put(f"{KB}/documents/large", params=metadata, content=content, headers=key)
    assert again.headers["idempotent-replayed"] == "true"
    unchanged = await apart.put(f"{KB}/documents/large", params=metadata, content=content)
    assert (unchanged.json()["unchanged"], unchanged.json()["job"]) == (["large"], None)
    unreadable = await apart.put(f"{KB}/documents/large.png", content=b"\x89PNG\r\n\x1a\n" + bytes(2_000))
    assert (unreadable.status_code, unreadable.json()["title"]) == (422, "Invalid document")


async def test_an_error_comes_back_with_its_remedy(tmp_path: Path) -> None:
    process = JobProcess()
    with pytest.raises(NotFound, match="There is no index") as error:
        await process.work(tmp_path / "nothing")
    assert "quipu add" in error.value.remedy
    await process.close()


async def test_a_process_that_is_killed_is_an_error_and_the_next_order_starts_another(
    index: Path, tmp_path: Path
) -> None:
    process, file = JobProcess(), tmp_path / "file"
    file.write_text("Mary Somerville taught Ada.", "utf-8")
    large = LargeFile(path=str(file), id="large", media_type="text/plain")
    first = asyncio.create_task(process.enqueue(index, large))
    os.kill(await process.started(), signal.SIGKILL)
    with pytest.raises(Unavailable, match="has ended"):
        await first
    assert (await process.enqueue(index, large)).added == ("large",)
    await process.close()


async def test_a_process_without_work_ends(index: Path) -> None:
    process = JobProcess(idle_s=0)
    first = await process.started()
    await process.work(index)
    await process.ended()
    await process.work(index)
    assert await process.started() != first
    await process.close()
