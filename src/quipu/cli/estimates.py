"""What adding would take, as a table with a range for each figure."""

from collections.abc import Callable

from rich.console import Console

from quipu.cli.amounts import duration, money, tokens
from quipu.cli.output import styled, table
from quipu.cli.readers import left_as_read
from quipu.model.usage import Estimate, Range
from quipu.text.formatting import format_count


def render_estimate(console: Console, estimate: Estimate) -> None:
    """Print an estimate: what was counted, then what it takes and on which grounds."""
    console.print(
        f"{format_count(estimate.n_documents, 'document')} to read, {estimate.n_unchanged:,} unchanged"
        + (f", {estimate.n_unreadable:,} that cannot be read" if estimate.n_unreadable else "")
        + f". {format_count(estimate.n_chunks, 'chunk')}: "
        + f"{estimate.n_cached:,} cached, {estimate.n_to_read:,} to read."
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
