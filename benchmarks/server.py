"""Measure `quipu serve`, beside LightRAG's server where that can be installed (on Linux).

    python benchmarks/server.py [--only STEP …] [--no-peer] [--save]

Both servers have the same 200 chunks and the same model, which answers at once from a process of its own. `context` is
the packed text for a model, `stream` a streamed answer; both in the mode mix. CPU is that of all threads of the server
process. The other steps are about Quipu alone: what HTTP adds to a call of the engine, questions while a job indexes
1,000 documents, open streams, a large upload, and many workspaces. With `--save`, the steps that ran replace theirs in
benchmarks/results/server.md. LightRAG is installed in an environment of its own, below the folder for temporary files.
"""

import argparse
import asyncio
import io
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serving import limits
from benchmarks.serving.load import Load, asking, documents, measure, p95_beside
from benchmarks.serving.processes import (
    NotStarted,
    Server,
    lightrag_server,
    model_server,
    quipu_server,
)
from benchmarks.speed import workload
from benchmarks.speed.machine import ROOT, commit, machine, versions

RESULTS = ROOT / "benchmarks/results/server.md"
_HEAD = """# The server

Each table is of one run, on two cores that other programs used too: compare the columns of one table. CPU is that of
all threads of the server's process.
"""
N_CHUNKS = 200
N_REQUESTS = {1: 12, 8: 16, 32: 32}  # by the number of callers, for LightRAG
MORE = 2  # as many times for Quipu, which needs less for each
N_HEALTH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured of one server: loads by request and number of callers, and `/health` beside 32 callers."""

    loads: Mapping[tuple[str, int], Load]
    health_p95_ms: float

    def rate(self) -> float:
        """Return the contexts in a second at 32 callers against those at one."""
        return self.loads["context", 32].per_second / self.loads["context", 1].per_second


async def compare(server: Server) -> Figures:
    """Index the documents, ask all questions, print a line for each run, and return what was measured."""
    loads: dict[tuple[str, int], Load] = {}
    times = MORE if server.name == "Quipu" else 1
    n_questions = 2 * sum(N_REQUESTS.values()) + N_REQUESTS[32]
    questions = iter(workload.Texts().questions(times * n_questions + 4))
    async with asking(server) as api:
        await api.index(documents(N_CHUNKS))
        for ask in (api.context, api.stream):
            for _ in range(2):
                await ask(next(questions))
            for n_callers, n_requests in N_REQUESTS.items():
                asked = [next(questions) for _ in range(times * n_requests)]
                loads[ask.__name__, n_callers] = load = await measure(ask, asked, n_callers, server)
                _print_row(server.name, ask.__name__, n_callers, load)
        loads["/health", 1] = load = await measure(api.health, [""] * times * N_HEALTH, 1, server)
        _print_row(server.name, "/health", 1, load)
        asked = [next(questions) for _ in range(times * N_REQUESTS[32])]
        health_p95_ms = await p95_beside(api, measure(api.context, asked, 32, server))
    return Figures(loads=loads, health_p95_ms=health_p95_ms)


def _print_row(name: str, request: str, n_callers: int, load: Load) -> None:
    first = f"{load.first_ms:.0f}" if request == "stream" else ""
    print(
        f"| {name} | {request} | {n_callers} | {load.per_second:.1f} | {load.cpu_ms:.2f} | {load.p50_ms:.1f} "
        f"| {load.p95_ms:.1f} | {first} |",
        flush=True,
    )


def print_ratios(ours: Figures, peer: Figures | None) -> None:
    """Print the figures that have a target, and those of LightRAG beside them where there are any."""
    print("\n| what | Quipu | LightRAG | ratio | reach |\n| --- | ---: | ---: | ---: | --- |")
    targets: tuple[tuple[str, Callable[[Figures], float], str], ...] = (
        ("context, CPU, ms", lambda figures: figures.loads["context", 1].cpu_ms, "1/8"),
        ("requests/s at 32 callers against 1", Figures.rate, "Quipu 0.9 or more"),
        ("first piece of a stream at 32 callers, ms", lambda figures: figures.loads["stream", 32].first_ms, "1/5"),
        ("/health at 32 callers, p95, ms", lambda figures: figures.health_p95_ms, "1/4"),
        ("/health, CPU, ms", lambda figures: figures.loads["/health", 1].cpu_ms, "Quipu 0.2 or less"),
    )
    for what, value, reach in targets:
        own = value(ours)
        other = value(peer) if peer else None
        beside = f"{other:.2f} | {own / other:.3f}" if other else "– | –"
        print(f"| {what} | {own:.2f} | {beside} | {reach} |")


def compare_servers(folder: Path, *, with_peer: bool) -> None:
    """Measure both servers, one after the other, and print what has a target."""
    print(f"{N_CHUNKS} chunks\n")
    print("| server | request | callers | requests/s | CPU, ms | p50, ms | p95, ms | first piece, ms |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    peer, left_out = None, ""
    with model_server() as model:
        with quipu_server(folder / "quipu", model) as server:
            ours = asyncio.run(compare(server))
        if with_peer:
            try:
                with lightrag_server(folder / "lightrag", model) as server:
                    peer = asyncio.run(compare(server))
            except NotStarted as error:
                left_out = f"\nLightRAG was left out: {error}"
    print_ratios(ours, peer)
    print(left_out)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=["compare", *limits.STEPS], metavar="STEP", help="of these steps")
    parser.add_argument("--no-peer", action="store_true", help="leave LightRAG out")
    parser.add_argument("--save", action="store_true", help="write the tables to benchmarks/results/server.md")
    options = parser.parse_args()
    if sys.platform != "linux":
        print("Left out: CPU and memory of another process are read from /proc.")
        return
    facts = ", ".join(f"{name} {value}" for name, value in {**machine(), **versions(), "commit": commit()}.items())
    for step in options.only or ["compare", *limits.STEPS]:
        printed = _Copy()
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(printed):
            if step == "compare":
                compare_servers(Path(folder), with_peer=not options.no_peer)
            else:
                print(f"| {step} | figure | reach |\n| --- | ---: | --- |")
                limits.STEPS[step](Path(folder))
        if options.save:
            save(step, printed.getvalue(), facts)


class _Copy(io.StringIO):
    """Keeps what is printed, and prints it."""

    def write(self, text: str) -> int:
        """Keep a text, and print it."""
        sys.__stdout__.write(text)  # type: ignore[union-attr] # there is one
        sys.__stdout__.flush()  # type: ignore[union-attr]
        return super().write(text)


def save(step: str, tables: str, facts: str) -> None:
    """Write the tables of a step, and the `facts` of what they were measured on, into the file of results."""
    parts = RESULTS.read_text("utf-8").split("\n## ") if RESULTS.exists() else [_HEAD]
    part_by_step = {part.partition("\n")[0]: part for part in parts[1:]}
    command = f"python benchmarks/server.py --only {step} --save"
    part_by_step[step] = f"{step}\n\n`{command}`: {date.today()}, {facts}.\n\n{tables.strip()}\n"
    ordered = [part_by_step[name] for name in ("compare", *limits.STEPS) if name in part_by_step]
    RESULTS.write_text("\n## ".join([parts[0], *ordered]), "utf-8")


if __name__ == "__main__":
    main()
