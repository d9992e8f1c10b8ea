"""Measure every strategy that ranks passages: `python benchmarks/retrieval.py [--set NAME …] [--strategy NAME …]`."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from quipu.bench.datasets import read_dataset
from quipu.bench.retrieval import measure, ranking_strategies, table
from quipu.errors import QuipuError

DATA = Path(__file__).resolve().parents[1] / "../shared/data"
CACHE = Path(tempfile.gettempdir()) / "quipu-bench"
SETS = ("musique_train100", "hotpotqa_train100", "2wiki101", "lihua_world")


def main() -> int:
    """Print one table; return 1 where a data set or strategy does not exist."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the indexes, kept between runs")
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME", help=f"default: {', '.join(SETS)}")
    parser.add_argument("--strategy", action="append", dest="strategies", metavar="NAME", help="default: all")
    options = parser.parse_args()
    try:
        for name in options.sets or SETS:
            dataset = read_dataset((options.data / name).resolve())
            strategies = options.strategies or ranking_strategies()
            scores = asyncio.run(measure(dataset, options.cache / name, strategies))
            sys.stdout.write(f"{table(scores)}\n\n")
    except QuipuError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
