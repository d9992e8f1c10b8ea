"""What a refresh did, as people read it."""

from rich.console import Console

from quipu.cli.added import render_unfinished
from quipu.cli.amounts import spent
from quipu.cli.derivations import render_derivations
from quipu.model.results import RefreshResult
from quipu.text.formatting import format_count


def render_refreshed(console: Console, report: RefreshResult) -> None:
    """Print what was brought up to date, where anything was, and what is left to do."""
    if report.n_summarised:
        console.print(f"{format_count(report.n_summarised, 'summary')} written.")
    render_derivations(console, report.derivations)
    if report.usage:
        console.print(f"{spent(report.usage)}.")
    render_unfinished(console, report.stopped, report.summary_failures)
