"""Prints what work on documents did (add, resume, refresh), the state of derivations, and what adding would cost."""

from collections import Counter
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from quipu.cli.options import command_line
from quipu.cli.output import amount, duration, emit, in_currency, money, named, spent, styled, table, tokens
from quipu.model.derivation import DerivationResult, DerivationState, Freshness
from quipu.model.document import UNSURE, Document
from quipu.model.edit import Edit
from quipu.model.results import UNREAD, AddResult, RefreshResult
from quipu.model.summary import SummaryFailure
from quipu.model.usage import Estimate, Range
from quipu.text.formatting import format_cost, format_count

_MAX_FAILURES = 5
_STYLES = {Freshness.FRESH: "green", Freshness.STALE: "yellow", Freshness.MISSING: "dim"}
_UNKNOWN_EXTRACTOR = "a version of Quipu that did not note its extractor"


def finish_adding(result: AddResult, *, is_quiet: bool = False) -> int:
    """Print the result of adding documents and return the exit code.

    The code is 1 if a document failed, the work stopped, or no chunk could be read; otherwise 0.
    """
    counts = [f"{format_count(result.n_added, 'document')} added", f"{result.n_updated:,} updated"]
    counts.append(f"{result.n_unchanged:,} unchanged")
    if result.n_resumed:
        counts.append(f"{result.n_resumed:,} from the queue")
    if result.failed:
        counts.append(f"{len(result.failed):,} failed")
    return _finish(result, f"{', '.join(counts)}.", is_quiet=is_quiet)


def finish_queue(result: AddResult, *, is_quiet: bool = False) -> int:
    """Print the result of working through the queue and return the exit code, as `finish_adding` does."""
    n_built = result.n_embedded + result.n_summarised + sum(derivation.n_built for derivation in result.derivations)
    is_idle = not (result.n_resumed or result.n_removed or n_built or result.failed or result.stopped)
    failed = f", {len(result.failed):,} failed" if result.failed else ""
    removed = f"{format_count(result.n_removed, 'removal')} finished" if result.n_removed else ""
    finished = f"{format_count(result.n_resumed, 'document')} finished{failed}"
    parts = filter(None, (finished if result.n_resumed or failed or not removed else "", removed))
    return _finish(result, "The queue was empty." if is_idle else f"{', '.join(parts)}.", is_quiet=is_quiet)


def _finish(result: AddResult, headline: str, *, is_quiet: bool) -> int:
    is_complete = not (result.failed or result.stopped or _has_only_failed_chunks(result))
    if not is_quiet or not is_complete:
        emit(result, lambda console, result: render_added(console, result, headline))
    elif result.skipped:
        emit(result, _render_skipped)
    return 0 if is_complete else 1


def _has_only_failed_chunks(result: AddResult) -> bool:
    """Return whether every chunk failed, which means that the extractor fails, not single chunks."""
    return bool(result.partial) and not result.n_extracted and not result.n_reused


def render_added(console: Console, result: AddResult, headline: str) -> None:
    """Print what became of documents that were added, after a line that counts them."""
    console.print(headline)
    if result.n_other_extractor:
        note = other_extractors_note(result.n_other_extractor, result.other_extractors, result.extractor)
        console.print(styled(note, "yellow"))
    _render_work(console, result)
    _render_skipped(console, result)
    _render_encodings(console, result)
    _render_warnings(console, result)
    _render_errors(console, "Failed", result.failed)
    _render_errors(console, "Partly read", result.partial)
    if result.failed:
        console.print("Fix these documents and add them again; all others are in the index.")
    if _has_only_failed_chunks(result):
        console.print(f"No chunk could be read. `{command_line('doctor')}` checks what reads them.", style="red")
    if result.partial:
        console.print(f"`{command_line('retry')}` tries the failed chunks again.")
    render_unfinished(console, result.stopped, result.summary_failures)
    if result.stopped and result.n_waiting:
        n_waiting = format_count(result.n_waiting, "document")
        console.print(f"{n_waiting} in the queue; `{command_line('resume')}` continues.")


