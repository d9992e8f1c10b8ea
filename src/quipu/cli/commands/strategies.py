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
            "better_with": list(strategy.better_with),
            "n_model_calls": strategy.n_model_calls,
            "model_calls": strategy.model_calls,
            "ranks_passages": strategy.ranks_passages,
        }
        for strategy in STRATEGIES.values()
    ]
    emit(rows, _render)


def _render(console: Console, rows: list[dict[str, object]]) -> None:
    listing = table("name", "what it does", "after", "needs", "calls", "when to choose it", right=["calls"])
    for row in rows:
        name, summary, after, when = (str(row[key]) for key in ("name", "summary", "after", "when"))
        needs = ", ".join(
            [*_made_on_demand(row["needs"]), *(f"({each})" for each in _made_on_demand(row["better_with"]))]
        )
        listing.add_row(name, summary, after, needs, _calls(row), when)
    console.print(listing)
    console.print("needs: what `quipu refresh NAME` makes; with what stands in brackets it finds more.")
    console.print("calls: of a language model, at most, before the answer.")


def _calls(row: dict[str, object]) -> str:
    return str(row["model_calls"] or row["n_model_calls"]).replace("`", "")


def _made_on_demand(needs: object) -> list[str]:
    from quipu.derive.catalog import CATALOG

    names = {each.name for each in CATALOG}
    return [need for need in needs if need in names] if isinstance(needs, list) else []
