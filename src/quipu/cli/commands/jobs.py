"""Unfinished work: `quipu resume`, `work`, `retry` and `cancel`."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.cli.document_ids import typed_ids
from quipu.cli.options import QuipuCommand, budget_option, load_settings, waiting, with_engine
from quipu.cli.output import emit, stderr
from quipu.cli.progress import progress
from quipu.cli.results import finish_queue
from quipu.model.document import DocumentStatus
from quipu.model.event import Event, Progress
from quipu.model.results import AddResult
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.engine import Quipu


@click.command("resume", cls=QuipuCommand, examples=("quipu resume", "quipu --index ./kb resume"))
@budget_option
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No progress, no summary.")
def resume(budget: str | None, is_quiet: bool) -> int:
    """Finish work that was stopped or killed.

    Chunks that were already read are not read again.
    """
    with progress(is_quiet=is_quiet) as on_event:
        report = with_engine(lambda engine: _resume(engine, on_event), load_settings(budget=budget))
    return finish_queue(report, is_quiet=is_quiet)


async def _resume(engine: "Quipu", on_event: Callable[[Event], None]) -> AddResult:
    on_event(Progress(stage="publish", n_done=0, n_total=waiting(await engine.status())))
    return await engine.resume(on_event=on_event)


@click.command(
    "work",
    cls=QuipuCommand,
    examples=(
        "quipu --index 'postgresql://quipu@db/notes' work",
        "quipu work --until-empty",
    ),
)
@click.option("--until-empty", "is_until_empty", is_flag=True, help="End when no document waits any more.")
@click.option("--poll", "poll_s", type=click.FloatRange(0.05, 3600.0), default=2.0, help="Seconds between two looks.")
@budget_option
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No progress, no summary.")
def work(is_until_empty: bool, poll_s: float, budget: str | None, is_quiet: bool) -> int:
    """Read documents that others queue, until Ctrl-C.

    Any number of workers, also on other machines, share one queue: each takes documents under leases that end by the
    clock of the database. What a killed worker had read is kept; its documents are free when its lease ends, at once on
    the same machine. All workers together keep within the budget, and share the number of calls at once.
    """
    settings = load_settings(budget=budget)
    with progress(is_quiet=is_quiet) as on_event:
        result = with_engine(
            lambda engine: engine.work(on_event, poll_s=poll_s, until_empty=is_until_empty), settings, create=True
        )
    return finish_queue(result, is_quiet=is_quiet)


@click.command("retry", cls=QuipuCommand, examples=("quipu retry", "quipu retry notes/a.md"))
@click.argument("ids", nargs=-1)
@budget_option
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No progress, no summary.")
def retry(ids: tuple[str, ...], budget: str | None, is_quiet: bool) -> int:
    """Try failed documents again.

    IDS name them, as ids or as paths from the current folder; without any, all are tried. A file that can never be read
    is not kept: change it, and add it again.
    """
    with progress(is_quiet=is_quiet) as on_event:
        report = with_engine(lambda engine: _retry(engine, ids, on_event), load_settings(budget=budget))
    return finish_queue(report, is_quiet=is_quiet)


async def _retry(engine: "Quipu", ids: Sequence[str], on_event: Callable[[Event], None]) -> AddResult:
    if not await engine.retry(await typed_ids(engine, ids) if ids else None):
        stderr().print("Nothing can be tried again. A file that could not be read is not kept: change it, then add it.")
    return await engine.resume(on_event=on_event)


_SETTLED = (DocumentStatus.READY, DocumentStatus.PARTIAL)


@click.command("cancel", cls=QuipuCommand, examples=("quipu cancel notes/a.md", "quipu cancel --all"))
@click.argument("ids", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Cancel every queued or failed document.")
def cancel(ids: tuple[str, ...], is_all: bool) -> None:
    """Drop queued work; live documents stay.

    IDS are document ids, or paths from the current folder.
    """
    if bool(ids) == is_all:
        raise click.UsageError("Name documents, or use --all.")
    emit({"cancelled": with_engine(lambda engine: _cancel(engine, ids))}, _render_cancel)


async def _cancel(engine: "Quipu", ids: Sequence[str]) -> int:
    if ids:
        return await engine.cancel(await typed_ids(engine, ids))
    documents = await engine.documents()
    return await engine.cancel([document.id for document in documents if document.status not in _SETTLED])


def _render_cancel(console: Console, result: dict[str, int]) -> None:
    console.print(f"Work on {format_count(result['cancelled'], 'document')} dropped.")