def _render_work(console: Console, result: AddResult) -> None:
    """Print what an add read, wrote and spent."""
    if result.n_chunks:
        rate = f" in {result.seconds:,.1f} s ({result.n_chunks / result.seconds:,.0f}/s)" if result.seconds else ""
        console.print(
            f"{format_count(result.n_chunks, 'chunk')}{rate}: {result.n_extracted:,} read, "
            f"{result.n_reused:,} cached; {format_count(result.n_embedded, 'text')} embedded."
        )
        console.print(styled(f"Read by: {result.extractor}{other_extractors(result.extractors, result.extractor)}."))
    elif result.n_embedded:
        console.print(f"{format_count(result.n_embedded, 'text')} embedded.")
    if result.n_dropped:
        records = format_count(result.n_dropped, "record")
        console.print(f"{records} of the model left out, because the text does not support them.")
    if result.n_summarised:
        console.print(f"{format_count(result.n_summarised, 'summary')} written.")
    changed = [derivation for derivation in result.derivations if derivation.n_built or derivation.failed]
    render_derivations(console, changed)
    if result.usage:
        console.print(f"{spent(result.usage)}.")
    for note in result.notes:
        console.print(styled(note, "yellow"))


def _render_skipped(console: Console, result: AddResult) -> None:
    """Print how many files were skipped, by reason, as in "Skipped 3 files: 2 empty, 1 symbolic link."."""
    if not result.skipped:
        return
    n_by_reason: Counter[str] = Counter()
    suffixes: dict[str, list[str]] = {}
    for reason, suffix, n in result.skipped:
        n_by_reason[reason] += n
        if reason == UNREAD:
            suffixes.setdefault(reason, []).append(f"{suffix or 'without suffix'} {n:,}")
    reasons = (
        f"{n:,} {reason}" + (f" ({', '.join(suffixes[reason])})" if reason in suffixes else "")
        for reason, n in n_by_reason.items()
    )
    total = format_count(n_by_reason.total(), "file")
    console.print(styled(f"Skipped {total}: {', '.join(reasons)}.", "yellow"))


def _render_encodings(console: Console, result: AddResult) -> None:
    """Print which encodings were assumed, and the documents of which this is unsure."""
    n_by_encoding = Counter(encoding.removesuffix(UNSURE) for _, encoding in result.assumed_encodings)
    if not n_by_encoding:
        return
    listed = ", ".join(f"{encoding} {n:,}" for encoding, n in sorted(n_by_encoding.items()))
    console.print(styled(f"Not UTF-8; encoding assumed: {listed}."))
    unsure = [
        f"{document} ({encoding.removesuffix(UNSURE)})"
        for document, encoding in result.assumed_encodings
        if encoding.endswith(UNSURE)
    ]
    if unsure:
        names = f"{', '.join(unsure[:_MAX_FAILURES])}{_and_more(unsure)}"
        remedy = f"`{command_line('add', 'FILE', '--meta', 'encoding=NAME')}` names another"
        console.print(named(f"Unsure of the encoding of {names}; {remedy}.", "yellow"))


def _render_warnings(console: Console, result: AddResult) -> None:
    """Print which scanned pages are not in the index, or may be misread."""
    for document, warning in result.warnings[:_MAX_FAILURES]:
        console.print(named(f"{document}: {warning}", "yellow"))
    if len(result.warnings) > _MAX_FAILURES:
        more = format_count(len(result.warnings) - _MAX_FAILURES, "more document")
        console.print(styled(f"Scanned pages of {more} are missing or unsure: `{command_line('docs')}`.", "yellow"))


def _render_errors(console: Console, label: str, documents: Sequence[Document]) -> None:
    """Print why documents failed, those with the same reason together."""
    documents_by_reason: dict[str, list[Document]] = {}
    for document in documents:
        documents_by_reason.setdefault(document.error.replace(document.id, "…"), []).append(document)
    for reason, group in documents_by_reason.items():
        if len(group) > 1:
            ids = ", ".join(document.id for document in group[:_MAX_FAILURES])
            console.print(
                named(f"{label}, {format_count(len(group), 'document')} ({ids}{_and_more(group)}): {reason}", "red")
            )
        else:
            name = "" if group[0].id in group[0].error else f"{group[0].id}: "
            console.print(named(f"{label}: {name}{group[0].error}", "red"))


def _and_more(listed: Sequence[object]) -> str:
    return f" and {len(listed) - _MAX_FAILURES:,} more" if len(listed) > _MAX_FAILURES else ""


def edit_summary(edit: Edit) -> str:
    """Return what an edit does, in one line."""
    between = " -- " if edit.is_of_relation else ", "
    words = f"{edit.kind.value} {between.join(edit.entities)}"
    if edit.name:
        words += f" → {edit.name}"
    values = [edit.type, ", ".join(edit.keywords), edit.description]
    return ": ".join([words, *filter(None, values)])


