"""Prints what work on documents did: adding, resuming, refreshing, and what adding would cost."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from quipu.cli.output import duration, emit, money, named, spent, styled, table, tokens
from quipu.cli.session import command_line
from quipu.model.derivation import DerivationResult, DerivationState, Freshness
from quipu.model.document import Document
from quipu.model.results import AddResult, RefreshResult
from quipu.model.summary import SummaryFailure
from quipu.model.usage import Estimate, Range
from quipu.text.formatting import format_cost, format_count

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


def render_refreshed(console: Console, report: RefreshResult) -> None:
    """Print what was brought up to date, where anything was, and what is left to do."""
    if report.n_summarised:
        console.print(f"{format_count(report.n_summarised, 'summary')} written.")
    render_derivations(console, report.derivations)
    if report.usage:
        console.print(f"{spent(report.usage)}.")
    render_unfinished(console, report.stopped, report.summary_failures)


_STYLES = {Freshness.FRESH: "green", Freshness.STALE: "yellow", Freshness.MISSING: "dim"}


def render_derivations(console: Console, reports: Sequence[DerivationResult]) -> None:
    """Print a line for each derivation with anything to tell, and what failed.

    Why the work stopped is told once, of all: what was not begun for it has nothing to tell.
    """
    for report in reports:
        if not (report.n_built or report.n_unchanged or report.failed or report.notes):
            continue
        calls = [format_count(report.n_calls, "call")] if report.n_calls else []
        calls += [f"{format_count(report.n_reused, 'reply')} known before"] if report.n_reused else []
        told = f"{report.name}: {report.n_built:,} made, {report.n_unchanged:,} as they were"
        told += f" ({', '.join(calls)})" if calls else ""
        console.print(styled(f"{told}{'; stopped' if report.stopped else ''}."))
        for note in report.notes:
            console.print(styled(f"  {note}"))
        for what, why in report.failed[:_MAX_FAILURES]:
            console.print(styled(f"  {what}: {why}", "yellow"))
        if len(report.failed) > _MAX_FAILURES:
            console.print(f"  … and {len(report.failed) - _MAX_FAILURES:,} more.", style="yellow")


def render_states(console: Console, states: Sequence[DerivationState]) -> None:
    """Print a table of derivations: whether each is fresh, what it holds, and what bringing it up to date costs."""
    listing = table("derivation", "state", "holds", "size", "to refresh", right=["size"], title="Derivations")
    for state in states:
        listing.add_row(
            state.name,
            Text(_freshness(state), style=_STYLES[state.freshness]),
            styled(state.contents),
            _size(state.n_bytes),
            _to_refresh(state),
        )
    console.print(listing)


def _to_refresh(state: DerivationState) -> Text:
    if state.unavailable_reason:
        return styled(state.unavailable_reason, "yellow")
    return styled(format_cost(state.cost) if state.is_rebuild or state.freshness is not Freshness.FRESH else "")


def _freshness(state: DerivationState) -> str:
    if state.is_rebuild:
        return f"{state.freshness}, made anew"
    behind = f", {state.n_stale:,} to do" if state.n_stale and state.freshness is Freshness.STALE else ""
    return f"{state.freshness}{behind}"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 50_000 else f"{n_bytes / 1e3:,.0f} kB" if n_bytes else ""


def render_estimate(console: Console, estimate: Estimate) -> None:
    """Print an estimate: what was counted, then what it takes and on which grounds."""
    console.print(
        f"{format_count(estimate.n_documents, 'document')} to read, {estimate.n_unchanged:,} unchanged"
        + (f", {estimate.n_unreadable:,} that cannot be read" if estimate.n_unreadable else "")
        + f". {format_count(estimate.n_chunks, 'chunk')}: "
        + f"{estimate.n_cached:,} known before, {estimate.n_to_read:,} to read."
    )
    if estimate.n_other_extractor:
        note = left_as_read(estimate.n_other_extractor, estimate.other_extractors, estimate.extractor)
        console.print(styled(note, "yellow"))
    if not estimate.n_to_read:
        console.print("No model would be asked.")
        return
    if not estimate.model and not estimate.embedder:
        console.print("They are read by local rules: no model is asked, nothing is spent.")
        return
    whole: Callable[[float], str] = lambda value: tokens(round(value))  # noqa: E731
    paid: Callable[[float], str] = lambda value: money(round(value))  # noqa: E731
    listing = table(estimate.model, "likely", "at least", "at most", right=["likely", "at least", "at most"])
    if estimate.model:
        listing.add_row("calls", *_cells(estimate.calls, whole))
        listing.add_row("tokens in", *_cells(estimate.input_tokens, whole))
        listing.add_row("tokens out", *_cells(estimate.output_tokens, whole))
        if estimate.cost is not None:
            listing.add_row("money", *_cells(estimate.cost, paid))
        listing.add_row("time", *_cells(estimate.seconds, duration))
    if estimate.embedded_tokens is not None:
        listing.add_row(f"tokens of vectors, {estimate.embedder}", *_cells(estimate.embedded_tokens, whole))
    if estimate.embedding_cost is not None:
        listing.add_row("money for vectors", *_cells(estimate.embedding_cost, paid))
    if listing.row_count:
        console.print(listing)
    if estimate.model:
        _render_grounds(console, estimate)
    console.print("Nothing was added. `--budget` stops the work before it costs more than you say.")


def _render_grounds(console: Console, estimate: Estimate) -> None:
    console.print(styled(f"From {estimate.basis}.", "dim"))
    console.print("This is reading; summaries of names with very many descriptions come on top.")
    if estimate.cost is None:
        console.print("The model has no price: give one in a [[price]] table of quipu.toml.", style="yellow")
    if estimate.sample_calls:
        console.print(
            f"The sample took {format_count(estimate.sample_calls, 'call')}"
            + (f" and {money(estimate.sample_cost)}" if estimate.cost is not None else "")
            + "; its replies are kept, and count as known."
        )
    if estimate.n_sample_failed:
        console.print(
            styled(
                f"{estimate.n_sample_failed:,} of the {format_count(estimate.n_sampled, 'chunk')} could not be read, "
                f"and would have to be paid for again: {estimate.sample_error}",
                "red",
            )
        )


def _cells(figure: Range, show: Callable[[float], str]) -> tuple[str, str, str]:
    return show(figure.likely), show(figure.low), show(figure.high)


_UNNOTED = "a version of Quipu that did not note by what"
_REREAD = "--reread"


def left_as_read(n: int, readers: Sequence[str], now: str) -> str:
    """Say that n unchanged documents were read by others than what is set `now`, and how to read them again."""
    were, them = ("was", "it") if n == 1 else ("were", "them")
    names = _enumerated([f"{now} with other settings" if name == now else name for name in readers])
    again = f"`{command_line('add', _REREAD)}` reads {them} again by what is set now: {now}."
    return f"{n:,} of them {were} read by {names}; {again}"


def others_here(readers: Sequence[tuple[str, int]], now: str) -> str:
    """Name the others who read documents of the index, in brackets; "" where there are none."""
    others = [name for name, _ in readers if name not in ("", now)]
    return f" (others here were read by {_enumerated(others)})" if others else ""


def history(readers: Sequence[tuple[str, int]], now: str) -> str:
    """Tell who read the documents of the index, with how many each where they are several, and who would now."""
    if not readers:
        return f"to be read by {now}"
    most_first = sorted(readers, key=lambda each: (-each[1], each[0]))
    names = [name or _UNNOTED for name, _ in most_first]
    if len(readers) > 1:
        names = [f"{name} ({n:,})" for name, (_, n) in zip(names, most_first, strict=True)]
    is_now = len(readers) == 1 and f"({readers[0][0]})" in now
    return f"read by {_enumerated(names)}" + ("" if is_now else f"; set now: {now}")


def _enumerated(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
