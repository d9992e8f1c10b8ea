"""Write the table of strategies in docs/figures.md again from benchmarks/results/retrieval.json.

python scripts/retrieval_table.py
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # so that it runs as a file, too

from benchmarks.speed.results import FIGURES_PAGE, RESULTS, with_section  # noqa: E402

MARKS = ("<!-- strategies: written by python scripts/retrieval_table.py -->", "<!-- end of strategies -->")
EMBEDDER, EXTRACTOR = "wordllama", "local/"  # what runs without a key and a download

Score = Mapping[str, Any]


def section(run: Mapping[str, Any]) -> str:
    """Return the table: recall at 5 and "all gold passages in the first 8" of each strategy on each data set."""
    scores = [s for s in run["scores"] if s["embedder"] == EMBEDDER and s["extractor"].startswith(EXTRACTOR)]
    sets = list(dict.fromkeys(score["dataset"] for score in scores))
    strategies = list(dict.fromkeys(score["strategy"] for score in scores))
    by_place = {(score["strategy"], score["dataset"]): score for score in scores}
    best = {name: max(_recall(by_place[strategy, name]) for strategy in strategies) for name in sets}
    rows = [["strategy", *sets], ["---", *["---:"] * len(sets)]]
    for strategy in strategies:
        cells = [_cell(by_place[strategy, name], best[name]) for name in sets]
        rows.append([f"`{strategy}`", *cells])
    where = f"`{run['command']}`: {run['date']}, commit {run['where']['commit']}"
    return "\n".join([*_lines(rows), "", f"{where}. With intervals, MiniLM and more: [all figures]({_PAGE})."])


_PAGE = "../benchmarks/results/retrieval.md"


def _recall(score: Score) -> float:
    return float(score["recall"]["5"]["value"])


def _cell(score: Score, best: float) -> str:
    text = f"{_recall(score):.0f} / {score['all_found']['value']:.0f}"
    return f"**{text}**" if _recall(score) == best else text


def _lines(rows: Iterable[Iterable[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in rows]


def main() -> None:
    """Write the table into docs/figures.md."""
    run = json.loads((RESULTS / "retrieval.json").read_text("utf-8"))
    FIGURES_PAGE.write_text(with_section(FIGURES_PAGE.read_text("utf-8"), section(run), MARKS), "utf-8")


if __name__ == "__main__":
    main()
