"""`quipu import`: add documents with a graph that another system extracted."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

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
        "quipu import ./rag_storage",
        "quipu import ./rag_storage --dry-run",
        "quipu import corpus.jsonl extraction.jsonl",
        "quipu --index k import facts.csv people.graphml",
    ),
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only tell what would be imported; add nothing.")
@no_model_option
@budget_option
def command(paths: tuple[Path, ...], is_dry: bool, has_no_model: bool, budget: str | None) -> int:
    """Add documents with a graph that another system extracted.

    PATH is a working directory of LightRAG, an output folder of Microsoft GraphRAG, a file of GraphML, triples (CSV,
    TSV, N-Triples) or JSON, a JSON Lines file, or a folder of such files (docs/importing.md). No model reads the
    documents again. If a model is set, it writes the derived texts, such as summaries; --no-model leaves them for
    later. Everything is checked before anything is added, and what cannot be carried over is listed. The exit code is 1
    if a document could not be read.
    """
    from quipu.ingest.graph_import import read_graph
    from quipu.wiring.restoring import has_index

    settings = load_settings(has_no_model=has_no_model, budget=budget)
    graph = read_graph(paths)  # before an index is created, so that invalid files leave no empty index behind
    is_new = not asyncio.run(has_index(settings))
    if is_new and not graph.documents:
        raise InvalidInput(
            "The files contain no documents, and there is no index to add their communities to.",
            remedy="Import the documents of these communities first, or in the same command.",
        )
    with TemporaryDirectory() as folder, progress() as on_event:
        if is_dry and is_new:
            settings = settings.model_copy(update={"index": Path(folder) / "index"})
        result = with_engine(
            lambda engine: engine.import_graph(graph, dry_run=is_dry, on_event=on_event), settings, create=True
        )
    emit(result, _render)
    return 1 if result.failed or result.refreshed.stopped else 0


def _render(console: Console, report: ImportResult) -> None:
    would_be = " would be" if report.is_dry_run else ""
    chunks = "" if report.is_dry_run else f"; {format_count(report.n_chunks, 'chunk')}"
    console.print(
        f"{format_count(report.n_added, 'document')}{would_be} added, {report.n_updated:,} updated, "
        f"{report.n_unchanged:,} unchanged{chunks}."
    )
    console.print(
        f"{format_count(report.n_entities, 'entity')}, {format_count(report.n_relations, 'relation')} and "
        f"{format_count(report.n_claims, 'claim')} in the graph."
    )
    if report.n_communities:
        console.print(
            f"{format_count(report.n_communities, 'community')} and {format_count(report.n_reports, 'report')}"
            f"{would_be} adopted."
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
