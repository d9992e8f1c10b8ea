"""Limits: what Quipu's server takes beside questions: work in the background, open streams, uploads, workspaces."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

import quipu
from benchmarks.serving.load import WORKSPACE, Api, asking, documents, measure
from benchmarks.serving.model import HELD
from benchmarks.serving.processes import Server, model_server, quipu_server, quipu_settings
from benchmarks.speed import workload
from quipu.engine import Quipu

N_CHUNKS = 200
N_INDEXED = 1_000
N_QUESTIONS = 200
_TURN = 20
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


async def overhead(api: Api, kb: Quipu) -> None:
    """Print the CPU of a question over HTTP, and of the same call of the engine, in turns on one index."""
    await api.index(documents(N_CHUNKS))
    questions = workload.Texts().questions(N_QUESTIONS)
    http_ms, engine_ms = list[float](), list[float]()
    for start in range(-_TURN, N_QUESTIONS, _TURN):  # the first turn warms up
        asked = questions[max(start, 0) :][:_TURN]
        load = await measure(api.context, asked, 1, api.server)
        used_s = time.process_time()
        for question in asked:
            await kb.query(question, strategy="mix", with_answer=False)
        used_s = time.process_time() - used_s
        if start >= 0:
            http_ms.append(load.cpu_ms)
            engine_ms.append(1_000 * used_s / len(asked))
    more_ms = median(over - own for over, own in zip(http_ms, engine_ms, strict=True))
    _print_row("a context, CPU of the engine's call", f"{median(engine_ms):.1f} ms", "")
    what = f"more over HTTP, median of {len(http_ms)} turns of {_TURN}"
    _print_row(what, f"{more_ms:.1f} ms, {min(http_ms):.1f} against {min(engine_ms):.1f} at best", "<= 1 ms")


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
    async def run(server: Server, model: str) -> None:
        async with asking(server) as api, quipu.open(folder / "index", **quipu_settings(model)) as kb:
            await overhead(api, kb)

    with model_server() as model, quipu_server(folder, model) as server:
        asyncio.run(run(server, model))


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
