"""`quipu strategies`: list the retrieval strategies."""

from collections.abc import Iterator

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit
from quipu.text.formatting import format_count

_FOOT = (
    "What a strategy needs, `quipu refresh NAME` makes. Its calls of a language model are those before the answer, at"
    " most."
)


@click.command("strategies", cls=QuipuCommand, examples=("quipu strategies", 'quipu ask "…" -s naive -s mix'))
def command() -> None:
    """List the retrieval strategies."""
    from quipu.retrieve import STRATEGIES

    rows: list[dict[str, object]] = [
        {
            "name": strategy.name,
            "summary": strategy.summary,
            "after": strategy.after,
            "when": strategy.when,
            "needs": list(strategy.needs),
            "better_with": list(strategy.better_with),
            "n_model_calls": strategy.n_model_calls,
            "model_calls": strategy.model_calls,
            "ranks_passages": strategy.ranks_passages,
        }
        for strategy in STRATEGIES.values()
    ]
    emit(rows, _render)


def _render(console: Console, rows: list[dict[str, object]]) -> None:
    listing = Table.grid(padding=(0, 2))
    listing.add_column(no_wrap=True, style="bold")
    listing.add_column()
    for row in rows:
        text = Text(str(row["summary"]))
        text.append(f"\nwhen: {row['when']}", style="italic")
        text.append(f"\n{' · '.join(_facts(row))}", style="dim")
        listing.add_row(str(row["name"]), text)
    console.print(listing)
    console.print()
    console.print(_FOOT)


def _facts(row: dict[str, object]) -> Iterator[str]:
    """Yield where a strategy comes from, what it needs, and how often it asks a model."""
    yield str(row["after"])
    if needs := _made_on_demand(row["needs"]):
        yield f"needs {', '.join(needs)}"
    if better := _made_on_demand(row["better_with"]):
        yield f"finds more with {', '.join(better)}"
    n, calls = row["n_model_calls"], str(row["model_calls"]).replace("`", "")
    yield (f"calls: {calls}" if calls else format_count(n, "call") if isinstance(n, int) and n else "no call")


def _made_on_demand(needs: object) -> list[str]:
    from quipu.derive.catalog import CATALOG

    names = {derivation.name for derivation in CATALOG}
    return [need for need in needs if need in names] if isinstance(needs, list) else []