def render_refresh(console: Console, result: RefreshResult) -> None:
    """Print what a refresh brought up to date, and what remains to be done."""
    if result.n_summarised:
        console.print(f"{format_count(result.n_summarised, 'summary')} written.")
    render_derivations(console, result.derivations)
    if result.usage:
        console.print(f"{spent(result.usage)}.")
    render_unfinished(console, result.stopped, result.summary_failures)


def render_unfinished(console: Console, stopped: str, summary_failures: Sequence[SummaryFailure]) -> None:
    """Print what stopped the work, and which summaries failed."""
    for failure in summary_failures[:_MAX_FAILURES]:
        console.print(styled(f"No summary of {failure.target.id}: {failure.error}", "yellow"))
    if len(summary_failures) > _MAX_FAILURES:
        console.print(f"… and of {len(summary_failures) - _MAX_FAILURES:,} more.", style="yellow")
    if summary_failures:
        console.print(f"Their first descriptions are used instead; `{command_line('refresh')}` tries again.")
    if stopped:
        console.print(styled(f"Stopped: {stopped}", "red"))


def render_derivations(console: Console, results: Sequence[DerivationResult]) -> None:
    """Print a line for each derivation that changed or has a note, and its failures.

    The reason why the work stopped is not repeated here, because `render_unfinished` prints it once.
    """
    for result in results:
        if not (result.n_built or result.n_unchanged or result.failed or result.notes):
            continue
        calls = [format_count(result.n_calls, "call")] if result.n_calls else []
        calls += [f"{format_count(result.n_reused, 'reply')} cached"] if result.n_reused else []
        line = f"{result.name}: {result.n_built:,} built, {result.n_unchanged:,} unchanged"
        line += f" ({', '.join(calls)})" if calls else ""
        console.print(styled(f"{line}{'; stopped' if result.stopped else ''}."))
        for note in result.notes:
            console.print(styled(f"  {note}"))
        for name, reason in result.failed[:_MAX_FAILURES]:
            console.print(styled(f"  {name}: {reason}", "yellow"))
        if len(result.failed) > _MAX_FAILURES:
            console.print(f"  … and {len(result.failed) - _MAX_FAILURES:,} more.", style="yellow")


def render_states(console: Console, states: Sequence[DerivationState]) -> None:
    """Print a table of derivations: whether each is fresh, what it contains, and what a refresh would cost."""
    listing = table("derivation", "state", "contains", "size", "to refresh", right=["size"], title="Derivations")
    for state in states:
        listing.add_row(
            state.name,
            Text(_freshness(state), style=_STYLES[state.freshness]),
            styled(state.contents),
            _size(state.n_bytes),
            _refresh_cost(state),
        )
    console.print(listing)


def _refresh_cost(state: DerivationState) -> Text:
    if state.unavailable_reason:
        return styled(state.unavailable_reason, "yellow")
    return styled(format_cost(state.cost) if state.is_rebuild or state.freshness is not Freshness.FRESH else "")


def _freshness(state: DerivationState) -> str:
    if state.is_rebuild:
        return f"{state.freshness}, to be rebuilt"
    pending = f", {state.n_stale:,} to do" if state.n_stale and state.freshness is Freshness.STALE else ""
    return f"{state.freshness}{pending}"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 50_000 else f"{n_bytes / 1e3:,.0f} kB" if n_bytes else ""


def render_estimate(console: Console, estimate: Estimate) -> None:
    """Print an estimate: what was counted, a range for each figure, and what the figures are based on."""
    console.print(
        f"{format_count(estimate.n_documents, 'document')} to read, {estimate.n_unchanged:,} unchanged"
        + (f", {estimate.n_unreadable:,} that cannot be read" if estimate.n_unreadable else "")
        + f". {format_count(estimate.n_chunks, 'chunk')}: "
        + f"{estimate.n_cached:,} cached, {estimate.n_to_read:,} to read."
    )
    if estimate.n_other_extractor:
        note = other_extractors_note(estimate.n_other_extractor, estimate.other_extractors, estimate.extractor)
        console.print(styled(note, "yellow"))
    if estimate.n_pictures:
        _render_pictures(console, estimate)
    if not estimate.n_to_read and not estimate.n_pictures:
        console.print("No model would be asked.")
        return
    if not estimate.model and not estimate.embedder and not estimate.n_pictures:
        console.print("Local rules read them. No model is asked, and nothing is spent.")
        return
    _render_ranges(console, estimate)
    if estimate.model:
        _render_basis(console, estimate)
    console.print("Nothing was added. `--budget` stops the work before it costs more than you say.")


