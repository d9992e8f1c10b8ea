"""Derivations as people read them: what there are and whether they are fresh, and what was done to them."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from quipu.cli.output import styled, table
from quipu.model.derivation import DerivationResult, DerivationState, Freshness
from quipu.text.formatting import format_cost, format_count

_STYLES = {Freshness.FRESH: "green", Freshness.STALE: "yellow", Freshness.MISSING: "dim"}
_MAX_FAILURES = 5


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
