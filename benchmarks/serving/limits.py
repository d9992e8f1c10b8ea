"""Limits: what Quipu's server takes beside questions: work in the background, open streams, uploads, workspaces."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from unittest.mock import patch

from starlette.types import ASGIApp, Message

import quipu
from benchmarks.serving.load import WORKSPACE, Api, asking, documents, measure
from benchmarks.serving.model import HELD
from benchmarks.serving.processes import Server, model_server, quipu_server, quipu_settings
from benchmarks.speed import workload
from quipu.engine import Quipu
from quipu.model.answer import Answer
from quipu.server import ServerComponents, Workspaces
from quipu.server.app import make_app
from quipu.settings import Settings

N_CHUNKS = 200
N_INDEXED = 1_000
N_QUESTIONS = 200
N_STREAMS = 500
UPLOAD_MIB = 200
N_WORKSPACES = 100
_PART = b"They met in the harbour, as it is told. " * 26_214  # 1 MiB
_FIRST_ADDED = 1_000_000
Step = Callable[[Api], Awaitable[None]]


async def indexing(api: Api) -> None:
    """Print the p95 of questions while a job indexes documents of one chunk, against idle."""
    questions = workload.Texts().questions(N_QUESTIONS)
    texts = workload.Texts()
    added = {f"{number}.txt": texts.document(number, 1) for number in range(_FIRST_ADDED, _FIRST_ADDED + N_INDEXED)}
    await api.index(documents(N_CHUNKS))
    await measure(api.context, questions[:20], 1, api.server)
    idle = await measure(api.context, questions, 1, api.server)
    work, loads = asyncio.create_task(api.wait_for(await api.upload(added))), []
    while not work.done():
        loads.append(await measure(api.context, questions[:50], 1, api.server))
    await work
    busy = sorted(load.p95_ms for load in loads)[len(loads) // 2]
    _print_row("a question, idle, p95", f"{idle.p95_ms:.0f} ms", "")
    what = f"the same while {N_INDEXED:,} documents are indexed, median of {len(loads)} runs of 50"
    _print_row(what, f"{busy:.0f} ms, {busy / idle.p95_ms:.1f} times", "<= 2 times")


async def overhead(app: ASGIApp, kb: Quipu) -> None:
    """Print the CPU of the engine's call for a question, and of all that the application of the server does besides.

    For the second, the engine has the answer already. Reading and writing the socket, a tenth of a millisecond, is
    left out.
    """
    engine_ms, http_ms = list[float](), list[float]()
    for question in workload.Texts().questions(N_QUESTIONS):
        body = {"question": question, "strategy": "mix", "with_answer": False}
        await _post(app, body)  # warms up
        used_s = time.process_time()
        answer = await kb.query(question, strategy="mix", with_answer=False)
        engine_ms.append(1_000 * (time.process_time() - used_s))
        with patch.object(Quipu, "query", _Known(answer)):
            used_s = time.process_time()
            await _post(app, body)
            http_ms.append(1_000 * (time.process_time() - used_s))
    _print_row("a context, CPU of the engine's call", f"{median(engine_ms):.1f} ms", "")
    _print_row(f"more over HTTP, median of {N_QUESTIONS}", f"{median(http_ms):.2f} ms", "<= 1 ms")


class _Known:
    """Returns one answer to every question."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def __call__(self, *_: object, **__: object) -> Answer:
        """Return the answer."""
        return self._answer


async def _post(app: ASGIApp, body: Mapping[str, object]) -> None:
    """Send a question to an application as its connection would, and check that it is answered."""
    messages: list[Message] = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else await asyncio.Future()

    async def send(message: Message) -> None:
        if message.get("status", 200) != 200:
            raise RuntimeError(f"A question was not answered: {message['status']}.")

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    path = f"{WORKSPACE}/query"
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers, "root_path": ""}
    await app(scope, receive, send)


async def streams(api: Api) -> None:
    """Print what many clients take who follow a job that waits for its model."""
    await api.index(documents(N_CHUNKS))
    job = await api.upload({"held.txt": f"{HELD} Anna Smith met Ben Jones."})
    following = list[AsyncIterator[bytes]]()
    async with AsyncExitStack() as stack:
        for _ in range(20):  # what the first streams take is not theirs
            following.append(await _follow(api, job, stack))
        memory, cpu_s = api.server.memory_kb(), api.server.cpu_s()
        for _ in range(N_STREAMS):
            following.append(await _follow(api, job, stack))
        await asyncio.sleep(2)
        cpu_s = api.server.cpu_s()
        grown = api.server.memory_kb() - memory
        await asyncio.sleep(5)
        used = (api.server.cpu_s() - cpu_s) / 5
        assert len(following) == N_STREAMS + 20
        status = (await api.client.get(f"{WORKSPACE}/jobs/{job}")).json()["status"]
        if status != "running":
            raise RuntimeError(f"The job is {status}: its streams were not open.")
    _print_row(f"memory of an idle stream, of {N_STREAMS}", f"{grown / N_STREAMS:.0f} KB", "<= 30 KB")
    _print_row(f"CPU of {N_STREAMS} idle streams", f"{100 * used:.0f} % of a core", "")


