"""`quipu tune`: suggest an ontology for your documents from a sample."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from quipu.cli.options import QuipuCommand, budget_option, command_line, load_settings, no_model_option, with_engine
from quipu.cli.output import emit, in_currency, money, named, spent, styled, table, tokens
from quipu.cli.progress import progress
from quipu.model.tuning import ExtractionComparison, TuningResult, TypedName
from quipu.model.usage import Range
from quipu.text.formatting import format_count
from quipu.text.names import entity_key

if TYPE_CHECKING:
    from quipu.settings import Settings

_NAME = "ontology.yaml"
_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The result of tuning, the file of the ontology ("": not written), and the line of quipu.toml that names the
    file."""

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
@click.option("--force", "is_forced", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Document ids are paths relative to this folder.",
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Only estimate the cost; ask no model, write nothing.")
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
    """Suggest an ontology for your documents from a sample.

    The sample is taken from files and folders, or from the index if there is no PATH. A language model suggests a
    domain, entity types, relations and examples. Without a model, rules count types and names. The ontology is written
    to a file for you to edit. Then the command shows how the ontology changes the prompt, and which entities a model
    finds with it in other chunks. Nothing is added to the index. The exit code is 1 if the work stopped early.
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
    console.print(styled(f"Documents in the index do not change; `{reread}` reads them again with this ontology."))


def _check(path: Path, *, is_forced: bool) -> None:
    """Raise UsageError if the file cannot be written, before any model is called."""
    if path.suffix not in _SUFFIXES:
        raise click.UsageError(f"--output {str(path)!r}: the file is YAML, so its name must end with .yaml or .yml.")
    if not path.parent.is_dir():
        raise click.UsageError(f"There is no folder {str(path.parent)!r}.")
    if path.exists() and not is_forced:
        raise click.UsageError(
            f"{str(path)!r} exists already. Name another file with --output, or overwrite it with --force."
        )


def _write(path: Path, text: str, *, is_forced: bool) -> None:
    """Write the file completely or not at all. Unless forced, never replace a file that appeared meanwhile."""
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
    """Return the folder of quipu.toml, or the folder where Quipu looks for it."""
    from quipu.settings.sources import find_config

    file = settings.config or find_config(settings.outer_folder)
    return file.parent if file else Path()


def _setting(path: Path, folder: Path) -> str:
    """Return the line of quipu.toml that names the file; paths there are relative to the folder of quipu.toml."""
    whole, base = path.absolute(), folder.absolute()
    named = whole.relative_to(base) if whole.is_relative_to(base) else whole
    return f"ontology = {json.dumps(named.as_posix(), ensure_ascii=False)}"


_MAX_ROWS = 15
_STYLE_BY_MARK = {"+": "green", "-": "red", "@": "dim"}


def render_cost(console: Console, report: TuningResult) -> None:
    """Print the estimated cost of tuning."""
    _render_sample(console, report)
    if report.cost is None:
        console.print("No model would be asked, and nothing would be spent.")
        return
    cost, right = report.cost, ["likely", "at least", "at most"]
    listing = table(cost.model, *right, right=right)
    rows = [("calls", cost.calls), ("tokens in", cost.input_tokens), ("tokens out", cost.output_tokens)]
    for name, figure in rows:
        listing.add_row(name, *(tokens(round(value)) for value in _values(figure)))
    if cost.money is not None:
        listing.add_row(in_currency("money"), *(money(round(value)) for value in _values(cost.money)))
    console.print(listing)
    console.print("Based on typical figures. No model was asked and nothing was written; `--budget` sets a limit.")


def render_tuning(console: Console, report: TuningResult) -> None:
    """Print the ontology and the differences it makes."""
    _render_sample(console, report)
    console.print(styled(f"Suggested by {report.method}."))
    for note in report.notes:
        console.print(styled(note, "yellow"))
    if report.stopped:
        console.print(styled(f"Stopped: {report.stopped}", "red"))
    console.print()
    _render_ontology(console, report)
    if report.prompt_diff:
        console.print()
        console.print(styled("Changes of the instructions that a model gets with every text", "bold"))
        for line in report.prompt_diff.splitlines():
            console.print(styled(line, _STYLE_BY_MARK.get(line[:1], "")))
    for comparison in report.comparisons:
        console.print()
        _render_compared(console, comparison)
    if report.usage:
        console.print()
        console.print(styled(f"{spent(report.usage)}.", "dim"))


def _render_sample(console: Console, report: TuningResult) -> None:
    n_compared = sum(chunk.is_compared for chunk in report.sample)
    apart = f", and {n_compared:,} more for the comparison" if n_compared else ""
    unreadable = f" ({report.n_unreadable:,} cannot be read)" if report.n_unreadable else ""
    console.print(
        f"A sample of {format_count(len(report.sample) - n_compared, 'chunk')}{apart}, of {report.n_chunks:,} in "
        f"{format_count(report.n_documents, 'document')}{unreadable}."
    )


def _render_ontology(console: Console, report: TuningResult) -> None:
    ontology = report.ontology
    console.print(styled(f"Domain: {ontology.domain or '(none)'}"))
    listing = table("type", "description", "by rules", right=["by rules"])
    count_by_name = {count.name: count.n for count in report.type_counts}
    for rule in ontology.types:
        listing.add_row(styled(rule.name), styled(rule.description), f"{count_by_name.get(rule.name, 0):,}")
    console.print(listing)
    if ontology.relations:
        listing = table("relation", "from", "to", "description")
        for relation in ontology.relations:
            ends = (styled(", ".join(names) or "any") for names in (relation.domain, relation.range))
            listing.add_row(styled(relation.name), *ends, styled(relation.description))
        console.print(listing)
    if ontology.examples:
        console.print(f"{format_count(len(ontology.examples), 'example')}, from the documents.")


def _render_compared(console: Console, comparison: ExtractionComparison) -> None:
    """Print two extractions of a chunk side by side; names in both come first."""
    console.print(
        named(comparison.title or comparison.document_id, "bold").append(f"  {comparison.chunk_id}", style="dim")
    )
    for reading, when in ((comparison.before, "before"), (comparison.after, "tuned")):
        if reading.error:
            console.print(styled(f"{when}: {reading.error}", "red"))
    before, after = _by_key(comparison.before.entities), _by_key(comparison.after.entities)
    keys = list(dict.fromkeys((*(key for key in before if key in after), *before, *after)))
    listing = table("name before", "type", "name tuned", "type")
    for key in keys[:_MAX_ROWS]:
        listing.add_row(*_cells(before.get(key)), *_cells(after.get(key)))
    if len(keys) > _MAX_ROWS:
        listing.add_row(styled(f"… and {len(keys) - _MAX_ROWS:,} more", "dim"))
    console.print(listing)
    console.print(
        f"Before: {format_count(len(before), 'entity')}, {format_count(comparison.before.n_relations, 'relation')}. "
        f"Tuned: {format_count(len(after), 'entity')}, {format_count(comparison.after.n_relations, 'relation')}."
    )
    console.print(
        f"Only before: {len(comparison.only_before):,}. Only tuned: {len(comparison.only_after):,}. "
        f"With another type: {len(comparison.retyped):,}."
    )


def _by_key(entities: Iterable[TypedName]) -> dict[str, TypedName]:
    return {entity_key(entity.name): entity for entity in entities}


def _cells(entity: TypedName | None) -> tuple[Text, Text]:
    return (styled(entity.name), styled(entity.type)) if entity else (styled("–", "dim"), Text())


def _values(figure: Range) -> tuple[float, float, float]:
    return figure.likely, figure.low, figure.high
