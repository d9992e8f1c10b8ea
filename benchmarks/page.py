"""Measures how the web page loads, beside LightRAG's where that can be installed (on Linux).

    python benchmarks/page.py [--runs N] [--no-peer] [--save]

Both servers have an empty index and the same scripted model. Each run is a first visit, with an empty cache, in the
same Chromium, the two pages in turn: a run of one page is followed by a run of the other. Bytes are those over the
wire, requests those until a second has passed without one. CPU is that of the main thread; blocked is the part of each
long task beyond 50 ms. The largest paint is the one that a browser reports. Figures are medians. It needs Node.js and
Chromium, as `make browser`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serving.processes import NotStarted, Server, lightrag_server, model_server, quipu_server
from benchmarks.speed.machine import ROOT, commit, machine, versions

RESULTS = ROOT / "benchmarks/results/page.md"

_COLUMNS = (
    ("n_bytes", "bytes"),
    ("n_requests", "requests"),
    ("cpu_ms", "CPU ms"),
    ("blocked_ms", "blocked ms"),
    ("paint_ms", "paint ms"),
    ("n_elements", "elements"),
    ("n_violations", "axe A/AA"),
)


def load(servers: Sequence[Server], n_runs: int) -> Mapping[str, Sequence[Mapping[str, float]]]:
    """Open the page of each server in Chromium; return what each run took, by the name of the server."""
    addresses = [f"{server.name}={server.address}/" for server in servers]
    command = ["node", "tests/load.mjs", str(n_runs), *addresses]
    done = subprocess.run(command, cwd=ROOT / "ui", capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"The page could not be opened; run make browser first.\n{done.stderr.strip()[-600:]}")
    runs: Mapping[str, Sequence[Mapping[str, float]]] = json.loads(done.stdout)
    return runs


def main() -> None:
    """Start the servers, open their pages, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="first visits of each page (default: 7)")
    parser.add_argument("--save", action="store_true", help="write the table to benchmarks/results/page.md")
    parser.add_argument("--no-peer", action="store_true", help="leave LightRAG out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        model = stack.enter_context(model_server())
        servers = [stack.enter_context(quipu_server(folder / "quipu", model))]
        if not arguments.no_peer:
            try:
                servers.append(stack.enter_context(lightrag_server(folder / "lightrag", model)))
            except NotStarted as reason:
                print(f"skipped LightRAG: {reason}")
        runs = load(servers, arguments.runs)
    table = table_of(runs)
    print(table)
    if arguments.save:
        facts = ", ".join(f"{name} {value}" for name, value in {**machine(), **versions(), "commit": commit()}.items())
        command = f"python benchmarks/page.py --runs {arguments.runs} --save"
        RESULTS.write_text(f"# How the page loads\n\n`{command}`: {date.today()}, {facts}.\n\n{table}\n", "utf-8")


def table_of(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Return the medians of the runs as a table in Markdown."""
    lines = [f"| | {' | '.join(title for _, title in _COLUMNS)} |", f"|---|{'---:|' * len(_COLUMNS)}"]
    for name, runs_of_one in runs.items():
        medians = (statistics.median(run[field] for run in runs_of_one) for field, _ in _COLUMNS)
        lines.append(f"| {name} | {' | '.join(f'{median:,.0f}' for median in medians)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
