"""Measure how busy a model is kept: `python benchmarks/pipeline.py [--full] [--peer PYTHON] [--chunks N] …`.

A scripted server takes log-normal times. Perfect would be the sum of its latencies divided by the number of calls at a
time; the bound is 1.05 of that, our own CPU time and 2 s. Not counted is what the number of calls lacks while it grows
to the most allowed. With --latency 0 what is left is our own time: CPU for each chunk, HTTP included.

--peer names the Python of an environment with LightRAG, which then reads the same texts with a model as slow, in its
own process; its ramp-up is not told apart.
"""

import argparse
import asyncio
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # so that it runs as a file, too

from benchmarks.speed import workload  # noqa: E402
from benchmarks.speed.machine import commit, machine, versions  # noqa: E402
from quipu.model.chunking import Chunking  # noqa: E402
from quipu.model.document import SourceDocument  # noqa: E402
from quipu.settings import Settings  # noqa: E402
from quipu.testing.scripted.script import Latency, ReplyRules, Script  # noqa: E402
from quipu.testing.server import ServerHandle, serving  # noqa: E402
from quipu.testing.server.request_log import LoggedRequest  # noqa: E402
from quipu.wiring import open_engine  # noqa: E402

RESULTS = ROOT / "benchmarks/results"
SIGMA = 0.5
SLACK, FIXED_S = 1.05, 2.0
SHORT, FULL = 200, 1_000  # chunks
OURS, PEER = "Quipu", "LightRAG"
TOKENS = 1_720  # as Quipu counts them: the 1,100 words of a window of the workload
COLUMNS = (
    "system",
    "latency",
    "at once",
    "chunks",
    "calls",
    "perfect",
    "own CPU",
    "ramp-up",
    "bound",
    "wall",
    "wall / bound",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. Seconds: `perfect_s` of the model, `cpu_s` ours, `ramp_s` lost while the number of calls grew."""

    system: str
    latency_s: float
    concurrency: int
    n_chunks: int
    n_calls: int
    peak: int
    perfect_s: float
    cpu_s: float
    ramp_s: float
    wall_s: float

    @property
    def bound_s(self) -> float:
        """What the wall time without the ramp-up may be."""
        return SLACK * self.perfect_s + self.cpu_s + FIXED_S

    def row(self) -> str:
        """Return a row of the table."""
        cells = (
            self.system,
            f"{self.latency_s:g} s",
            f"{self.concurrency}",
            f"{self.n_chunks:,}",
            f"{self.n_calls:,}",
            f"{self.perfect_s:.1f} s",
            f"{self.cpu_s:.1f} s",
            f"{self.ramp_s:.1f} s",
            f"{self.bound_s:.1f} s",
            f"{self.wall_s - self.ramp_s:.1f} s",
            f"{(self.wall_s - self.ramp_s) / self.bound_s:.2f}",
        )
        return f"| {' | '.join(cells)} |"


def main() -> int:
    """Print one row a run; return 1 where a run with latency is over its bound."""
    options = _options()
    sys.stdout.write(f"| {' | '.join(COLUMNS)} |\n| {' | '.join(['---'] * len(COLUMNS))} |\n")
    runs = []
    n_chunks = options.chunks or (FULL if options.full else SHORT)
    for latency in options.latencies or ((0.5, 2.0) if options.full else (0.5,)):
        for concurrency in options.concurrencies or (4, 16, 64):
            runs.append(asyncio.run(_run(latency, concurrency, n_chunks)))
            sys.stdout.write(f"{runs[-1].row()}\n")
            if latency and options.peer:
                runs.append(_run_peer(options.peer, latency, concurrency, runs[-1].n_chunks))
                sys.stdout.write(f"{runs[-1].row()}\n")
            if not latency:
                per_chunk = 1000 * runs[-1].cpu_s / runs[-1].n_chunks
                sys.stdout.write(f"Own CPU for a chunk, HTTP included: {per_chunk:.1f} ms.\n")
            sys.stdout.flush()
    if options.save:
        _save(runs)
    ours = [run for run in runs if run.latency_s and run.system == OURS]
    return 0 if all(run.wall_s - run.ramp_s <= run.bound_s for run in ours) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, action="append", dest="latencies", metavar="S", help="default: 0.5, 2")
    parser.add_argument(
        "--concurrency", type=int, action="append", dest="concurrencies", metavar="N", help="default: 4, 16, 64"
    )
    parser.add_argument("--chunks", type=int, metavar="N", help=f"default: {SHORT}, or {FULL:,} with --full")
    parser.add_argument("--full", action="store_true", help="the whole table: it takes about an hour")
    parser.add_argument("--peer", metavar="PYTHON", help="the Python of an environment with LightRAG")
    parser.add_argument("--save", action="store_true", help="write pipeline.json and pipeline.md to benchmarks/results")
    return parser.parse_args()


async def _run(latency_s: float, concurrency: int, n_chunks: int) -> Run:
    script = Script(
        latency=Latency(mean_s=latency_s, sigma=SIGMA if latency_s else 0.0),
        answering=ReplyRules(max_entities=workload.ENTITIES_PER_CHUNK),
    )
    with serving(script) as server, tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            index=Path(folder) / "index",
            llm="custom/scripted",
            llm_base_url=server.base_url,
            llm_concurrency=concurrency,
        )
        async with await open_engine(settings) as kb:
            sources = _sources(n_chunks)
            begun, cpu_begun = time.perf_counter(), time.process_time()
            report = await kb.add(*sources, chunking=Chunking(method="fixed", max_tokens=TOKENS, overlap=0))
            wall_s, cpu_s = time.perf_counter() - begun, time.process_time() - cpu_begun
        if report.failed or report.partial or report.stopped:
            raise SystemExit(f"The run did not end well: {report}")
        return _measured(server, latency_s, concurrency, report.n_chunks, wall_s=wall_s, cpu_s=cpu_s)


def _measured(
    server: ServerHandle, latency_s: float, concurrency: int, n_chunks: int, *, wall_s: float, cpu_s: float
) -> Run:
    stats = server.stats()
    served = [each for each in stats.requests if each.is_completed]
    return Run(
        system=OURS,
        latency_s=latency_s,
        concurrency=concurrency,
        n_chunks=n_chunks,
        n_calls=len(served),
        peak=stats.peak_under_way,
        perfect_s=sum(each.latency_s for each in served) / concurrency,
        cpu_s=cpu_s,
        ramp_s=_ramp_s(served, concurrency) if latency_s else 0.0,
        wall_s=wall_s,
    )


def _run_peer(python: str, latency_s: float, concurrency: int, n_chunks: int) -> Run:
    """Have LightRAG read as many chunks, in documents of ten. Raises CalledProcessError where it fails."""
    n_whole = max(workload.CHUNKS_PER_DOCUMENT, n_chunks // workload.CHUNKS_PER_DOCUMENT * workload.CHUNKS_PER_DOCUMENT)
    with tempfile.TemporaryDirectory() as folder:
        places = [str(Path(folder) / "texts"), str(Path(folder) / "index")]
        numbers = [str(n_whole), str(latency_s), str(concurrency)]
        command = [python, "-m", "benchmarks.speed.lightrag_busy", *places, *numbers]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    values = json.loads(done.stdout.splitlines()[-1])
    return Run(system=PEER, latency_s=latency_s, concurrency=concurrency, ramp_s=0.0, **values)


def _ramp_s(served: Sequence[LoggedRequest], concurrency: int) -> float:
    """Return the seconds lost before all calls at a time were first made: idle places times time, by places."""
    full_at = next((each.started_s for each in served if each.n_under_way >= concurrency), None)
    begun = min(each.started_s for each in served)
    until = full_at if full_at is not None else max(each.ended_s for each in served)
    busy = sum(max(0.0, min(each.ended_s, until) - each.started_s) for each in served if each.started_s < until)
    return max(0.0, (until - begun) - busy / concurrency)


def _sources(n_chunks: int) -> list[SourceDocument]:
    texts = workload.Texts()
    per_document = workload.CHUNKS_PER_DOCUMENT
    return [
        SourceDocument(
            id=f"{number:05}", content=texts.document(number, per_document).encode(), media_type="text/plain"
        )
        for number in range(max(1, n_chunks // per_document))
    ]


def _save(runs: Sequence[Run]) -> None:
    given = [
        "PYTHON" if before == "--peer" else each for before, each in pairwise(sys.argv)
    ]  # no place of this machine
    command = shlex.join(["python", "benchmarks/pipeline.py", *given])
    where = {**machine(), "commit": commit(), **versions()}
    date = datetime.now(UTC).date().isoformat()
    kept = {"command": command, "date": date, "where": where, "runs": [asdict(run) for run in runs]}
    (RESULTS / "pipeline.json").write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    page = [
        "# Keeping a model busy",
        f"`{command}`: {date}, {', '.join(f'{name} {value}' for name, value in where.items())}.",
        "\n".join(
            [f"| {' | '.join(COLUMNS)} |", f"| {' | '.join(['---'] * len(COLUMNS))} |", *(run.row() for run in runs)]
        ),
    ]
    (RESULTS / "pipeline.md").write_text("\n\n".join(page) + "\n", "utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
