"""Measure every strategy that ranks passages: `python benchmarks/retrieval.py [--set NAME …] [--embedder NAME …]`.

Each run checks itself: `naive` beside brute force, `lexical` beside a plain BM25. With --save it is kept as JSON and as
a page in benchmarks/results.
"""

import argparse
import asyncio
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # so that it runs as a file, too

from benchmarks.reference.scores import Measured, measure, read_recorded, table  # noqa: E402
from benchmarks.speed.machine import commit, machine, versions  # noqa: E402
from quipu.bench.datasets import read_dataset  # noqa: E402
from quipu.bench.strategies import ranking_strategies  # noqa: E402
from quipu.errors import QuipuError, Unavailable  # noqa: E402
from quipu.ingest.graph_import import ImportedExtractor  # noqa: E402
from quipu.settings import Settings  # noqa: E402
from quipu.wiring import open_embedder  # noqa: E402

DATA = Path(os.environ.get("QUIPU_DATA") or ROOT / "../shared/data")
CACHE = Path(tempfile.gettempdir()) / "quipu-bench"
RESULTS = ROOT / "benchmarks/results"
SETS = ("musique_train100", "hotpotqa_train100", "2wiki101", "lihua_world", "graphragbench_novel8")
EMBEDDERS = ("wordllama", "minilm")
LIBRARIES = ("quipu-rag", "numpy", "tokenizers", "wordllama", "onnxruntime")


def main() -> int:
    """Print one table a set and embedder; return 1 where one named does not exist or the check fails."""
    options = _options()
    measured: list[Measured] = []
    try:
        for embedder in options.embedders or _available():
            for name in options.sets or _present(options.data):
                dataset = read_dataset((options.data / name).resolve())
                strategies = options.strategies or ranking_strategies()
                for extractor in (None, *_recorded(options.data / name)):
                    work = measure(dataset, options.cache, strategies, embedder=embedder, extractor=extractor)
                    measured.append(asyncio.run(work))
                    _say(table(measured[-1].scores), *measured[-1].agreements, "")
    except QuipuError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if options.save and measured:
        _save(measured, options.save)
    return 0 if all(agreement.holds for each in measured for agreement in each.agreements) else 1


def _recorded(folder: Path) -> list[ImportedExtractor]:
    """Return the recorded extraction of a set, if there is one: no model is asked here."""
    recorded = read_recorded(folder)
    return [recorded] if recorded else []


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets (default: QUIPU_DATA)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the indexes, kept between runs")
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME", help=f"default: {', '.join(SETS)}")
    parser.add_argument("--strategy", action="append", dest="strategies", metavar="NAME", help="default: all")
    parser.add_argument(
        "--embedder", action="append", dest="embedders", metavar="NAME", help=f"default: {' and '.join(EMBEDDERS)}"
    )
    parser.add_argument(
        "--save", type=Path, nargs="?", const=RESULTS, metavar="DIR", help="write retrieval.json and retrieval.md there"
    )
    return parser.parse_args()


def _available() -> list[str]:
    """Return the embedders that are installed, and say which are not."""
    found = []
    for name in EMBEDDERS:
        try:
            asyncio.run(open_embedder(Settings(embedder=name)))
            found.append(name)
        except Unavailable as error:
            _say(f"Without {name}: {error}", "")
    return found


def _present(data: Path) -> list[str]:
    """Return the sets that are there, and say which are not."""
    found = [name for name in SETS if (data / name).is_dir()]
    if missing := [name for name in SETS if name not in found]:
        _say(f"Without {', '.join(missing)}: not in the folder of data sets.", "")
    if not found:
        _say("There is no data set to measure. Name their folder: --data DIR or QUIPU_DATA.")
    return found


def _say(*parts: object) -> None:
    sys.stdout.write("\n".join(map(str, parts)) + "\n")
    sys.stdout.flush()


def _save(measured: Sequence[Measured], folder: Path) -> None:
    """Write what was measured, with the command, the date and the machine."""
    command = shlex.join(["python", "benchmarks/retrieval.py", *_given(sys.argv[1:])])
    date = datetime.now(UTC).date().isoformat()
    where = {**machine(), "commit": commit(), **versions([name for name in LIBRARIES if _is_installed(name)])}
    scores = [score for each in measured for score in each.scores]
    agreements = [agreement for each in measured for agreement in each.agreements]
    run = {"command": command, "date": date, "where": where, "scores": [asdict(score) for score in scores]}
    kept = json.dumps(run | {"agreements": [asdict(each) for each in agreements]}, indent=1, ensure_ascii=False)
    page = [
        "# Retrieval",
        f"`{command}`: {date}, {', '.join(f'{name} {value}' for name, value in where.items())}.",
        table(scores),
        "The harness checks itself in the same run:",
        "\n".join(f"- {agreement}" for agreement in agreements),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "retrieval.json").write_text(f"{kept}\n", "utf-8")
    (folder / "retrieval.md").write_text("\n\n".join(page) + "\n", "utf-8")


def _given(arguments: Sequence[str]) -> list[str]:
    """Return the arguments that say what is measured, not where things are on this machine."""
    parser = argparse.ArgumentParser(add_help=False)
    for place in ("--data", "--cache", "--save"):
        parser.add_argument(place, nargs="?")
    return parser.parse_known_args(arguments)[1]


def _is_installed(name: str) -> bool:
    try:
        versions([name])
    except PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    raise SystemExit(main())
