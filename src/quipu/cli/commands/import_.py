"""`quipu import`: a graph another system has made, with its documents, into the index."""

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand, budget_option, no_model_option
from quipu.cli.output import emit, named, spent, styled
from quipu.cli.progress import progress
from quipu.cli.results import render_refresh
from quipu.cli.session import load_settings, with_engine
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

    PATH is a file of JSON lines, or a folder of such files: texts, what is recorded of each, communities and reports on
    them (docs/importing.md). No model reads the documents again; one that is set writes what is derived, unless
    --no-model leaves that for later. Everything is checked before anything is added. The exit code is 1 if a document
    could not be read.
    """
    settings = load_settings(has_no_model=has_no_model, budget=budget)
    if not settings.index.exists():
        _check(paths)
    with progress() as on_event:
        report = with_engine(lambda engine: engine.import_graph(*paths, on_event=on_event), settings, create=True)
    emit(report, _render)
    return 1 if report.failed or report.refreshed.stopped else 0


def _check(paths: Sequence[Path]) -> None:
    """Read all once before an index is made: what cannot be read, or is of nothing, must leave no empty one behind."""
    from quipu.ingest.graph_import import read_graph

    graph = read_graph(paths)
    if not graph.documents:
        raise InvalidInput(
            "There are no documents in what is imported, and no index that holds any.",
            remedy="Import the documents that the communities are of, before or together with them.",
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
        console.print(styled(f"Names in communities that no document has, left out: {names}{more}.", "yellow"))
    for what in report.omissions[:_SHOWN]:
        console.print(styled(f"Left out: {what}.", "yellow"))
    if len(report.omissions) > _SHOWN:
        console.print(styled(f"Left out besides: {len(report.omissions) - _SHOWN:,} more of the kind.", "yellow"))
    for document, why in report.failed[:_SHOWN]:
        console.print(styled(f"Failed: {named(document)}: {why}", "red"))
    render_refresh(console, report.refreshed)
    if report.usage:
        console.print(f"{spent(report.usage)}.")
