"""The tables of strategies in docs/figures.md and README.md."""

import json
from typing import Any

from benchmarks.speed.results import FIGURES_PAGE, RESULTS, with_section
from scripts.retrieval_table import MARKS, README, README_STRATEGIES, section, table


def _score(strategy: str, dataset: str, recall: float, *, embedder: str = "wordllama", by: str = "local/1") -> Any:
    mean = {"value": recall, "low": 0.0, "high": 100.0, "n": 2}
    place = {"dataset": dataset, "embedder": embedder, "extractor": by, "strategy": strategy}
    return {**place, "recall": {"5": mean}, "all_found": {**mean, "value": 12.0}}


def test_a_row_a_strategy_and_a_column_a_set_with_the_best_marked() -> None:
    scores = [
        _score("naive", "one", 41.5),
        _score("linear", "one", 67.7),
        _score("linear", "one", 99.0, embedder="minilm"),
        _score("linear", "one", 98.0, by="recorded/2"),
    ]
    lines = section({"command": "run", "date": "today", "where": {"commit": "abc"}, "scores": scores}).splitlines()
    assert lines[:4] == ["| strategy | one |", "| --- | ---: |", "| `naive` | 42 / 12 |", "| `linear` | **68 / 12** |"]
    assert lines[-1].startswith("`run`: today, commit abc.")


def test_the_pages_show_the_saved_run() -> None:
    page, readme = FIGURES_PAGE.read_text("utf-8"), README.read_text("utf-8")
    run = json.loads((RESULTS / "retrieval.json").read_text("utf-8"))
    assert with_section(page, section(run), MARKS) == page
    assert with_section(readme, table(run, README_STRATEGIES), MARKS) == readme
    assert all(f"| `{name}` |" in readme for name in README_STRATEGIES)
