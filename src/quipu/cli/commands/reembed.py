"""`quipu reembed`: compute every vector again with the embedder of the settings."""

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand
from quipu.cli.output import counted, emit
from quipu.cli.progress import progress
from quipu.cli.session import with_engine


@click.command("reembed", cls=QuipuCommand, examples=("quipu reembed",))
def command() -> None:
    """Compute every vector again, beside the old.

    The old vectors answer until the new are complete. Nothing is read again.
    """
    with progress() as on_event:
        n_embedded = with_engine(lambda engine: engine.reembed(on_event=on_event), repair=True)
    emit({"embedded": n_embedded}, _render)


def _render(console: Console, result: dict[str, int]) -> None:
    if result["embedded"]:
        console.print(f"{counted(result['embedded'], 'text')} embedded; the new vectors answer from now on.")
    else:
        console.print("Every text has its vector of the embedder that is set: there was nothing to do.")
