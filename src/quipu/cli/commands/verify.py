"""`quipu verify`: recompute every derivation from the facts, and compare."""

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit, styled
from quipu.cli.session import with_engine
from quipu.text.formatting import format_count


@click.command("verify", cls=QuipuCommand, examples=("quipu verify", "quipu verify --json"))
def command() -> int:
    """Recompute every derivation and compare.

    No model is called. The exit code is 1 if anything differs.
    """
    differences = with_engine(lambda engine: engine.verify())
    emit(differences, _render)
    return 1 if differences else 0


def _render(console: Console, differences: list[str]) -> None:
    for difference in differences:
        console.print(styled(difference, "red"))
    if differences:
        console.print(
            f"{format_count(len(differences), 'difference')}. "
            f"`quipu refresh --rebuild` builds full text and links again."
        )
    else:
        console.print("Sound: every derivation is what the facts say.", style="green")
