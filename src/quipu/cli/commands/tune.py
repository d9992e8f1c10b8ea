"""`quipu tune`: work out from a sample how documents should be read, and write it into a file to edit."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.cli.budget import budget_option, no_model_option
from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit, named, styled
from quipu.cli.progress import progress
from quipu.cli.session import command_line, load_settings, with_engine
from quipu.cli.tunings import render_cost, render_tuning
from quipu.model.tuning import TuningResult

if TYPE_CHECKING:
    from quipu.settings import Settings

_NAME = "ontology.yaml"
_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What was worked out, the file it was written to ("": none), and the line of quipu.toml that names the file."""

    path: str
    setting: str
    report: TuningResult


@click.command(
    "tune",
    cls=QuipuCommand,
    examples=(
        "quipu tune ./notes --dry-run",
        "quipu tune ./notes",
        "quipu tune ./notes --sample 24 --compare 4 --budget 0.50",
        "quipu tune --output harbour.yaml",
        "quipu tune ./notes --no-model --force",
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--sample", "n_sample", type=click.IntRange(1, 200), default=12, help="Chunks to learn from.")
@click.option("--compare", "n_compare", type=click.IntRange(0, 50), default=2, help="Other chunks to compare on.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"The file to write; by default {_NAME} beside quipu.toml.",
)
@click.option("--force", "is_forced", is_flag=True, help="Write over a file that is there.")
@click.option(
    "--root", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Ids are paths below this folder."
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Only say what it would take; ask no model, write nothing.")
@no_model_option
@budget_option
def command(
    *,
    paths: tuple[str, ...],
    n_sample: int,
    n_compare: int,
    output: Path | None,
    is_forced: bool,
    root: Path | None,
    is_dry: bool,
    has_no_model: bool,
    budget: str | None,
) -> int:
    """Work out from a sample how your documents should be read.

    The sample is taken from files and folders, or without PATH from the index. A language model suggests what the
    documents are about, types, relations and examples; without one, types and names are counted by rules. All of it is
    written into a file for you to edit; then the difference is shown: in what a model is told, and in what it finds in
    other chunks. Nothing is added to the index. The exit code is 1 if the work stopped before its end.
    """
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise click.UsageError(f"There is no file or folder {missing[0]!r}.")
    settings = load_settings(has_no_model=has_no_model, budget=budget)
    folder = _config_folder(settings)
    path = output or folder / _NAME
    if not is_dry:
        _check(path, is_forced=is_forced)
    with progress() as on_event:
        report = with_engine(
            lambda engine: engine.tune(
                *map(Path, paths),
                root=root,
                n_sample=n_sample,
                n_compare=n_compare,
                dry_run=is_dry,
                on_event=on_event,
            ),
            settings,
            create=bool(paths),
        )
    if is_dry:
        emit(report, render_cost)
        return 0
    _write(path, report.file, is_forced=is_forced)
    emit(Tuned(path=str(path), setting=_setting(path, folder), report=report), _render)
    return 1 if report.stopped else 0


def _render(console: Console, tuned: Tuned) -> None:
    render_tuning(console, tuned.report)
    console.print()
    console.print(
        named(tuned.path, "bold").append(" is written. Read it and change what you like; then set in quipu.toml")
    )
    console.print(styled(f"  {tuned.setting}", "green"))
    reread = command_line("add", "--reread")
    console.print(styled(f"Documents of the index stay as they were read; `{reread}` reads them again by it."))


def _check(path: Path, *, is_forced: bool) -> None:
    """Refuse a file that cannot be written before anything is paid for."""
    if path.suffix not in _SUFFIXES:
        raise click.UsageError(f"--output {str(path)!r}: the file is YAML; its name ends with .yaml or .yml.")
    if not path.parent.is_dir():
        raise click.UsageError(f"There is no folder {str(path.parent)!r}.")
    if path.exists() and not is_forced:
        raise click.UsageError(f"{str(path)!r} is there. Name another with --output, or write over it with --force.")


def _write(path: Path, text: str, *, is_forced: bool) -> None:
    """Write the file whole or not at all; unless forced, never over one that has come there meanwhile."""
    if not is_forced:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _config_folder(settings: "Settings") -> Path:
    """Return the folder of quipu.toml, or the one it would be looked for in."""
    from quipu.settings.gathering import find_config

    file = settings.config or find_config(settings.index)
    return file.parent if file else Path()


def _setting(path: Path, folder: Path) -> str:
    """Return the line that names the file; paths in quipu.toml go from its own folder."""
    whole, base = path.absolute(), folder.absolute()
    named = whole.relative_to(base) if whole.is_relative_to(base) else whole
    return f"ontology = {json.dumps(named.as_posix(), ensure_ascii=False)}"