async def _follow(api: Api, job: str, stack: AsyncExitStack) -> AsyncIterator[bytes]:
    """Open a stream, and return it after its first event; it closes when the iterator is not kept."""
    response = await stack.enter_async_context(api.client.stream("GET", f"{WORKSPACE}/jobs/{job}/events"))
    parts = response.raise_for_status().aiter_raw()
    await anext(parts)
    return parts


async def upload(api: Api) -> None:
    """Print how much the memory grows by a large upload: its own, and pages of files that the system may take back."""

    async def body() -> AsyncIterator[bytes]:
        for _ in range(UPLOAD_MIB):
            yield _PART

    async def send() -> None:
        (await api.client.put(f"{WORKSPACE}/documents/large.txt", content=body())).raise_for_status()

    await api.index(documents(10))
    before = {field: api.server.memory_kb(field) for field in ("RssAnon", "RssFile")}
    peak, task = dict(before), asyncio.create_task(send())
    while not task.done():
        peak = {field: max(size, api.server.memory_kb(field)) for field, size in peak.items()}
        await asyncio.sleep(0.01)
    await task
    own, mapped = (f"{(peak[field] - before[field]) / 1_024:+.0f} MiB" for field in ("RssAnon", "RssFile"))
    _print_row(f"memory of the server in an upload of {UPLOAD_MIB} MiB", own, "+0")
    _print_row("its mapped pages of files, which the system may take back", mapped, "")


async def workspaces(api: Api) -> None:
    """Print what it takes to open each of many workspaces, and to keep them open; a server before this made them."""
    cpu_s = 0.0
    await _wait_until_idle(api.server)
    for number in range(N_WORKSPACES):
        if number == 1:  # the first one imports what all need
            cpu_s = api.server.cpu_s()
        (await api.client.get(f"/api/v1/workspaces/w{number}/documents")).raise_for_status()
    used_ms = 1_000 * (api.server.cpu_s() - cpu_s) / (N_WORKSPACES - 1)
    _print_row("CPU to open a workspace", f"{used_ms:.0f} ms", "<= 30 ms")
    _print_row(f"memory with {N_WORKSPACES} workspaces open", f"{api.server.memory_kb() / 1_024:.0f} MiB", "<= 200 MB")


async def _wait_until_idle(server: Server) -> None:
    """Wait until the server uses little CPU: when it starts, it looks into every workspace for work that was left."""
    for _ in range(60):
        used_s = server.cpu_s()
        await asyncio.sleep(1)
        if server.cpu_s() - used_s < 0.05:
            return


async def _create_workspaces(api: Api) -> None:
    for number in range(N_WORKSPACES):
        (await api.client.post("/api/v1/workspaces", json={"name": f"w{number}"})).raise_for_status()
        body = {"text": "Anna Smith met Ben Jones in the harbour.", "id": "letter.txt"}
        (await api.client.post(f"/api/v1/workspaces/w{number}/texts", json=body)).raise_for_status()


def _print_row(what: str, figure: str, reach: str) -> None:
    print(f"| {what} | {figure} | {reach} |", flush=True)


def _with_model(run: Step) -> Callable[[Path], None]:
    """Return a step that runs with a server that has the scripted model."""

    def step(folder: Path) -> None:
        with model_server() as model, quipu_server(folder, model) as server:
            asyncio.run(_ask(run, server))

    return step


async def _ask(run: Step, server: Server) -> None:
    async with asking(server) as api:
        await run(api)


def _overhead(folder: Path) -> None:
    async def run(model: str) -> None:
        async with quipu.open(folder / "index", **quipu_settings(model)) as kb:
            sources = enumerate(documents(N_CHUNKS))
            await kb.add(*(quipu.SourceDocument(id=f"{n}.txt", content=text.encode()) for n, text in sources))
        workspaces = Workspaces(
            index=folder / "index", make_settings=lambda path: Settings(index=path, **quipu_settings(model))
        )
        async with workspaces.use("default") as kb:
            await overhead(make_app(ServerComponents.of(workspaces)), kb)
        await workspaces.close()

    with model_server() as model:
        asyncio.run(run(model))


def _upload(folder: Path) -> None:
    with quipu_server(folder, "", "--max-upload", str(UPLOAD_MIB + 1)) as server:
        asyncio.run(_ask(upload, server))


def _workspaces(folder: Path) -> None:
    for run in (_create_workspaces, workspaces):
        with quipu_server(folder, "", "--root", str(folder / "root")) as server:
            asyncio.run(_ask(run, server))


STEPS: Mapping[str, Callable[[Path], None]] = {
    "overhead": _overhead,
    "indexing": _with_model(indexing),
    "streams": _with_model(streams),
    "upload": _upload,
    "workspaces": _workspaces,
}
