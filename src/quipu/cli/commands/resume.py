"""`quipu resume`: finish work that was stopped or killed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from quipu.cli.added import finish_queue
from quipu.cli.budget import budget_option
from quipu.cli.options import QuipuCommand
from quipu.cli.progress import progress
from quipu.cli.session import load_settings, waiting, with_engine
from quipu.model.event import Event, Progress
from quipu.model.results import AddResult

if TYPE_CHECKING:
    from quipu.engine import Quipu


@click.command("resume", cls=QuipuCommand, examples=("quipu resume", "quipu --index ./kb resume"))
@budget_option
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No progress, no summary.")
def command(budget: str | None, is_quiet: bool) -> int:
    """Finish what was stopped or killed.

    What was already read is not read again.
    """
    with progress(is_quiet=is_quiet) as on_event:
        report = with_engine(lambda engine: _resume(engine, on_event), load_settings(budget=budget))
    return finish_queue(report, is_quiet=is_quiet)


async def _resume(engine: "Quipu", on_event: Callable[[Event], None]) -> AddResult:
    on_event(Progress(stage="publish", n_done=0, n_total=waiting(await engine.status())))
    return await engine.resume(on_event=on_event)
