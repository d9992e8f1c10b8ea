"""`quipu dump`: the canonical state, as sorted JSON lines."""

import sys
from typing import TYPE_CHECKING

import click

from quipu.cli.options import QuipuCommand
from quipu.cli.session import with_engine
from quipu.cli.terminal import clean_json

if TYPE_CHECKING:
    from quipu.engine import Quipu


@click.command("dump", cls=QuipuCommand, examples=("quipu dump > before.jsonl", "quipu dump | sha256sum"))
def command() -> None:
    """Print the canonical state as JSON lines.

    Two indexes of the same documents print the same bytes, however and in whatever order they were made.
    """
    with_engine(_print_lines)


async def _print_lines(engine: "Quipu") -> None:
    is_terminal = sys.stdout.isatty()
    async for line in engine.dump():
        click.echo(clean_json(line) if is_terminal else line)
