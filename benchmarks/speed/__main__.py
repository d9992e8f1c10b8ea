"""Speed: what Quipu and LightRAG cost on the same texts, in one run, as a table, two files and a picture.

    python -m benchmarks.speed                  # Quipu at 200, 1,000 and 4,000 chunks, LightRAG at 200 and 1,000
    python -m benchmarks.speed --full           # and Quipu at 40,000, LightRAG at 4,000, a million vectors: an hour
    python -m benchmarks.speed --only ours      # Quipu alone

How it is measured, and why so, is told in docs/adr/0015.
"""

import argparse
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.speed import workload
from benchmarks.speed.figures import MISSED, sheets
from benchmarks.speed.machine import commit, machine, versions
from benchmarks.speed.results import READING, RESULTS, Run, save, write_figures_page
from benchmarks.speed.runner import Failed, Runner

SIZES, PEER_UP_TO = (200, 1_000, 4_000), 1_000
FULL_SIZES, FULL_PEER_UP_TO = (200, 1_000, 4_000, 40_000), 4_000
VECTORS = (100_000, 1_000_000)  # the second with --full
STORE_UP_TO = 4_000  # chunks: what the store takes of `add` is measured on its own up to here
STEPS = ("store", "ingest", "grow", "ask", "remove")
CACHE = Path(tempfile.gettempdir()) / "quipu-bench"


def main() -> int:
    """Measure, and write the results; return 1 where Quipu could not be measured to the end."""
    options = _options()
    console = Console(soft_wrap=True)
    bar = Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console)
    runner = Runner(folder=options.cache, bar=bar)
    failure = ""
    with bar:
        try:
            _measure(options, runner)
        except Failed as error:
            failure = f"The run stopped early: {error}"
    run = Run(
        command=" ".join(["python -m benchmarks.speed", *_given(sys.argv[1:])]),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        commit=commit(),
        machine=machine(),
        versions=versions() | runner.peer_versions,
        measurements=tuple(runner.measured),
        notes=(*runner.notes, failure) if failure else tuple(runner.notes),
    )
    _print(run, console)
    if run.measurements:
        _save(run, options.results, console)
    return 1 if failure else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description="Measure cost against size.")
    parser.add_argument("--full", action="store_true", help="also the largest sizes, and a million vectors: an hour")
    parser.add_argument("--only", choices=["ours"], help="ours: leave LightRAG out")
    parser.add_argument("--sizes", type=_size, nargs="+", metavar="N", help="these sizes, in chunks, by tens")
    parser.add_argument("--no-vectors", action="store_true", help="leave the vector index out")
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        help="folder of the results; the default also rewrites docs/figures.md",
    )
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of texts, indexes and LightRAG")
    return parser.parse_args()


def _size(text: str) -> int:
    size = int(text)
    if size < 2 * workload.CHUNKS_PER_DOCUMENT or size % workload.CHUNKS_PER_DOCUMENT:
        raise argparse.ArgumentTypeError(f"{size} chunks are no two or more whole documents of ten")
    return size


def _measure(options: argparse.Namespace, runner: Runner) -> None:
    """Run all steps, ours and LightRAG's in turn."""
    sizes = options.sizes or (FULL_SIZES if options.full else SIZES)
    peer_up_to = FULL_PEER_UP_TO if options.full else PEER_UP_TO
    texts = _texts(options.cache, max(sizes), runner)
    if options.only == "ours":
        runner.notes.append("LightRAG was left out, as asked.")
    else:
        runner.install_peer(options.cache / "lightrag-venv")
    for size in sorted(sizes):
        for step in STEPS:
            if step == "store" and size > STORE_UP_TO:
                continue
            runner.ours(step, texts, size)
            if step != "store" and size <= peer_up_to:
                runner.peer(step, texts, size)
        runner.clean(size)
    if not options.no_vectors:
        runner.vectors(VECTORS[: 1 + options.full])
        runner.peer("vectors", texts, 0)
        runner.clean(0)


def _texts(cache: Path, n_chunks: int, runner: Runner) -> Path:
    """Return the folder of the texts, written where they are not there yet."""
    runner.say("writing the texts")
    texts = workload.Texts()
    folder = cache / f"texts-{crc32(texts.document(0).encode()):08x}"
    workload.write(workload.document_paths(folder, n_chunks), workload.CHUNKS_PER_DOCUMENT, texts)
    for n_added in (1, workload.CHUNKS_PER_DOCUMENT):
        workload.write(workload.addition_paths(folder, workload.N_ADDED, n_added), n_added, texts)
    return folder


def _print(run: Run, console: Console) -> None:
    for sheet in sheets(run.measurements):
        table = Table(title=f"Speed {sheet.title}", title_justify="left")
        for index, column in enumerate(sheet.head):
            table.add_column(column, justify="right" if 0 < index < len(sheet.head) - 2 else "left")
        for *cells, verdict in sheet.cells:
            style = "red" if verdict.startswith(MISSED) else "green"
            table.add_row(*cells, f"[{style}]{verdict}[/]" if verdict else "")
        console.print(table)
    for note in (f"{run.where()}.", READING, *run.notes):
        console.print(note, highlight=False, markup=False)


def _save(run: Run, folder: Path, console: Console) -> None:
    save(run, folder)
    console.print(f"Written: {folder / 'speed.md'}, speed.json, speed.svg")
    if folder == RESULTS:
        write_figures_page()
        console.print("docs/figures.md is written. `git diff` shows what changed since the last run.")


def _given(arguments: list[str]) -> list[str]:
    """Return the arguments without folders, which say nothing to others."""
    kept, skip = [], False
    for argument in arguments:
        if skip or argument in ("--results", "--cache"):
            skip = not skip
            continue
        kept.append(argument)
    return kept


if __name__ == "__main__":
    raise SystemExit(main())
