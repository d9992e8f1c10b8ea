"""`quipu show entities`, `relations`, `neighbours`, `subgraph` and `path`: parts of the graph."""

from collections.abc import Callable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from quipu.cli.options import QuipuCommand, as_of_option, with_engine
from quipu.cli.output import emit, one_line, styled, table
from quipu.model.graph import Entity, Relation
from quipu.model.results import MAX_EDGES, MAX_HOPS, MAX_NODES, MAX_PAGE, MAX_PATHS, EntityPath, NeighbourPage, Subgraph
from quipu.text.formatting import format_count

Command = Callable[..., object]

_EXCERPT_CELLS = 200


def _type_option(meaning: str) -> Callable[[Command], Command]:
    return click.option("--type", "types", multiple=True, metavar="TYPE", help=meaning)


def _size_option(flag: str, name: str, default: int, largest: int, meaning: str) -> Callable[[Command], Command]:
    return click.option(flag, name, type=click.IntRange(1, largest), default=default, show_default=True, help=meaning)


def _page_options(command: Command) -> Command:
    for decorate in (
        as_of_option,
        click.option("--after", default="", metavar="CURSOR", help="Continue after a page, at the cursor it printed."),
        click.option(
            "-k", "k", type=click.IntRange(1, MAX_PAGE), default=20, show_default=True, help="Length of a page."
        ),
    ):
        command = decorate(command)
    return command


@click.command(
    "entities", cls=QuipuCommand, examples=("quipu show entities", "quipu show entities --prefix bi --type Person")
)
@click.option("--prefix", default="", help="Only entities whose name begins with this, in any letter case.")
@_type_option("Only entities of this type; may be repeated.")
@_page_options
def entities(prefix: str, types: tuple[str, ...], **paging: Any) -> None:
    """List entities, those with the most relations first."""
    page = with_engine(lambda engine: engine.entities(prefix=prefix, types=types, **paging))
    emit(page, lambda console, page: _print_page(console, _entity_table(page.entities), page.n_total, page.cursor))


@click.command("relations", cls=QuipuCommand, examples=("quipu show relations", "quipu show relations --type Person"))
@_type_option("Only relations whose entities both have one of these types; may be repeated.")
@_page_options
def relations(types: tuple[str, ...], **paging: Any) -> None:
    """List relations, the largest weight first."""
    page = with_engine(lambda engine: engine.relations(types=types, **paging))
    emit(page, lambda console, page: _print_page(console, _relation_table(page.relations), page.n_total, page.cursor))


@click.command("neighbours", cls=QuipuCommand, examples=('quipu show neighbours "Alice Kober"',))
@click.argument("name")
@_type_option("Only neighbours of this type; may be repeated.")
@_page_options
def neighbours(name: str, types: tuple[str, ...], **paging: Any) -> None:
    """List the neighbours of an entity, those with the heaviest relation first."""
    emit(with_engine(lambda engine: engine.neighbours(name, types=types, **paging)), _render_neighbours)


@click.command("subgraph", cls=QuipuCommand, examples=('quipu show subgraph "Alice Kober" --hops 1 --json',))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@_size_option("--hops", "hops", 2, MAX_HOPS, "Maximum distance in relations.")
@_size_option("--entities", "max_entities", 200, MAX_NODES, "Maximum number of entities.")
@_size_option("--relations", "max_relations", 1_000, MAX_EDGES, "Maximum number of relations.")
@as_of_option
def subgraph(names: tuple[str, ...], **limits: Any) -> None:
    """Show the entities near some entities, and the relations between them."""
    emit(with_engine(lambda engine: engine.subgraph(names, **limits)), _render_subgraph)


@click.command("path", cls=QuipuCommand, examples=('quipu show path "Alice Kober" "Michael Ventris"',))
@click.argument("first")
@click.argument("second")
@click.option(
    "-k", "k", type=click.IntRange(1, MAX_PATHS), default=3, show_default=True, help="Maximum number of paths."
)
@as_of_option
def path(first: str, second: str, k: int, as_of: str) -> None:
    """Show the shortest paths between two entities."""
    emit(with_engine(lambda engine: engine.paths(first, second, k=k, as_of=as_of)), _render_paths)


def _render_neighbours(console: Console, page: NeighbourPage) -> None:
    console.print(styled(f"{page.entity.name} ({page.entity.type})", "bold"))
    listing = table("neighbour", "type", "weight", "keywords", "description", right=["weight"])
    for relation, neighbour in page.neighbours:
        listing.add_row(styled(neighbour.name), styled(neighbour.type), *_relation_cells(relation))
    _print_page(console, listing, page.n_total, page.cursor)


def _render_subgraph(console: Console, subgraph: Subgraph) -> None:
    console.print(_entity_table(subgraph.entities, subgraph.distances))
    if subgraph.n_more_entities:
        console.print(f"… and at least {format_count(subgraph.n_more_entities, 'entity')} more.", style="dim")
    console.print(_relation_table(subgraph.relations))
    if subgraph.n_more_relations:
        console.print(f"… and {format_count(subgraph.n_more_relations, 'relation')} more.", style="dim")


def _render_paths(console: Console, paths: Sequence[EntityPath]) -> None:
    for path in paths:
        names = [entity.name for entity in path.entities]
        console.print(styled(" – ".join(names), "bold"))
        for relation in path.relations:
            ends = f"  {relation.source_name} – {relation.target_name}: "
            console.print(styled(ends + one_line(relation.description, _EXCERPT_CELLS)))
    if not paths:
        console.print("No path connects them.")


def _entity_table(entities: Sequence[Entity], distances: Sequence[int] = ()) -> Table:
    distance = ["distance"] if distances else []
    listing = table("entity", "type", "relations", *distance, "description", right=["relations", *distance])
    for n, entity in enumerate(entities):
        description = styled(one_line(entity.description, _EXCERPT_CELLS))
        counts = (f"{entity.degree:,}", *map(str, distances[n : n + 1]))
        listing.add_row(styled(entity.name), styled(entity.type), *counts, description)
    return listing


def _relation_table(relations: Sequence[Relation]) -> Table:
    listing = table("source", "target", "weight", "keywords", "description", right=["weight"])
    for relation in relations:
        listing.add_row(styled(relation.source_name), styled(relation.target_name), *_relation_cells(relation))
    return listing


def _relation_cells(relation: Relation) -> tuple[str | Text, ...]:
    """Return weight, keywords and description of a relation."""
    description = one_line(relation.description, _EXCERPT_CELLS)
    return f"{relation.weight:g}", styled(", ".join(relation.keywords)), styled(description)


def _print_page(console: Console, listing: Table, n_total: int, cursor: str) -> None:
    console.print(listing)
    console.print(f"{listing.row_count:,} of {n_total:,}", style="dim")
    if cursor:
        console.print(styled(f"--after '{cursor}' continues."), soft_wrap=True)


GRAPH_COMMANDS = (entities, relations, neighbours, subgraph, path)
