"""`quipu config`: each setting in force, and where it came from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from quipu.cli.options import QuipuCommand, load_settings
from quipu.cli.output import emit, in_currency, styled, table, work_in_words
from quipu.errors import QuipuError

if TYPE_CHECKING:
    from quipu.settings import EffectiveSetting, Settings
    from quipu.wiring.inventory import NamedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Config:
    """Every setting, and the models they name."""

    settings: "tuple[EffectiveSetting, ...]"
    models: "tuple[NamedModel, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _DefaultPrompt:
    """The default instructions of a prompt."""

    prompt: str
    text: str
    placeholders: tuple[str, ...]


@click.command(
    "config",
    cls=QuipuCommand,
    examples=("quipu config", "QUIPU_TOP_K=20 quipu config", "quipu config --prompt answer > answer.txt"),
)
@click.option("--prompt", metavar="NAME", help="Print the default instructions of a prompt: docs/reference/prompts.md.")
def command(prompt: str | None) -> None:
    """Show each setting and its origin.

    Arguments override environment variables (QUIPU_TOP_K), which override quipu.toml, which overrides the defaults. For
    each model it shows its roles and the origin of its key, but never the key.
    """
    from quipu.settings import effective

    if prompt:
        emit(_default_prompt(prompt), lambda _console, default: click.echo(default.text))
        return
    settings = load_settings()
    models, problem = _models(settings)
    emit(_Config(settings=tuple(map(_for_display, effective(settings))), models=models), _render)
    if problem:
        raise problem


def _default_prompt(name: str) -> _DefaultPrompt:
    from quipu.prompts.catalog import PROMPTS

    if name not in PROMPTS:
        raise click.UsageError(f"There is no prompt {name!r}. There are: {', '.join(PROMPTS)}.")
    instructions = PROMPTS[name]
    return _DefaultPrompt(prompt=name, text=instructions.text, placeholders=instructions.placeholders)


def _for_display(setting: "EffectiveSetting") -> "EffectiveSetting":
    value = "auto" if setting.value is None and "auto" in setting.allowed else setting.value
    origin = f"argument --{setting.name}" if setting.origin == "argument" else setting.origin
    description = f"{setting.group}: {setting.description}" if setting.group else setting.description
    return replace(setting, value=value, origin=origin, description=description)


def _models(settings: "Settings") -> "tuple[tuple[NamedModel, ...], QuipuError | None]":
    """Return the models that the settings name, or no models and the error if these settings cannot be used."""
    if not settings.names_model and settings.embedder != "openai":
        return (), None
    from quipu.wiring.inventory import take_inventory

    try:
        return take_inventory(settings).models(), None
    except QuipuError as error:
        return (), error


def _render(console: Console, config: _Config) -> None:
    listing = table("setting", "value", "from", "what it is")
    for setting in config.settings:
        value = "" if setting.value is None else str(setting.value)
        style = "" if setting.origin == "default" else "bold"
        listing.add_row(styled(setting.name, style), styled(value, style), styled(setting.origin), setting.description)
    console.print(listing)
    if config.models:
        console.print(_models_table(config.models))


def _models_table(models: Sequence["NamedModel"]) -> Table:
    listing = table(
        "work",
        "model",
        "at",
        "key",
        "calls at a time",
        in_currency("price of a million tokens"),
        right=["calls at a time"],
    )
    for model in models:
        key = styled("missing", "red") if model.needs_key else styled(model.key or "none")
        price = f"{model.price.input:g} in, {model.price.output:g} out" if model.price else "not known"
        listing.add_row(
            work_in_words(model.work),
            styled(model.name),
            styled(model.host),
            key,
            f"{model.concurrency:,}",
            styled(price),
        )
    return listing
