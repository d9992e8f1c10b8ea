"""`quipu refresh`: bring every derivation up to date, or build again what is derived from the chunks."""

import click
from rich.console import Console

from quipu.cli.added import render_unfinished
from quipu.cli.budget import budget_option
from quipu.cli.options import QuipuCommand
from quipu.cli.output import counted, emit
from quipu.cli.progress import progress
from quipu.cli.session import load_settings, with_engine
from quipu.model.report import RefreshReport


@click.command("refresh", cls=QuipuCommand, examples=("quipu refresh", "quipu refresh --rebuild"))
@click.option("--rebuild", "is_rebuild", is_flag=True, help="Build full text and links again first.")
@budget_option
def command(is_rebuild: bool, budget: str | None) -> int:
    """Bring every derivation up to date.

    Every command that changes documents does this at its end; only a killed process, or a budget that was spent, leaves
    something to refresh. With a language model, summaries are written, too. The exit code is 1 if something is left.
    """
    settings = load_settings(budget=budget)
    with progress() as on_event:
        report = with_engine(
            lambda engine: engine.rebuild(on_event) if is_rebuild else engine.refresh(on_event),
            settings,
            repair=is_rebuild,
        )
    emit(report, _render)
    return 1 if report.stopped or report.unsummarised else 0


def _render(console: Console, report: RefreshReport) -> None:
    summaries = f", {counted(report.n_summarised, 'summary')} written" if report.n_summarised else ""
    console.print(
        f"{'Stopped' if report.stopped else 'Up to date'}; {counted(report.n_embedded, 'text')} embedded{summaries}."
    )
    render_unfinished(console, report.stopped, report.unsummarised)
