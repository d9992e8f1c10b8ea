"""The report of work on documents: what was added, what was reused, what failed and why."""

from rich.console import Console

from quipu.cli.output import counted, emit, named, styled
from quipu.cli.session import command_line
from quipu.model.document import Document
from quipu.model.report import AddReport


def finish(report: AddReport, *, is_quiet: bool = False) -> int:
    """Print the report of documents handed in and return the exit code: 1 if a document failed."""
    return _finish(report, _headline(report), is_quiet=is_quiet)


def finish_queue(report: AddReport, *, is_quiet: bool = False) -> int:
    """Print the report of work that was waiting and return the exit code: 1 if a document failed."""
    is_idle = not (report.n_resumed or report.n_embedded or report.failed)
    failed = f", {len(report.failed):,} failed" if report.failed else ""
    done = f"{counted(report.n_resumed, 'document')} finished{failed}"
    return _finish(report, "Nothing was waiting." if is_idle else f"{done}.", is_quiet=is_quiet)


def _finish(report: AddReport, headline: str, *, is_quiet: bool) -> int:
    if not is_quiet or report.failed:
        emit(report, lambda console, report: _render(console, report, headline))
    return 1 if report.failed else 0


def _headline(report: AddReport) -> str:
    counts = [f"{counted(report.n_added, 'document')} added", f"{report.n_updated:,} updated"]
    counts.append(f"{report.n_unchanged:,} unchanged")
    if report.n_resumed:
        counts.append(f"{report.n_resumed:,} that had been waiting")
    if report.failed:
        counts.append(f"{len(report.failed):,} failed")
    return ", ".join(counts) + "."


def _render(console: Console, report: AddReport, headline: str) -> None:
    console.print(headline)
    if report.n_chunks:
        rate = f" in {report.seconds:,.1f} s ({report.n_chunks / report.seconds:,.0f}/s)" if report.seconds else ""
        console.print(
            f"{counted(report.n_chunks, 'chunk')}{rate}: {report.n_extracted:,} read, {report.n_reused:,} known before;"
            f" {counted(report.n_embedded, 'text')} embedded."
        )
        console.print(styled(f"Read by: {report.extractor}."))
    if report.skipped:
        kinds = ", ".join(f"{n:,} {suffix or 'without suffix'}" for suffix, n in report.skipped)
        console.print(styled(f"Skipped, of a kind Quipu does not read: {kinds}.", "yellow"))
    _render_troubles(console, "Failed", report.failed)
    _render_troubles(console, "In part", report.partial)
    if report.failed:
        console.print("Mend them and add them again; all others are in the index.")
    if report.partial:
        console.print(f"`{command_line('retry')}` tries the failed chunks again.")


def _render_troubles(console: Console, label: str, documents: tuple[Document, ...]) -> None:
    for document in documents:
        name = "" if document.id in document.error else f"{document.id}: "
        console.print(named(f"{label}: {name}{document.error}", "red"))
