"""What every command shares: options, the look of help pages, the settings, and the engine it opens and closes."""

import gc
import getpass
import shlex
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

import quipu
from quipu.cli.errors import WorkStopped
from quipu.errors import InvalidInput
from quipu.model.document import is_date
from quipu.model.usage import USD
from quipu.model.validity import as_moment
from quipu.text.formatting import format_count

_META = "quipu."
_INDEX_HELP = "Index folder, or postgresql://…; by default QUIPU_INDEX, else ./.quipu."
_SHARED = "Shared options, before or after the command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The values of the shared options, from before or after the command."""

    index: str | None
    as_json: bool


def shared() -> Shared:
    """Return the shared options of the command that is running."""
    meta = click.get_current_context().meta
    return Shared(index=meta.get(_META + "index"), as_json=meta.get(_META + "json", False))


def remember_currency(currency: str) -> None:
    """Remember the currency of the settings of the command that is running, for `current_currency`."""
    click.get_current_context().meta[_META + "currency"] = currency


def current_currency() -> str:
    """Return the currency in which the command that is running prints money."""
    context = click.get_current_context(silent=True)
    return str(context.meta.get(_META + "currency", USD)) if context else USD


class QuipuCommand(click.Command):
    """A command with the shared options, and examples on its help page."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.params += _shared_options()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; every usage error names the command, so that its help can be pointed to."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then the shared ones."""
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, unwrapped."""
        _write_examples(self.examples, formatter)


class QuipuGroup(click.Group):
    """A group with the shared options, and examples on its help page."""

    command_class = QuipuCommand

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.params += _shared_options()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of that name; a usage error names the closest if there is none."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            near = get_close_matches(args[0], known, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}."
            raise click.UsageError(f"There is no command {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the shared options."""
        self.format_commands(ctx, formatter)
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, unwrapped."""
        _write_examples(self.examples, formatter)


def _shared_options() -> list[click.Parameter]:
    return [
        _SharedOption(["--index"], metavar="DIR", help=_INDEX_HELP),
        _SharedOption(["--json"], is_flag=True, default=None, help="Print JSON for programs."),
        _SharedOption(
            ["-v", "--verbose"], is_flag=True, default=None, help="Show what is logged, and the traceback of an error."
        ),
        _SharedOption(["--version"], is_flag=True, is_eager=True, callback=_print_version, help="Print the version."),
    ]


class SectionOption(click.Option):
    """An option under a heading of its own on the help page."""

    def __init__(self, names: list[str], *, section: str, **kwargs: Any) -> None:
        super().__init__(names, **kwargs)
        self.section = section


class _SharedOption(SectionOption):
    """A shared option. If it stands before and after the command, the value after the command is used."""

    def __init__(self, names: list[str], *, callback: Callable[..., None] | None = None, **kwargs: Any) -> None:
        super().__init__(names, section=_SHARED, expose_value=False, callback=callback or _remember, **kwargs)


def _remember(ctx: click.Context, parameter: click.Parameter, value: str | bool | None) -> None:
    if value is not None and parameter.name is not None:
        ctx.meta[_META + parameter.name] = value


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"quipu {quipu.__version__}")
        ctx.exit()


def _write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the options under the headings of their sections, the shared ones last."""
    help_option = command.get_help_option(ctx)
    sections: dict[str, list[tuple[str, str]]] = {"Options": []}
    for parameter in command.get_params(ctx):
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
            own = _SHARED if parameter is help_option else "Options"
            section = parameter.section if isinstance(parameter, SectionOption) else own
            sections.setdefault(section, []).append(record)
    for title in sorted(sections, key=lambda title: title == _SHARED):
        if sections[title]:
            with formatter.section(title):
                formatter.write_dl(sections[title])


