"""Maintenance of an index: `quipu verify`, `dump`, `export`, `reembed` and `purge`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.atomic_file import remove_files, replace_atomically
from quipu.cli.options import QuipuCommand, budget_option, load_settings, with_engine
from quipu.cli.output import emit, styled
from quipu.cli.progress import progress
from quipu.engine.graph_export import FORMATS
from quipu.errors import InvalidInput, NotFound
from quipu.text.formatting import format_count
from quipu.text.unicode import clean_json

if TYPE_CHECKING:
    from quipu.engine import Quipu


@click.command("verify", cls=QuipuCommand, examples=("quipu verify", "quipu verify --json"))
def verify() -> int:
    """Recompute every derivation and compare it with the index.

    No model is called. The exit code is 1 if anything differs.
    """
    differences = with_engine(lambda engine: engine.verify())
    emit(differences, _render_verify)
    return 1 if differences else 0


def _render_verify(console: Console, differences: list[str]) -> None:
    for difference in differences:
        console.print(styled(difference, "red"))
    if differences:
        console.print(
            f"{format_count(len(differences), 'difference')}. `quipu refresh --rebuild` rebuilds full text and links."
        )
    else:
        console.print("Sound: every derivation equals what the facts give.", style="green")


@click.command("dump", cls=QuipuCommand, examples=("quipu dump > before.jsonl", "quipu dump | sha256sum"))
def dump() -> None:
    """Print the canonical state as JSON lines.

    Two indexes of the same documents print the same bytes, whatever their history.
    """
    with_engine(_print_lines)


async def _print_lines(engine: "Quipu") -> None:
    is_terminal = sys.stdout.isatty()
    async for line in engine.dump():
        click.echo(clean_json(line) if is_terminal else line)


@click.command(
    "export",
    cls=QuipuCommand,
    examples=("quipu export graph.html", "quipu export people.graphml --type Person", "quipu export g.json"),
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--format", "format_name", type=click.Choice(list(FORMATS)), help="By default, as FILE ends.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only entities of this type; more than once: any.")
@click.option("--community", "communities", multiple=True, metavar="ID", help="Only entities of this community.")
def export(file: Path, format_name: str | None, types: tuple[str, ...], communities: tuple[str, ...]) -> None:
    """Write the graph to a file: a page to look at, GraphML or JSON.

    html is one page that needs no server and loads nothing: the map and a list, with descriptions, relations and
    quotes from the documents. It holds the 10,000 entities with the most relations. graphml is for Gephi, Cytoscape,
    yEd and networkx; json has nodes and edges as networkx and D3 read them.
    """
    name = format_name or {written.suffix: name for name, written in FORMATS.items()}.get(file.suffix.lower())
    if name is None:
        raise InvalidInput(f"The name {file.name!r} says no format.", remedy=f"Add --format: {', '.join(FORMATS)}.")

    if not file.absolute().parent.is_dir():
        raise NotFound(f"There is no folder {str(file.parent)!r}.", remedy="Create it, or name another file.")
    unfinished = file.with_name(f".{file.name}.unfinished")

    async def write(engine: "Quipu") -> int:
        try:
            with replace_atomically(file, unfinished) as opened:
                async for piece in engine.export_graph(name, types=types, communities=communities):
                    opened.write(piece.encode("utf-8", "replace"))
                return opened.tell()
        finally:
            remove_files([unfinished])

    emit({"file": str(file), "format": name, "bytes": with_engine(write)}, _render_export)


def _render_export(console: Console, result: dict[str, object]) -> None:
    console.print(f"{result['file']}: {result['bytes']:,} bytes of {result['format']}.")


@click.command("reembed", cls=QuipuCommand, examples=("quipu reembed",))
@budget_option
def reembed(budget: str | None) -> None:
    """Compute every vector again with the current embedder.

    Searches use the old vectors until the new ones are complete. No chunk is read again. If a budget ends the work,
    finished vectors are kept, and the next call continues.
    """
    settings = load_settings(budget=budget)
    with progress() as on_event:
        n_embedded = with_engine(lambda engine: engine.reembed(on_event=on_event), settings, repair=True)
    emit({"embedded": n_embedded}, _render_reembed)


def _render_reembed(console: Console, result: dict[str, int]) -> None:
    if result["embedded"]:
        console.print(f"{format_count(result['embedded'], 'text')} embedded; searches use the new vectors from now on.")
    else:
        console.print("Every text already has a vector of the current embedder. There was nothing to do.")


@click.command("purge", cls=QuipuCommand, examples=("quipu purge",))
def purge() -> None:
    """Drop cached replies and vectors that nothing needs.

    Cached replies for earlier versions of a document make it free to return to such a version. This command deletes
    them to save space.
    """
    emit({"dropped": with_engine(lambda engine: engine.purge())}, _render_purge)


def _render_purge(console: Console, result: dict[str, int]) -> None:
    console.print(f"{format_count(result['dropped'], 'row')} dropped.")
