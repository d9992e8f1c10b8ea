"""`quipu refresh`: bring derivations up to date, compute one on demand, or drop one."""

from collections.abc import Sequence

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand, budget_option, load_settings, no_model_option, with_engine
from quipu.cli.output import emit, styled
from quipu.cli.progress import progress
from quipu.cli.results import render_refresh, render_states
from quipu.model.derivation import DerivationState
from quipu.model.results import RefreshResult
from quipu.text.formatting import format_count

_ABOUT = (
    "A rebuild costs about this much. Cached replies, and vectors of unchanged texts, cost nothing again. Different"
    " communities and changed facts may cost more."
)


@click.command(
    "refresh",
    cls=QuipuCommand,
    examples=(
        "quipu refresh",
        "quipu refresh reports",
        "quipu refresh hierarchy --dry-run",
        "quipu refresh communities --rebuild",
        'quipu refresh reports --budget "500 calls"',
        "quipu refresh --drop hierarchy",
        "quipu refresh --rebuild",
        "quipu refresh --rebuild --dry-run",
    ),
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--rebuild",
    "is_rebuild",
    is_flag=True,
    help="Rebuild these; without NAME, everything including full text and links.",
)
@click.option("--drop", "dropped", multiple=True, metavar="NAME", help="Drop this derivation and those that need it.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only print what would be computed, and its cost.")
@no_model_option
@budget_option
def command(
    *,
    names: tuple[str, ...],
    is_rebuild: bool,
    dropped: tuple[str, ...],
    is_dry: bool,
    has_no_model: bool,
    budget: str | None,
) -> int:
    """Bring derivations up to date, or compute one on demand.

    NAME is a derivation on demand; `quipu status` lists them. It is computed with everything it needs, and later
    commands that change documents keep it up to date. A refresh is therefore needed only after a process was killed or
    a budget was spent. The exit code is 1 if something is still stale.
    """
    if dropped and (names or is_rebuild or is_dry):
        raise click.UsageError("--drop cannot be combined with a NAME, --rebuild or --dry-run.")
    settings = load_settings(has_no_model=has_no_model, budget=budget)
    if dropped:
        emit({"dropped": with_engine(lambda engine: engine.drop(dropped), settings)}, _render_dropped)
        return 0
    repair = is_rebuild and not names
    if is_dry:
        plan = with_engine(lambda engine: engine.plan(names, rebuild=is_rebuild), settings, repair=repair)
        emit(plan, _render_plan)
        return 0
    with progress() as on_event:
        report = with_engine(
            lambda engine: engine.refresh(names, rebuild=is_rebuild, on_event=on_event), settings, repair=repair
        )
    emit(report, _render)
    return 0 if report.is_complete else 1


def _render(console: Console, report: RefreshResult) -> None:
    outcome = "Stopped" if report.stopped else "Up to date" if report.is_complete else "Not finished"
    console.print(f"{outcome}; {format_count(report.n_embedded, 'text')} embedded.")
    render_refresh(console, report)


def _render_plan(console: Console, states: Sequence[DerivationState]) -> None:
    if not states:
        console.print("Everything is up to date.")
        return
    render_states(console, states)
    if any(state.is_rebuild for state in states):
        console.print(_ABOUT)
    console.print("Nothing was changed.")


def _render_dropped(console: Console, result: dict[str, tuple[str, ...]]) -> None:
    for name in result["dropped"]:
        console.print(styled(f"{name}: dropped."))
    if not result["dropped"]:
        console.print("None of these was in the index.")
