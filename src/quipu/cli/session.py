"""Sessions: a command opens the engine, works and closes it; Ctrl-C prints what was saved."""

import asyncio
import gc
import shlex
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from quipu.cli.errors import WorkStopped
from quipu.cli.options import remember_currency, shared
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.engine import Quipu
    from quipu.model.results import IndexStatus
    from quipu.settings import Settings, SettingValue

Result = TypeVar("Result")


class Opener(Protocol):
    """Opens an index, as `quipu.wiring.open_engine` does."""

    def __call__(self, settings: "Settings", *, create: bool, repair: bool) -> Awaitable["Quipu"]:
        """Return the engine; `create` makes an index where there is none, `repair` opens one that does not match."""
        ...


def load_settings(*, has_no_model: bool = False, **arguments: "SettingValue") -> "Settings":
    """Return the settings in force for this command line: its options over the environment over quipu.toml."""
    from quipu.settings import Settings

    settings = Settings(index=shared().index, **arguments)
    remember_currency(settings.currency)
    return settings.without_models() if has_no_model else settings


def command_line(*words: str) -> str:
    """Return the `quipu` command a user can type for the index in use."""
    index = shared().index
    return shlex.join(["quipu", *(["--index", index] if index else []), *words])


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
    opener = _opener()
    if not gc.isenabled():  # see cli.app.main; what stands now stays to the end
        gc.freeze()
        gc.enable()
    opening = opener(settings or load_settings(), create=create, repair=repair)
    return asyncio.run(_work(work, opening))


async def _work(work: Callable[["Quipu"], Awaitable[Result]], opening: Awaitable["Quipu"]) -> Result:
    engine = await opening
    try:
        return await work(engine)
    except asyncio.CancelledError:
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
