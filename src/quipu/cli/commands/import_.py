"""`quipu import`: add documents with a graph that another system extracted."""

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand, budget_option, load_settings, no_model_option, with_engine
from quipu.cli.output import emit, named, spent, styled
from quipu.cli.progress import progress
from quipu.cli.results import render_refresh
from quipu.errors import InvalidInput
from quipu.model.results import ImportResult
from quipu.text.formatting import format_count

_SHOWN = 5


@click.command(
    "import",
    cls=QuipuCommand,
    examples=(
        "quipu import ./graphrag-run",
        "quipu import corpus.jsonl extraction.jsonl",
        "quipu --index k import g.jsonl",
    ),
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@no_model_option
@budget_option
def command(paths: tuple[Path, ...], has_no_model: bool, budget: str | None) -> int:
    """Add documents with a graph that another system extracted.

    PATH is a JSON Lines file, or a folder of such files. They contain texts, the entities and relations of each text,
    communities, and reports on them (docs/importing.md). No model reads the documents again. If a model is set, it
    writes the derived texts, such as summaries; --no-model leaves them for later. Everything is checked before anything
    is added. The exit code is 1 if a document could not be read.
    """
    settings = load_settings(has_no_model=has_no_model, budget=budget)
    if not settings.index.exists():
        _check(paths)
    with progress() as on_event:
        report = with_engine(lambda engine: engine.import_graph(*paths, on_event=on_event), settings, create=True)
    emit(report, _render)
    return 1 if report.failed or report.refreshed.stopped else 0


def _check(paths: Sequence[Path]) -> None:
    """Read all files before an index is created, so that invalid files leave no empty index behind."""
    from quipu.ingest.graph_import import read_graph

    graph = read_graph(paths)
    if not graph.documents:
        raise InvalidInput(
            "The files contain no documents, and there is no index to add their communities to.",
            remedy="Import the documents of these communities first, or in the same command.",
        )


def _render(console: Console, report: ImportResult) -> None:
    console.print(
        f"{format_count(report.n_added, 'document')} added, {report.n_updated:,} updated, "
        f"{report.n_unchanged:,} unchanged;"
        f" {format_count(report.n_chunks, 'chunk')}."
    )
    if report.n_communities:
        console.print(
            f"{format_count(report.n_communities, 'community')} and {format_count(report.n_reports, 'report')} adopted."
        )
    if report.unknown:
        names = ", ".join(report.unknown[:_SHOWN])
        more = f" and {len(report.unknown) - _SHOWN:,} more" if len(report.unknown) > _SHOWN else ""
        console.print(
            styled(f"Left out, because no document contains these names of communities: {names}{more}.", "yellow")
        )
    for what in report.omissions[:_SHOWN]:
        console.print(styled(f"Left out: {what}.", "yellow"))
    if len(report.omissions) > _SHOWN:
        console.print(styled(f"Left out: {len(report.omissions) - _SHOWN:,} more like these.", "yellow"))
    for document, why in report.failed[:_SHOWN]:
        console.print(styled(f"Failed: {named(document)}: {why}", "red"))
    render_refresh(console, report.refreshed)
    if report.usage:
        console.print(f"{spent(report.usage)}.")
