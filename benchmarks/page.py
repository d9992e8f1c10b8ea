"""Measures how the web page loads, beside LightRAG's where that can be installed (on Linux).

    python benchmarks/page.py [--runs N] [--no-peer]

Both servers have an empty index and the same scripted model. Each run is a first visit, with an empty cache, in the
same Chromium, the two pages in turn: a run of one page is followed by a run of the other. Bytes are those over the
wire, requests those until a second has passed without one. Blocked is the part of each long task beyond 50 ms. The
largest paint is the one that a browser reports. Figures are medians. It needs Node.js and Chromium, as `make browser`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serving.processes import NotStarted, Server, lightrag_server, model_server, quipu_server
from benchmarks.speed.machine import ROOT

_COLUMNS = (
    ("n_bytes", "bytes"),
    ("n_requests", "requests"),
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
    print("".join([f"{'':10}", *(f"{title:>12}" for _, title in _COLUMNS)]))
    for server in servers:
        medians = (statistics.median(run[field] for run in runs[server.name]) for field, _ in _COLUMNS)
        print("".join([f"{server.name:10}", *(f"{median:>12,.0f}" for median in medians)]))


if __name__ == "__main__":
    main()
