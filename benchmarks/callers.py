"""Measures questions that are asked at once: as many searches at a time as there are callers, against one at a time.

    python benchmarks/callers.py FOLDER [--strategy NAME …] [--questions N]

FOLDER holds corpus.jsonl (title and text) and queries.jsonl (question), as the data sets of `benchmarks/retrieval.py`
do. The texts are indexed with local rules and the default embedder; no model is asked. `context` is the evidence alone,
`answer` is the quoted answer too. CPU is that of all threads. Compare the lines of one run, not two machines.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that it runs as a file, too

import quipu
from quipu.engine import Quipu
from quipu.engine.reopenable_view import RetrievalTurns
from quipu.ingest.sources import text_source
from quipu.model.document import SourceDocument

N_CALLERS = (1, 8, 32)
TURNS = {"any number": 1_000, "one": 1}
Ask = Callable[[str], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one run took: requests in a second, CPU of each, and the latencies that half and 95 % of them stay below."""

    per_second: float
    cpu_ms: float
    p50_ms: float
    p95_ms: float


async def measure(ask: Ask, questions: Sequence[str], n_callers: int) -> Load:
    """Return what it takes to ask every question once, by callers who ask the next one when they have an answer."""
    waiting, latencies = iter(questions), list[float]()

    async def caller() -> None:
        for question in waiting:
            start = time.perf_counter()
            await ask(question)
            latencies.append(time.perf_counter() - start)

    start, cpu_start = time.perf_counter(), time.process_time()
    await asyncio.gather(*(caller() for _ in range(n_callers)))
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu_start
    latencies.sort()
    return Load(
        per_second=len(questions) / wall_s,
        cpu_ms=1_000 * cpu_s / len(questions),
        p50_ms=1_000 * latencies[len(latencies) // 2],
        p95_ms=1_000 * latencies[int(0.95 * len(latencies))],
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
                print(
                    f"| `{strategy}` {ask.__name__} | {n_callers} | {name} | {load.per_second:.1f} | {load.cpu_ms:.1f} "
                    f"| {load.p50_ms:.0f} | {load.p95_ms:.0f} |",
                    flush=True,
                )
    kb._components = components


def sources(folder: Path) -> Iterator[SourceDocument]:
    """Yield the texts of a data set."""
    with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield text_source(
                row["text"], id=row["id"], title=row.get("title", ""), metadata={}, media_type="text/plain"
            )


async def main() -> None:
    """Make the index, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--strategy", nargs="+", default=["mix", "weave"])
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    with (options.folder / "queries.jsonl").open(encoding="utf-8") as lines:
        asked = [json.loads(line)["question"] for line in lines]
    questions = [asked[n % len(asked)] for n in range(options.questions)]
    with tempfile.TemporaryDirectory() as directory:
        async with quipu.open(directory) as kb:
            await kb.add(*sources(options.folder))
            print(f"{(await kb.status()).n_chunks} chunks, {options.questions} questions\n")
            print("| call | callers | searches at a time | requests/s | CPU, ms | p50, ms | p95, ms |")
            print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
            for strategy in options.strategy:
                await report(kb, strategy, questions)


if __name__ == "__main__":
    asyncio.run(main())
