"""`quipu config`: each setting in force, and where it came from."""

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit, styled, table
from quipu.cli.session import load_settings


@click.command("config", cls=QuipuCommand, examples=("quipu config", "QUIPU_TOP_K=20 quipu config"))
def command() -> None:
    """Show each setting and where it came from.

    Arguments win over the environment (QUIPU_TOP_K), that over quipu.toml, that over the defaults.
    """
    from quipu.settings import effective

    rows: list[dict[str, object]] = [
        {
            "name": each.name,
            "value": "auto" if each.value is None and "auto" in each.allowed else each.value,
            "origin": f"argument --{each.name}" if each.origin == "argument" else each.origin,
            "allowed": each.allowed,
            "description": each.description,
        }
        for each in effective(load_settings())
    ]
    emit(rows, _render)


def _render(console: Console, rows: list[dict[str, object]]) -> None:
    listing = table("setting", "value", "from", "what it is")
    for row in rows:
        value = "" if row["value"] is None else str(row["value"])
        style = "" if row["origin"] == "default" else "bold"
        listing.add_row(
            styled(str(row["name"]), style), styled(value, style), styled(str(row["origin"])), str(row["description"])
        )
    console.print(listing)
