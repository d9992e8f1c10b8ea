"""`quipu resume`: finish work that was stopped or killed."""

import click

from quipu.cli.added import finish_queue
from quipu.cli.options import QuipuCommand
from quipu.cli.progress import progress
from quipu.cli.session import with_engine


@click.command("resume", cls=QuipuCommand, examples=("quipu resume", "quipu --index ./kb resume"))
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No progress, no summary.")
def command(is_quiet: bool) -> int:
    """Finish what was stopped or killed.

    What was already read is not read again.
    """
    with progress(is_quiet=is_quiet) as on_event:
        report = with_engine(lambda engine: engine.resume(on_event=on_event))
    return finish_queue(report, is_quiet=is_quiet)
