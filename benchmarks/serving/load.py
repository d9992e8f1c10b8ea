"""Load: questions that are asked by many callers at once, and what they take."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from benchmarks.serving.processes import Server
from benchmarks.speed import workload

WORKSPACE = "/api/v1/workspaces/default"
Ask = Callable[[str], Awaitable[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a run took: requests in a second, CPU of the server for each, and latencies in milliseconds.

    `first_ms` is the median time until the first piece of an answer, where the requests are streams.
    """

    per_second: float
    cpu_ms: float
    p50_ms: float
    p95_ms: float
    first_ms: float


class Api:
    """Asks one server: for the evidence alone, for a streamed answer, and for its health."""

    def __init__(self, server: Server, client: httpx.AsyncClient) -> None:
        self.server = server
        self.client = client
        self._is_quipu = server.name == "Quipu"

    async def context(self, question: str) -> float:
        """Ask for the packed text that a model would read, without its answer."""
        if self._is_quipu:
            body: dict[str, object] = {"question": question, "strategy": "mix", "with_answer": False}
            path = f"{WORKSPACE}/query"
        else:
            body, path = {"query": question, "mode": "mix", "only_need_context": True}, "/query"
        start = time.perf_counter()
        (await self.client.post(path, json=body)).raise_for_status()
        return time.perf_counter() - start

    async def stream(self, question: str) -> float:
        """Ask for a streamed answer, read it to its end, and return when the first piece of its text came."""
        if self._is_quipu:
            body: dict[str, object] = {"question": question, "strategy": "mix"}
            path, mark = f"{WORKSPACE}/query/stream", b"event: text"
        else:
            body, path, mark = {"query": question, "mode": "mix", "stream": True}, "/query/stream", b'"response"'
        start, first, received = time.perf_counter(), 0.0, b""
        async with self.client.stream("POST", path, json=body) as response:
            response.raise_for_status()
            async for part in response.aiter_raw():
                if not first:
                    received += part
                    first = time.perf_counter() - start if mark in received else 0.0
        if not first:
            raise RuntimeError(f"{self.server.name} streamed no answer: {received[:300]!r}")
        return first

    async def health(self, _: str = "") -> float:
        """Ask whether the server answers."""
        start = time.perf_counter()
        (await self.client.get("/health")).raise_for_status()
        return time.perf_counter() - start

    async def index(self, documents: Sequence[str]) -> None:
        """Add documents, and wait until they are indexed."""
        names = [f"{number:05}.txt" for number in range(len(documents))]
        if not self._is_quipu:
            body = {"texts": list(documents), "file_sources": names}
            (await self.client.post("/documents/texts", json=body)).raise_for_status()
            await self._wait_for_peer(len(documents))
            return
        await self.wait_for(await self.upload(dict(zip(names, documents, strict=True))))

    async def upload(self, text_by_name: dict[str, str]) -> str:
        """Upload documents to Quipu, and return the id of their job."""
        files = [("files", (name, text.encode())) for name, text in text_by_name.items()]
        response = await self.client.post(f"{WORKSPACE}/documents", files=files)
        response.raise_for_status()
        job: str = response.json()["job"]["id"]
        return job

    async def wait_for(self, job: str) -> None:
        """Wait until a job of Quipu has ended."""
        while True:
            status = (await self.client.get(f"{WORKSPACE}/jobs/{job}")).raise_for_status().json()
            if status["stopped"] or status["failed"]:
                raise RuntimeError(f"A job did not end well: {json.dumps(status)[:400]}")
            if status["status"] == "finished":
                return
            await asyncio.sleep(0.5)

    async def _wait_for_peer(self, n_documents: int) -> None:
        while True:
            counts = (await self.client.get("/documents/status_counts")).raise_for_status().json()["status_counts"]
            if counts["failed"]:
                raise RuntimeError(f"LightRAG did not index: {counts}")
            if counts["processed"] >= n_documents:
                return
            await asyncio.sleep(0.5)


@asynccontextmanager
async def asking(server: Server) -> AsyncIterator[Api]:
    """Ask a server during the block."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.address, timeout=300, limits=limits) as client:
        yield Api(server, client)


async def measure(ask: Ask, questions: Sequence[str], n_callers: int, server: Server) -> Load:
    """Return what it takes to ask every question once, by callers who ask the next one when they have an answer."""
    waiting, latencies, firsts = iter(questions), list[float](), list[float]()

    async def caller() -> None:
        for question in waiting:
            start = time.perf_counter()
            firsts.append(await ask(question))
            latencies.append(time.perf_counter() - start)

    start, cpu_start = time.perf_counter(), server.cpu_s()
    await asyncio.gather(*(caller() for _ in range(n_callers)))
    wall_s, used_s = time.perf_counter() - start, server.cpu_s() - cpu_start
    return Load(
        per_second=len(questions) / wall_s,
        cpu_ms=1_000 * used_s / len(questions),
        p50_ms=1_000 * share(latencies, 0.5),
        p95_ms=1_000 * share(latencies, 0.95),
        first_ms=1_000 * share(firsts, 0.5),
    )


async def p95_beside(api: Api, work: Awaitable[object], pause_s: float = 0.01) -> float:
    """Return the p95 of `/health` in milliseconds, asked again and again until the work is done."""
    task, latencies = asyncio.ensure_future(work), list[float]()
    while not task.done():
        latencies.append(await api.health())
        await asyncio.sleep(pause_s)
    await task
    return 1_000 * share(latencies, 0.95)


def share(values: Sequence[float], part: float) -> float:
    """Return the value that this part of all values stays below."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


def documents(n_chunks: int) -> list[str]:
    """Return the documents of an index of this many chunks."""
    texts = workload.Texts()
    return [texts.document(number) for number in range(n_chunks // workload.CHUNKS_PER_DOCUMENT)]
