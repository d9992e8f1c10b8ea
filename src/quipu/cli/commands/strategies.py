"""`quipu strategies`: the ways to retrieve."""

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit, table


@click.command("strategies", cls=QuipuCommand, examples=("quipu strategies", 'quipu ask "…" -s naive -s mix'))
def command() -> None:
    """List the ways to retrieve."""
    from quipu.retrieve import STRATEGIES

    rows: list[dict[str, object]] = [
        {
            "name": strategy.name,
            "summary": strategy.summary,
            "after": strategy.after,
            "when": strategy.when,
            "needs": list(strategy.needs),
            "n_model_calls": strategy.n_model_calls,
            "ranks_passages": strategy.ranks_passages,
        }
        for strategy in STRATEGIES.values()
    ]
    emit(rows, _render)


def _render(console: Console, rows: list[dict[str, object]]) -> None:
    listing = table("name", "what it does", "after", "when to choose it", "model calls", right=["model calls"])
    for row in rows:
        listing.add_row(*(str(row[name]) for name in ("name", "summary", "after", "when", "n_model_calls")))
    console.print(listing)
