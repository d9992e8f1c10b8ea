"""`quipu refresh`: bring every derivation up to date, or build again what is derived from the chunks."""

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand
from quipu.cli.output import counted, emit
from quipu.cli.progress import progress
from quipu.cli.session import with_engine


@click.command("refresh", cls=QuipuCommand, examples=("quipu refresh", "quipu refresh --rebuild"))
@click.option("--rebuild", "is_rebuild", is_flag=True, help="Build full text and links again first.")
def command(is_rebuild: bool) -> None:
    """Bring every derivation up to date.

    Every command that changes documents does this at its end; only a killed process leaves something to refresh.
    """
    with progress() as on_event:
        n_embedded = with_engine(
            lambda engine: engine.rebuild(on_event) if is_rebuild else engine.refresh(on_event), repair=is_rebuild
        )
    emit({"embedded": n_embedded}, _render)


def _render(console: Console, result: dict[str, int]) -> None:
    console.print(f"Up to date; {counted(result['embedded'], 'text')} embedded.")
