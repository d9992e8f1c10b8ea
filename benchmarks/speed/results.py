"""Saves a run of the speed benchmark as JSON, as a page, and as a section of docs/figures.md.

    python -m benchmarks.speed.results

writes the section of docs/figures.md again from benchmarks/results/speed.json.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.speed.figures import Measurement, sheets
from benchmarks.speed.machine import ROOT
from benchmarks.speed.picture import picture

RESULTS = ROOT / "benchmarks/results"
FIGURES_PAGE = ROOT / "docs/figures.md"
BEGIN, END = "<!-- figures: written by python -m benchmarks.speed.results -->", "<!-- end of figures -->"
READING = (
    "CPU is that of all threads, without what the model's replies and the vectors took, which both sides are given at "
    "once; written is what was handed to write calls; memory is the most the process had resident; growth is over the "
    "least of the smaller sizes. A ratio says how many times less Quipu needs."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the benchmark: what was called, when, on what, and what was measured."""

    command: str
    date: str
    commit: str
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()

    def where(self) -> str:
        """Return when and on what it ran, in one line."""
        named = {**self.machine, "commit": self.commit or "unknown"}
        return ", ".join([self.date, *(f"{name} {value}" for name, value in named.items())])


def save(run: Run, folder: Path) -> None:
    """Write the run as speed.json, speed.md and speed.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "speed.json").write_text(json.dumps(asdict(run), indent=1, ensure_ascii=False) + "\n", "utf-8")
    (folder / "speed.md").write_text(page(run), "utf-8")
    (folder / "speed.svg").write_text(picture(run.measurements), "utf-8")


def load(folder: Path) -> Run:
    """Return the run that was saved there."""
    fields = json.loads((folder / "speed.json").read_text("utf-8"))
    measurements = tuple(Measurement(**one) for one in fields.pop("measurements"))
    return Run(**{**fields, "measurements": measurements, "notes": tuple(fields["notes"])})


def page(run: Run) -> str:
    """Return the page of a run."""
    versions = ", ".join(f"{name} {value}" for name, value in run.versions.items())
    parts = ["# Speed", f"`{run.command}`: {run.where()}; {versions}.", "![Cost of a chunk](speed.svg)"]
    parts += [f"## {sheet.title.capitalize()}\n\n{sheet.markdown()}" for sheet in sheets(run.measurements)]
    how = "How it is measured, and why so: [ADR 0015](../../docs/adr/0015-speed-benchmark.md)."
    return "\n\n".join([*parts, f"{READING} {how}", *run.notes]) + "\n"


def section(run: Run) -> str:
    """Return the section of docs/figures.md."""
    parts = ["![Cost of a chunk against the size of the index](../benchmarks/results/speed.svg)"]
    parts += [f"{sheet.title.capitalize()}:\n\n{sheet.markdown()}" for sheet in sheets(run.measurements)]
    return "\n\n".join([*parts, f"{READING} `{run.command}`: {run.where()}.", *run.notes])


def with_section(page_text: str, text: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """Return the page with `text` between the marks. Raises ValueError if the page lacks them."""
    before, begin, rest = page_text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not (begin and end):
        raise ValueError(f"The page has no section between {marks[0]!r} and {marks[1]!r}.")
    return f"{before}{begin}\n{text}\n{end}{after}"


def write_figures_page() -> None:
    """Write the section of docs/figures.md again from the saved run."""
    page_text = with_section(FIGURES_PAGE.read_text("utf-8"), section(load(RESULTS)))
    FIGURES_PAGE.write_text(page_text, "utf-8")


if __name__ == "__main__":
    write_figures_page()
