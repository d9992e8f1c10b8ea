"""Measure the embedders: texts per CPU second, long and short: `python benchmarks/embedding.py [--embedder NAME …]`."""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from quipu.bench.datasets import read_dataset
from quipu.errors import QuipuError, Unavailable
from quipu.ports.providers import Embedder
from quipu.settings import Settings
from quipu.wiring import EMBEDDERS, open_embedder

DATA = Path(os.environ.get("QUIPU_DATA") or Path(__file__).resolve().parents[1] / "../shared/data")
N_CHUNKS, N_TITLES, N_CHARS = 64, 600, 960  # about 241 tokens of English prose, and about 7


def main() -> int:
    """Print one table, or say that the data sets are not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets (default: QUIPU_DATA)")
    parser.add_argument("--embedder", action="append", dest="embedders", metavar="NAME", help="default: all there are")
    options = parser.parse_args()
    try:
        novels = read_dataset((options.data / "graphragbench_novel8").resolve())
        pages = read_dataset((options.data / "musique_train100").resolve())
    except QuipuError as error:
        sys.stdout.write(f"Left out: {error}\n")
        return 0
    prose = " ".join(passage.text for passage in novels.passages[:400])
    chunks = [prose[start : start + N_CHARS] for start in range(0, N_CHUNKS * N_CHARS, N_CHARS)]
    titles = list(dict.fromkeys(passage.title for passage in pages.passages))[:N_TITLES]
    sys.stdout.write("| embedder | first call, CPU s | chunks a CPU s | titles a CPU s | one title, CPU ms |\n")
    sys.stdout.write("| --- | --- | --- | --- | --- |\n")
    for name in options.embedders or EMBEDDERS:
        sys.stdout.write(f"{asyncio.run(_row(name, chunks, titles))}\n")
    return 0


async def _row(name: str, chunks: Sequence[str], titles: Sequence[str]) -> str:
    begun = time.process_time()
    try:
        embedder = await open_embedder(Settings(embedder=name))
        await embedder.embed(["knots"])
    except Unavailable as error:
        return f"| {name} | {error.message} | | | |"
    first = time.process_time() - begun
    alone = sum([await _cpu_s(embedder, [title]) for title in titles[:50]]) / 50
    rates = [len(texts) / await _cpu_s(embedder, texts) for texts in (chunks, titles)]
    return f"| {name} | {first:.2f} | {rates[0]:,.1f} | {rates[1]:,.0f} | {1000 * alone:.1f} |"


async def _cpu_s(embedder: Embedder, texts: Sequence[str]) -> float:
    begun = time.process_time()
    await embedder.embed(texts)
    return time.process_time() - begun


if __name__ == "__main__":
    raise SystemExit(main())
