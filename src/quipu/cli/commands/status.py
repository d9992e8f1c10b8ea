"""Contents of an index: `quipu status` and `quipu docs`."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from quipu.cli.asking import parse_condition
from quipu.cli.document_ids import ids_of_paths
from quipu.cli.options import QuipuCommand, as_of_option, command_line, with_engine
from quipu.cli.output import emit, named, print_table, styled, table, work_in_words
from quipu.cli.results import extractor_history, render_states
from quipu.model.document import Document, DocumentListing, DocumentOrder, DocumentStatus
from quipu.model.query import Filter
from quipu.model.results import IndexStatus
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.engine import Quipu


@click.command("status", cls=QuipuCommand, examples=("quipu status", "quipu --index ./kb status --json"))
def status() -> None:
    """Show what the index contains, what is queued and what is stale.

    The table lists the derivations: those every index has, and those that `quipu refresh NAME` computes on demand.
    """
    emit(with_engine(lambda engine: engine.status()), _render_status)


def _render_status(console: Console, status: IndexStatus) -> None:
    console.print(styled(f"Index {status.path}, revision {status.revision:,}, {status.n_bytes / 1e6:,.1f} MB", "bold"))
    console.print(f"  {format_count(status.n_documents, 'document')} in {format_count(status.n_chunks, 'chunk')}")
    console.print(
        f"  {format_count(status.n_entities, 'entity')} and {format_count(status.n_relations, 'relation')}"
        f" from {format_count(status.n_mentions, 'mention')} and {format_count(status.n_links, 'link')}"
    )
    console.print(f"  {format_count(status.n_vectors, 'vector')} of {status.dimension} numbers by {status.embedder}")
    if status.other_embedder:
        remedy = f"`{command_line('reembed')}` computes the vectors again; until then, only full-text search works"
        console.print(styled(f"  the current embedder is another one, {status.other_embedder}: {remedy}", "yellow"))
    console.print(styled(f"  {extractor_history(status.extractors, status.extractor)}"))
    console.print(f"  {format_count(status.n_replies, 'reply')} kept; schema {status.schema}")
    for models in _models(status):
        console.print(styled(f"  {models}"))
    n_failed = dict(status.jobs).get(DocumentStatus.FAILED, 0)
    if n_failed:
        console.print(
            f"  {format_count(n_failed, 'document')} failed: `{command_line('docs', '--status', 'failed')}`",
            style="red",
        )
    for stale in status.stale:
        console.print(styled(f"  {stale}", "yellow"))
    if status.derivations:
        console.print()
        render_states(console, status.derivations)


def _models(status: IndexStatus) -> Iterator[str]:
    """Yield each language model with the work it does."""
    roles_by_model: dict[str, list[str]] = {}
    for role, model in status.models:
        roles_by_model.setdefault(model, []).append(role)
    for model, roles in roles_by_model.items():
        yield f"language model {model} for {work_in_words(roles)}"


_STYLE_BY_STATUS = {DocumentStatus.READY: "green", DocumentStatus.FAILED: "red", DocumentStatus.PARTIAL: "yellow"}


@click.command(
    "docs",
    cls=QuipuCommand,
    examples=(
        "quipu docs",
        "quipu docs letters/",
        "quipu docs --status failed",
        "quipu docs --prefix letters/ --order updated -k 20",
    ),
)
@click.argument("path", default="")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice([str(status) for status in DocumentStatus]),
    help="Only documents with this status.",
)
@click.option("--prefix", default="", help="Only documents whose id, title or source begins with this.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="COND",
    help='Condition on metadata, as in "year >= 1500"; queued documents are left out.',
)
@click.option(
    "--order",
    type=click.Choice([str(order) for order in DocumentOrder]),
    default=str(DocumentOrder.ID),
    show_default=True,
    help="Order by id, by title, or the last updated first.",
)
@click.option("-k", "k", type=click.IntRange(min=1), help="Length of a page; all documents by default.")
@click.option("--after", default="", metavar="CURSOR", help="Continue after a page, at the cursor it printed.")
@as_of_option
def docs(
    *, path: str, conditions: tuple[str, ...], statuses: tuple[str, ...], order: str, as_of: str, **page: Any
) -> None:
    """List the documents of the index.

    With PATH, only those of that file or folder, seen from the current folder, or with ids that begin with PATH.
    """
    if path and page["prefix"]:
        raise click.UsageError("Give a path or --prefix.")
    listing = DocumentListing(statuses=tuple(map(DocumentStatus, statuses)), order=DocumentOrder(order), **page)
    allowed = Filter(where=tuple(map(parse_condition, conditions)), as_of=as_of)
    documents = with_engine(lambda engine: _list_documents(engine, path, listing, allowed))
    emit(documents, lambda console, documents: _render_docs(console, documents, listing))


async def _list_documents(engine: "Quipu", path: str, listing: DocumentListing, allowed: Filter) -> list[Document]:
    """Return a listing, with a path that of the documents there, else of those whose ids begin with it."""
    for prefix in (_prefix_of(path), path) if path else ():
        if documents := await engine.documents(replace(listing, prefix=prefix), allowed):
            return documents
    return [] if path else await engine.documents(listing, allowed)


def _prefix_of(path: str) -> str:
    """Return how the ids of documents at a path begin; that of a folder ends with a slash, so that others do not."""
    (name,) = ids_of_paths([path])
    is_folder = path.endswith("/") or Path(path).is_dir()
    return "" if name == "." else f"{name}/" if is_folder else name


def _render_docs(console: Console, documents: list[Document], listing: DocumentListing) -> None:
    rows = table("id", "title", "status", "chunks", "updated", right=["chunks"], ids=["id"])
    for document in documents:
        rows.add_row(
            named(document.id),
            named(document.title),
            styled(document.status, _STYLE_BY_STATUS.get(document.status, "cyan")),
            f"{document.n_chunks:,}",
            styled(document.updated_at[:19].replace("T", " ")),
        )
    if documents:
        print_table(console, rows)
    console.print(format_count(len(documents), "document"))
    for document in documents:
        if document.error:
            name = "" if document.id in document.error else f"{document.id}: "
            console.print(named(f"{name}{document.error}", "red"))
        if document.warning:
            console.print(named(f"{document.id}: {document.warning}", "yellow"))
    if documents and len(documents) == listing.k:
        console.print(styled(f"--after '{listing.cursor(documents[-1])}' continues."), soft_wrap=True)
