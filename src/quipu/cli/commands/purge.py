"""`quipu purge`: drop what nothing needs any more."""

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit
from quipu.cli.session import with_engine
from quipu.text.formatting import format_count


@click.command("purge", cls=QuipuCommand, examples=("quipu purge",))
def command() -> None:
    """Drop replies nothing needs, and what a re-embedding left.

    The replies to earlier versions of documents make going back to them free; this gives their space up.
    """
    emit({"dropped": with_engine(lambda engine: engine.purge())}, _render)


def _render(console: Console, result: dict[str, int]) -> None:
    console.print(f"{format_count(result['dropped'], 'row')} dropped.")