def _render_ranges(console: Console, estimate: Estimate) -> None:
    count: Callable[[float], str] = lambda value: tokens(round(value))  # noqa: E731
    price: Callable[[float], str] = lambda value: money(round(value))  # noqa: E731
    listing = table(estimate.model, "likely", "at least", "at most", right=["likely", "at least", "at most"])
    if estimate.model:
        listing.add_row("calls", *_range_cells(estimate.calls, count))
        listing.add_row("tokens in", *_range_cells(estimate.input_tokens, count))
        listing.add_row("tokens out", *_range_cells(estimate.output_tokens, count))
        if estimate.cost is not None:
            listing.add_row(in_currency("money"), *_range_cells(estimate.cost, price))
        listing.add_row("time", *_range_cells(estimate.seconds, duration))
    if estimate.embedded_tokens is not None:
        listing.add_row(f"tokens of vectors, {estimate.embedder}", *_range_cells(estimate.embedded_tokens, count))
    if estimate.embedding_cost is not None:
        listing.add_row(in_currency("money for vectors"), *_range_cells(estimate.embedding_cost, price))
    if listing.row_count:
        console.print(listing)


def _render_pictures(console: Console, estimate: Estimate) -> None:
    listing = table(estimate.picture_model, "likely", "at least", "at most", right=["likely", "at least", "at most"])
    listing.add_row("pictures to describe", *[f"{estimate.n_pictures:,}"] * 3)
    if estimate.picture_tokens is not None:
        listing.add_row("tokens", *_range_cells(estimate.picture_tokens, lambda value: tokens(round(value))))
    if estimate.picture_cost is not None:
        listing.add_row(in_currency("money"), *_range_cells(estimate.picture_cost, lambda value: money(round(value))))
    console.print(listing)


def _render_basis(console: Console, estimate: Estimate) -> None:
    console.print(styled(f"Based on {estimate.basis}.", "dim"))
    console.print("This is the cost of reading. Summaries of entities with very many descriptions cost extra.")
    if estimate.cost is None:
        console.print("The model has no price: give one in a [[price]] table of quipu.toml.", style="yellow")
    if estimate.sample_calls:
        console.print(
            f"The sample took {format_count(estimate.sample_calls, 'call')}"
            + (f" and {amount(estimate.sample_cost)}" if estimate.cost is not None else "")
            + ". Its replies are kept and count as cached."
        )
    if estimate.n_sample_failed:
        console.print(
            styled(
                f"{estimate.n_sample_failed:,} of the {format_count(estimate.n_sampled, 'chunk')} could not be read, "
                f"and would have to be paid for again: {estimate.sample_error}",
                "red",
            )
        )


def _range_cells(figure: Range, render: Callable[[float], str]) -> tuple[str, str, str]:
    return render(figure.likely), render(figure.low), render(figure.high)


def other_extractors_note(n: int, extractors: Sequence[str], current: str) -> str:
    """Say that other extractors than the current one read n unchanged documents, and how to read them again."""
    were, them = ("was", "it") if n == 1 else ("were", "them")
    names = _enumerated([f"{current} with other settings" if name == current else name for name in extractors])
    remedy = f"`{command_line('add', '--reread')}` reads {them} again with the current settings: {current}."
    return f"{n:,} of them {were} read by {names}; {remedy}"


def other_extractors(extractors: Sequence[tuple[str, int]], current: str) -> str:
    """Return, in brackets, which other extractors read documents of the index; "" if there are none."""
    others = [name for name, _ in extractors if name not in ("", current)]
    return f" (others in this index were read by {_enumerated(others)})" if others else ""


def extractor_history(extractors: Sequence[tuple[str, int]], current: str) -> str:
    """Say which extractors read the documents of the index, and which one would read them now.

    Where there are several, each comes with its number of documents.
    """
    if not extractors:
        return f"to be read by {current}"
    by_count = sorted(extractors, key=lambda pair: (-pair[1], pair[0]))
    names = [name or _UNKNOWN_EXTRACTOR for name, _ in by_count]
    if len(extractors) > 1:
        names = [f"{name} ({n:,})" for name, (_, n) in zip(names, by_count, strict=True)]
    is_current = len(extractors) == 1 and f"({extractors[0][0]})" in current
    return f"read by {_enumerated(names)}" + ("" if is_current else f"; current setting: {current}")


def _enumerated(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
