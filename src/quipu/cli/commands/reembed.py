"""`quipu reembed`: compute every vector again with the embedder of the settings."""

import click
from rich.console import Console

from quipu.cli.budget import budget_option
from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit
from quipu.cli.progress import progress
from quipu.cli.session import load_settings, with_engine
from quipu.text.formatting import format_count


@click.command("reembed", cls=QuipuCommand, examples=("quipu reembed",))
@budget_option
def command(budget: str | None) -> None:
    """Compute every vector again, beside the old.

    The old vectors answer until the new are complete. Nothing is read again. What was computed when a budget ends the
    work is kept, and the next time goes on.
    """
    settings = load_settings(budget=budget)
    with progress() as on_event:
        n_embedded = with_engine(lambda engine: engine.reembed(on_event=on_event), settings, repair=True)
    emit({"embedded": n_embedded}, _render)


def _render(console: Console, result: dict[str, int]) -> None:
    if result["embedded"]:
        console.print(f"{format_count(result['embedded'], 'text')} embedded; the new vectors answer from now on.")
    else:
        console.print("Every text has its vector of the embedder that is set: there was nothing to do.")
