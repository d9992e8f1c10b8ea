"""`quipu docs`: the documents of the index."""

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit, named, styled, table
from quipu.cli.session import with_engine
from quipu.model.document import Document, DocumentStatus
from quipu.text.formatting import format_count

_STYLE_BY_STATUS = {DocumentStatus.READY: "green", DocumentStatus.FAILED: "red", DocumentStatus.PARTIAL: "yellow"}


@click.command("docs", cls=QuipuCommand, examples=("quipu docs", "quipu docs --status failed"))
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice([str(status) for status in DocumentStatus]),
    help="Only these.",
)
def command(statuses: tuple[str, ...]) -> None:
    """List the documents of the index."""
    documents = with_engine(lambda engine: engine.documents())
    emit([document for document in documents if not statuses or document.status in statuses], _render)


def _render(console: Console, documents: list[Document]) -> None:
    listing = table("id", "title", "status", "chunks", "updated", right=["chunks"])
    for document in documents:
        listing.add_row(
            named(document.id),
            named(document.title),
            styled(document.status, _STYLE_BY_STATUS.get(document.status, "cyan")),
            f"{document.n_chunks:,}",
            styled(document.updated_at[:19].replace("T", " ")),
        )
    if documents:
        console.print(listing)
    console.print(format_count(len(documents), "document"))
    for document in documents:
        if document.error:
            name = "" if document.id in document.error else f"{document.id}: "
            console.print(named(f"{name}{document.error}", "red"))
