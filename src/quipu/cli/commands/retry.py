"""`quipu retry`: try failed documents again."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from quipu.cli.added import finish_queue
from quipu.cli.budget import budget_option
from quipu.cli.options import QuipuCommand
from quipu.cli.progress import progress
from quipu.cli.session import load_settings, with_engine
from quipu.model.event import Event
from quipu.model.results import AddResult

if TYPE_CHECKING:
    from quipu.engine import Quipu


@click.command("retry", cls=QuipuCommand, examples=("quipu retry", "quipu retry notes/a.md"))
@click.argument("ids", nargs=-1)
@budget_option
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No progress, no summary.")
def command(ids: tuple[str, ...], budget: str | None, is_quiet: bool) -> int:
    """Try failed documents again.

    IDS name them; without any, all are tried.
    """
    with progress(is_quiet=is_quiet) as on_event:
        report = with_engine(lambda engine: _retry(engine, ids, on_event), load_settings(budget=budget))
    return finish_queue(report, is_quiet=is_quiet)


async def _retry(engine: "Quipu", ids: Sequence[str], on_event: Callable[[Event], None]) -> AddResult:
    await engine.retry(ids or None)
    return await engine.resume(on_event=on_event)
