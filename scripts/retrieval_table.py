"""Write the tables of strategies in docs/figures.md and README.md again from benchmarks/results/retrieval.json.

python scripts/retrieval_table.py
"""

import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # so that it runs as a file, too

from benchmarks.speed.results import FIGURES_PAGE, RESULTS, with_section  # noqa: E402

MARKS = ("<!-- strategies: written by python scripts/retrieval_table.py -->", "<!-- end of strategies -->")
README = ROOT / "README.md"
README_STRATEGIES = ("convex fusion", "naive", "lexical", "mix", "ppr", "hippo", "linear", "context", "weave")
EMBEDDER, EXTRACTOR = "wordllama", "local/"  # what runs without a key and a download

Score = Mapping[str, Any]


def section(run: Mapping[str, Any]) -> str:
    """Return the table for docs/figures.md, and what measured it."""
    where = f"`{run['command']}`: {run['date']}, commit {run['where']['commit']}"
    return (
        f"{table(run)}\n\n{where}. With intervals and more: [all figures]({_PAGE}); with MiniLM: [earlier]({_EARLIER})."
    )


def table(run: Mapping[str, Any], only: Collection[str] = ()) -> str:
    """Return recall at 5 and "all gold passages in the first 8" of each strategy, or of these, on each data set."""
    scores = [s for s in run["scores"] if s["embedder"] == EMBEDDER and s["extractor"].startswith(EXTRACTOR)]
    sets = list(dict.fromkeys(score["dataset"] for score in scores))
    strategies = [name for name in dict.fromkeys(score["strategy"] for score in scores) if not only or name in only]
    by_place = {(score["strategy"], score["dataset"]): score for score in scores}
    best = {name: max(_recall(by_place[strategy, name]) for strategy in strategies) for name in sets}
    rows = [["strategy", *sets], ["---", *["---:"] * len(sets)]]
    for strategy in strategies:
        cells = [_cell(by_place[strategy, name], best[name]) for name in sets]
        rows.append([f"`{strategy}`", *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


_PAGE, _EARLIER = "../benchmarks/results/retrieval.md", "../benchmarks/results/retrieval-minilm.md"


def _recall(score: Score) -> float:
    return float(score["recall"]["5"]["value"])


def _cell(score: Score, best: float) -> str:
    text = f"{_recall(score):.0f} / {score['all_found']['value']:.0f}"
    return f"**{text}**" if _recall(score) == best else text


def main() -> None:
    """Write the tables into docs/figures.md and README.md."""
    run = json.loads((RESULTS / "retrieval.json").read_text("utf-8"))
    FIGURES_PAGE.write_text(with_section(FIGURES_PAGE.read_text("utf-8"), section(run), MARKS), "utf-8")
    README.write_text(with_section(README.read_text("utf-8"), table(run, README_STRATEGIES), MARKS), "utf-8")


if __name__ == "__main__":
    main()