def _write_examples(examples: tuple[str, ...], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


budget_option = click.option(
    "--budget",
    metavar="AMOUNT",
    help="Spending limit for models: money in the setting currency, tokens or calls, as in 5.00, "
    '"2M tokens" or "300 calls".',
)

no_model_option = click.option(
    "--no-model", "has_no_model", is_flag=True, help="Use no language model, even if one is set."
)


def parse_date(text: str) -> str:
    """Return a date unchanged if it is one of the calendar in ISO 8601: a year, a month (1907-05), a day or a time."""
    if text and not is_date(text):
        raise click.UsageError(f"{text!r} is not a date: write 1907, 1907-05 or 1907-05-31.")
    return text


def as_of_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--as-of` to a command that shows what an index holds."""
    help_text = "As of this date: what held at the end of that year, month or day."
    return click.option("--as-of", default="", metavar="DATE", callback=_parse_as_of, help=help_text)(function)


def _parse_as_of(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    try:
        return as_moment(text) if text else ""
    except InvalidInput as error:
        raise click.UsageError(f"{error.message} {error.remedy}") from error


if TYPE_CHECKING:
    from quipu.engine import Quipu
    from quipu.model.results import IndexStatus
    from quipu.settings import Settings, SettingValue

Result = TypeVar("Result")


class Opener(Protocol):
    """Opens an index, as `quipu.wiring.open_engine` does."""

    def __call__(self, settings: "Settings", *, create: bool, repair: bool) -> Awaitable["Quipu"]:
        """Return the engine; `create` makes an index where there is none, `repair` opens one that does not match."""


def load_settings(*, has_no_model: bool = False, **arguments: "SettingValue") -> "Settings":
    """Return the settings in force for this command line: its options over the environment over quipu.toml."""
    from quipu.settings import Settings

    settings = Settings(index=shared().index, **arguments)
    remember_currency(settings.currency)
    return settings.without_models() if has_no_model else settings


def index_folder(command: str) -> Path:
    """Return the folder of the index. Raises InvalidInput for an index in a database, which `command` cannot serve."""
    settings = load_settings()
    if settings.folder is None:
        raise InvalidInput(
            f"{command} works on indexes in folders, and {settings.index} is in a database.",
            remedy="Open it in Python: `async with quipu.open(ADDRESS)`, or copy it: quipu copy ADDRESS FOLDER",
        )
    return settings.folder


def command_line(*words: str) -> str:
    """Return the `quipu` command a user can type for the index in use."""
    index = shared().index
    return shlex.join(["quipu", *(["--index", index] if index else []), *words])


def split_names(texts: Iterable[str]) -> list[str]:
    """Return the names in texts such as "weave,mix"."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def user_name() -> str:
    """Return the name of the user of this computer, "" if there is none, as in a container."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def with_engine(
    work: Callable[["Quipu"], Awaitable[Result]],
    settings: "Settings | None" = None,
    *,
    create: bool = False,
    repair: bool = False,
) -> Result:
    """Open the index, run `work` with the engine, and close it. Raises Stopped on Ctrl-C, NotFound if there is no
    index.

    Only a command that adds may `create` an index: a question to a mistyped path must not leave an empty one.
    """
    import asyncio  # help pages need no event loop

    opener = _opener()
    if not gc.isenabled():  # see cli.app.main; what stands now stays to the end
        gc.freeze()
        gc.enable()
    opening = opener(settings or load_settings(), create=create, repair=repair)
    return asyncio.run(_work(work, opening))


async def _work(work: Callable[["Quipu"], Awaitable[Result]], opening: Awaitable["Quipu"]) -> Result:
    from asyncio import CancelledError

    engine = await opening
    try:
        return await work(engine)
    except CancelledError:
        raise await _stopped(engine) from None
    finally:
        await engine.close()


def _opener() -> Opener:
    injected: Opener | None = click.get_current_context().find_root().obj
    if injected is not None:
        return injected
    from quipu.wiring import open_engine

    return open_engine


async def _stopped(engine: "Quipu") -> WorkStopped:
    """Print what is saved, and how to continue."""
    status = await engine.status()
    n_waiting = waiting(status)
    message = f"Stopped. {format_count(status.n_documents, 'document')} in the index, {n_waiting:,} waiting."
    if n_waiting:
        return WorkStopped(message, remedy=f"Continue with `{command_line('resume')}`.")
    if status.stale:
        return WorkStopped(message, remedy=f"Finished results are saved. Continue with `{command_line('refresh')}`.")
    return WorkStopped(message, remedy="Nothing is lost.")


def waiting(status: "IndexStatus") -> int:
    """Return how many documents wait or are being worked on."""
    return sum(n for name, n in status.jobs if name not in ("failed", "partial"))
