"""`quipu cancel`: drop waiting work."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit
from quipu.cli.session import with_engine
from quipu.model.document import DocumentStatus
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.engine import Quipu

_SETTLED = (DocumentStatus.READY, DocumentStatus.PARTIAL)


@click.command("cancel", cls=QuipuCommand, examples=("quipu cancel notes/a.md", "quipu cancel --all"))
@click.argument("ids", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Every document that waits or failed.")
def command(ids: tuple[str, ...], is_all: bool) -> None:
    """Drop waiting work; live documents stay."""
    if bool(ids) == is_all:
        raise click.UsageError("Name documents, or say --all.")
    emit({"cancelled": with_engine(lambda engine: _cancel(engine, ids))}, _render)


async def _cancel(engine: "Quipu", ids: Sequence[str]) -> int:
    chosen = ids or [each.id for each in await engine.documents() if each.status not in _SETTLED]
    return await engine.cancel(chosen)


def _render(console: Console, result: dict[str, int]) -> None:
    console.print(f"Work on {format_count(result['cancelled'], 'document')} dropped.")
