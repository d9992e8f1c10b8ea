"""The report of work on documents: what was added, what was reused, what failed and why."""

from collections.abc import Sequence

from rich.console import Console

from quipu.cli.amounts import spent
from quipu.cli.derivations import render_derivations
from quipu.cli.output import emit, named, styled
from quipu.cli.readers import left_as_read, others_here
from quipu.cli.session import command_line
from quipu.model.document import Document
from quipu.model.results import AddResult
from quipu.model.summary import SummaryFailure
from quipu.text.formatting import format_count

_MAX_FAILURES = 5


def finish(report: AddResult, *, is_quiet: bool = False) -> int:
    """Print the report of documents handed in and return the exit code: 0 if all went well, or most.

    It is 1 if a document failed, work stopped, or not one chunk could be read.
    """
    return _finish(report, _headline(report), is_quiet=is_quiet)


def finish_queue(report: AddResult, *, is_quiet: bool = False) -> int:
    """Print the report of work that was waiting and return the exit code, as `finish`."""
    n_made = report.n_embedded + report.n_summarised + sum(each.n_built for each in report.derivations)
    is_idle = not (report.n_resumed or report.n_removed or n_made or report.failed or report.stopped)
    failed = f", {len(report.failed):,} failed" if report.failed else ""
    removed = f"{format_count(report.n_removed, 'removal')} finished" if report.n_removed else ""
    read = f"{format_count(report.n_resumed, 'document')} finished{failed}"
    done = ", ".join(filter(None, (read if report.n_resumed or failed or not removed else "", removed)))
    return _finish(report, "Nothing was waiting." if is_idle else f"{done}.", is_quiet=is_quiet)


def _finish(report: AddResult, headline: str, *, is_quiet: bool) -> int:
    is_whole = not (report.failed or report.stopped or _is_unread(report))
    if not is_quiet or not is_whole:
        emit(report, lambda console, report: _render(console, report, headline))
    return 0 if is_whole else 1


def _is_unread(report: AddResult) -> bool:
    """Say whether all that was to be read failed: then what reads is at fault, not a chunk here or there."""
    return bool(report.partial) and not report.n_extracted and not report.n_reused


def _headline(report: AddResult) -> str:
    counts = [f"{format_count(report.n_added, 'document')} added", f"{report.n_updated:,} updated"]
    counts.append(f"{report.n_unchanged:,} unchanged")
    if report.n_resumed:
        counts.append(f"{report.n_resumed:,} that had been waiting")
    if report.failed:
        counts.append(f"{len(report.failed):,} failed")
    return ", ".join(counts) + "."


def _render(console: Console, report: AddResult, headline: str) -> None:
    console.print(headline)
    if report.n_other_extractor:
        note = left_as_read(report.n_other_extractor, report.other_extractors, report.extractor)
        console.print(styled(note, "yellow"))
    _render_work(console, report)
    if report.skipped:
        kinds = ", ".join(f"{n:,} {suffix or 'without suffix'}" for suffix, n in report.skipped)
        console.print(styled(f"Skipped, no documents Quipu reads: {kinds}.", "yellow"))
    _render_troubles(console, "Failed", report.failed)
    _render_troubles(console, "In part", report.partial)
    if report.failed:
        console.print("Mend them and add them again; all others are in the index.")
    if _is_unread(report):
        console.print(f"Not one chunk could be read. `{command_line('doctor')}` looks at what reads them.", style="red")
    if report.partial:
        console.print(f"`{command_line('retry')}` tries the failed chunks again.")
    render_unfinished(console, report.stopped, report.summary_failures)
    if report.stopped and report.n_waiting:
        waiting = "waits" if report.n_waiting == 1 else "wait"
        console.print(f"{format_count(report.n_waiting, 'document')} {waiting}; `{command_line('resume')}` goes on.")


def _render_work(console: Console, report: AddResult) -> None:
    """Say what was read, written and paid for."""
    if report.n_chunks:
        rate = f" in {report.seconds:,.1f} s ({report.n_chunks / report.seconds:,.0f}/s)" if report.seconds else ""
        console.print(
            f"{format_count(report.n_chunks, 'chunk')}{rate}: {report.n_extracted:,} read, "
            f"{report.n_reused:,} known before;"
            f" {format_count(report.n_embedded, 'text')} embedded."
        )
        console.print(styled(f"Read by: {report.extractor}{others_here(report.extractors, report.extractor)}."))
    if report.n_dropped:
        console.print(f"{format_count(report.n_dropped, 'record')} of the model left out: not borne out by the text.")
    if report.n_summarised:
        console.print(f"{format_count(report.n_summarised, 'summary')} written.")
    changed = [each for each in report.derivations if each.n_built or each.failed or each.stopped or each.notes]
    render_derivations(console, changed)
    if report.usage:
        console.print(f"{spent(report.usage)}.")
    for note in report.notes:
        console.print(styled(note, "yellow"))


def render_unfinished(console: Console, stopped: str, unsummarised: Sequence[SummaryFailure]) -> None:
    """Say what stopped the work, and which descriptions could not be summed up."""
    for failure in unsummarised[:_MAX_FAILURES]:
        console.print(styled(f"No summary of {failure.target.id}: {failure.error}", "yellow"))
    if len(unsummarised) > _MAX_FAILURES:
        console.print(f"… and of {len(unsummarised) - _MAX_FAILURES:,} more.", style="yellow")
    if unsummarised:
        console.print(f"Their first descriptions stand in; `{command_line('refresh')}` tries again.")
    if stopped:
        console.print(styled(f"Stopped: {stopped}", "red"))


def _render_troubles(console: Console, label: str, documents: tuple[Document, ...]) -> None:
    for document in documents:
        name = "" if document.id in document.error else f"{document.id}: "
        console.print(named(f"{label}: {name}{document.error}", "red"))
