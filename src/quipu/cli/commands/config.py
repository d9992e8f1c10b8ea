"""`quipu config`: each setting in force, and where it came from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from quipu.cli.options import QuipuCommand
from quipu.cli.output import emit, styled, table, work_in_words
from quipu.cli.session import load_settings
from quipu.errors import QuipuError

if TYPE_CHECKING:
    from quipu.settings import EffectiveSetting, Settings
    from quipu.wiring.inventory import NamedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Config:
    """Every setting, and the models they name."""

    settings: "tuple[EffectiveSetting, ...]"
    models: "tuple[NamedModel, ...]"


@click.command("config", cls=QuipuCommand, examples=("quipu config", "QUIPU_TOP_K=20 quipu config"))
def command() -> None:
    """Show each setting and where it came from.

    Arguments win over the environment (QUIPU_TOP_K), that over quipu.toml, that over the defaults. Of each model it
    tells what it is for and where its key was found; a key is never shown.
    """
    from quipu.settings import effective

    settings = load_settings()
    models, problem = _models(settings)
    emit(_Config(settings=tuple(map(_as_shown, effective(settings))), models=models), _render)
    if problem:
        raise problem


def _as_shown(each: "EffectiveSetting") -> "EffectiveSetting":
    value = "auto" if each.value is None and "auto" in each.allowed else each.value
    return replace(each, value=value, origin=f"argument --{each.name}" if each.origin == "argument" else each.origin)


def _models(settings: "Settings") -> "tuple[tuple[NamedModel, ...], QuipuError | None]":
    """Return the models the settings name, or none and why they cannot be used as they stand."""
    if not settings.names_model and settings.embedder != "openai":
        return (), None
    from quipu.wiring.inventory import take_inventory

    try:
        return take_inventory(settings).models(), None
    except QuipuError as error:
        return (), error


def _render(console: Console, shown: _Config) -> None:
    listing = table("setting", "value", "from", "what it is")
    for each in shown.settings:
        value = "" if each.value is None else str(each.value)
        style = "" if each.origin == "default" else "bold"
        listing.add_row(styled(each.name, style), styled(value, style), styled(each.origin), each.description)
    console.print(listing)
    if shown.models:
        console.print(_models_table(shown.models))


def _models_table(models: Sequence["NamedModel"]) -> Table:
    listing = table(
        "work", "model", "at", "key", "calls at a time", "price of a million tokens", right=["calls at a time"]
    )
    for each in models:
        key = styled("missing", "red") if each.needs_key else styled(each.key or "none")
        price = f"{each.price.input:g} in, {each.price.output:g} out" if each.price else "not known"
        listing.add_row(
            work_in_words(each.work), styled(each.name), styled(each.host), key, f"{each.concurrency:,}", styled(price)
        )
    return listing
