"""Measure questions that are asked at once: in this process, and of `quipu serve` over HTTP (on Linux).

    python benchmarks/callers.py [FOLDER] [--strategy NAME …] [--questions N]

FOLDER is a data set of `benchmarks/retrieval.py`. Its texts are indexed with local rules and the default embedder; no
model is asked. `context` is the evidence alone, `answer` is the quoted answer too. In this process, as many questions
search at a time as there are callers, or one; over HTTP it is one. CPU is that of all threads of the process that
answers: compare a line over HTTP with one of the same call in this process, in one run. The last lines are `/health`,
asked alone, and while 32 callers ask for contexts.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx

import quipu
from quipu.bench.datasets import Dataset, read_dataset, sources_of
from quipu.engine import Quipu
from quipu.engine.reopenable_view import RetrievalTurns
from quipu.errors import QuipuError

DATA = Path(os.environ.get("QUIPU_DATA") or Path(__file__).resolve().parents[1] / "../shared/data")
N_CALLERS = (1, 8, 32)
N_HEALTH = 2_000
TURNS = {"any number": 1_000, "one": 1}
Ask = Callable[[str], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one run took: requests in a second, CPU of each, and the latencies that half and 95 % of them stay below."""

    per_second: float
    cpu_ms: float
    p50_ms: float
    p95_ms: float


async def measure(
    ask: Ask, questions: Sequence[str], n_callers: int, cpu_s: Callable[[], float] = time.process_time
) -> Load:
    """Return what it takes to ask every question once, by callers who ask the next one when they have an answer."""
    waiting, latencies = iter(questions), list[float]()

    async def caller() -> None:
        for question in waiting:
            start = time.perf_counter()
            await ask(question)
            latencies.append(time.perf_counter() - start)

    start, cpu_start = time.perf_counter(), cpu_s()
    await asyncio.gather(*(caller() for _ in range(n_callers)))
    wall_s, used_s = time.perf_counter() - start, cpu_s() - cpu_start
    latencies.sort()
    return Load(
        per_second=len(questions) / wall_s,
        cpu_ms=1_000 * used_s / len(questions),
        p50_ms=1_000 * latencies[len(latencies) // 2],
        p95_ms=1_000 * latencies[int(0.95 * len(latencies))],
    )


def print_row(call: str, n_callers: int, turns: str, load: Load) -> None:
    """Print a line of the table."""
    print(
        f"| {call} | {n_callers} | {turns} | {load.per_second:.1f} | {load.cpu_ms:.2f} | {load.p50_ms:.1f} "
        f"| {load.p95_ms:.1f} |",
        flush=True,
    )


async def report(kb: Quipu, strategy: str, questions: Sequence[str]) -> None:
    """Print a line for each kind of call, number of callers and number of turns."""

    async def context(question: str) -> None:
        await kb.retrieve(question, strategy=strategy)

    async def answer(question: str) -> None:
        await kb.query(question, strategy=strategy)

    components = kb._components
    for ask in (context, answer):
        for question in questions[:10]:
            await ask(question)
        for n_callers in N_CALLERS:
            for name, n_turns in TURNS.items():
                kb._components = replace(components, retrieval_turns=RetrievalTurns(n_turns))
                load = await measure(ask, questions, n_callers)
                print_row(f"`{strategy}` {ask.__name__}", n_callers, name, load)
    kb._components = components


def report_server(index: str, strategies: Sequence[str], questions: Sequence[str]) -> None:
    """Serve the index in another process, and print a line for each kind of request and number of callers."""
    command = [sys.executable, "-m", "quipu", "--index", index, "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().rsplit(" ", 1)[1].strip()
        try:
            asyncio.run(_report_requests(address, partial(cpu_seconds, process.pid), strategies, questions))
        finally:
            process.terminate()


async def _report_requests(
    address: str, cpu_s: Callable[[], float], strategies: Sequence[str], questions: Sequence[str]
) -> None:
    client = httpx.AsyncClient(base_url=address, timeout=120)

    async def post(path: str, strategy: str, question: str) -> None:
        body = {"question": question, "strategy": strategy}
        (await client.post(f"/api/v1/workspaces/default/{path}", json=body)).raise_for_status()

    async def health(_: str) -> None:
        (await client.get("/health")).raise_for_status()

    for strategy in strategies:
        for call, path in (("context", "evidence"), ("answer", "query")):
            ask = partial(post, path, strategy)
            await measure(ask, questions[:10], 1)
            for n_callers in N_CALLERS:
                load = await measure(ask, questions, n_callers, cpu_s)
                print_row(f"`{strategy}` {call}, HTTP", n_callers, "one", load)
    print_row("`/health`", 1, "–", await measure(health, ["?"] * N_HEALTH, 1, cpu_s))
    busy = asyncio.create_task(measure(partial(post, "evidence", strategies[0]), questions, N_CALLERS[-1]))
    await asyncio.sleep(0)  # so that they have begun
    loads: list[Load] = []
    while not busy.done():
        loads.append(await measure(health, ["?"], 1))
    latencies = sorted(load.p50_ms for load in loads)
    await client.aclose()
    print(f"\n/health while {N_CALLERS[-1]} ask: p95 {latencies[int(0.95 * len(latencies))]:.1f} ms")


def cpu_seconds(process_id: int) -> float:
    """Return the CPU time of a process and its threads so far (Linux)."""
    fields = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def report_engine(index: str, dataset: Dataset, strategies: Sequence[str], questions: Sequence[str]) -> None:
    """Make the index, and print a line for each kind of call in this process."""
    async with quipu.open(index) as kb:
        await kb.add(*sources_of(dataset))
        print(f"{(await kb.status()).n_chunks} chunks, {len(questions)} questions\n")
        print("| call | callers | searches at a time | requests/s | CPU, ms | p50, ms | p95, ms |")
        print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
        for strategy in strategies:
            await report(kb, strategy, questions)


def main() -> None:
    """Print the table, or say that the data set is not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=DATA / "hirag_mix61")
    parser.add_argument("--strategy", nargs="+", default=["mix", "weave"])
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    try:
        dataset = read_dataset(options.folder.resolve())
    except QuipuError as error:
        print(f"Left out: {error}")
        return
    questions = [dataset.questions[n % len(dataset.questions)].text for n in range(options.questions)]
    with tempfile.TemporaryDirectory() as index:
        asyncio.run(report_engine(index, dataset, options.strategy, questions))
        if sys.platform == "linux":
            report_server(index, options.strategy, questions)


if __name__ == "__main__":
    main()
