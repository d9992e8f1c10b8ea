"""`quipu refresh`: bring up to date what is derived, make more of it, or keep less."""

from collections.abc import Sequence

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand, budget_option, no_model_option
from quipu.cli.output import emit, styled
from quipu.cli.progress import progress
from quipu.cli.results import render_refresh, render_states
from quipu.cli.session import load_settings, with_engine
from quipu.model.derivation import DerivationState
from quipu.model.results import RefreshResult
from quipu.text.formatting import format_count

_ABOUT = (
    "What is made anew costs about this: replies that are known from before, and vectors of texts that stay, cost"
    " nothing again; communities that come out otherwise, and facts that have changed, may take more."
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
    "--rebuild", "is_rebuild", is_flag=True, help="Make these anew; without a NAME all, full text and links with it."
)
@click.option("--drop", "dropped", multiple=True, metavar="NAME", help="Keep this no longer, nor what needs it.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only say what would be made, and what it costs.")
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
    """Bring up to date what is derived, or make more of it.

    NAME is a derivation made on demand, as `quipu status` lists them: it is made, with all it needs, and kept from then
    on. Every command that changes documents brings what is kept up to date at its end; only a killed process, or a
    budget that was spent, leaves something to refresh. The exit code is 1 if something is left.
    """
    if dropped and (names or is_rebuild or is_dry):
        raise click.UsageError("--drop goes alone.")
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
        console.print("Everything that is kept is up to date.")
        return
    render_states(console, states)
    if any(state.is_rebuild for state in states):
        console.print(_ABOUT)
    console.print("Nothing was changed.")


def _render_dropped(console: Console, result: dict[str, tuple[str, ...]]) -> None:
    for name in result["dropped"]:
        console.print(styled(f"{name}: kept no longer."))
    if not result["dropped"]:
        console.print("None of it was kept.")
