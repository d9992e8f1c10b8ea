"""Maintenance of an index: `quipu verify`, `dump`, `copy`, `reembed` and `purge`."""

import asyncio
import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand, budget_option, load_settings, parse_date, with_engine
from quipu.cli.output import emit, named, styled
from quipu.cli.progress import progress
from quipu.model.derivation import RepairResult
from quipu.model.document import PurgeResult
from quipu.text.formatting import format_count
from quipu.text.unicode import clean_json

if TYPE_CHECKING:
    from quipu.engine import Quipu

_MAX_VERSIONS = 20


@click.command("verify", cls=QuipuCommand, examples=("quipu verify", "quipu verify --repair", "quipu verify --json"))
@click.option("--repair", "is_repair", is_flag=True, help="Build everything derived again, if the facts are sound.")
@click.option("--accept-losses", is_flag=True, help="With --repair: drop what is left of facts that are missing.")
@budget_option
def verify(is_repair: bool, accept_losses: bool, budget: str | None) -> int:
    """Recompute every derivation and compare it with the index.

    No model is called. The exit code is 1 if anything differs.

    With --repair, everything that is derived is built again from the facts: graph, full text, links, vectors, and
    summaries and reports that are damaged, which may call a model. If facts are damaged or missing (what was read from
    a document, or an edit), nothing is changed: they are listed with the documents concerned. Remove these and add them
    again. Then --accept-losses drops what is left of missing facts; it accepts no damaged ones.
    """
    if accept_losses and not is_repair:
        raise click.UsageError("--accept-losses needs --repair.")
    settings = load_settings(budget=budget)
    if not is_repair:
        differences = with_engine(lambda engine: engine.verify(), settings)
        emit(differences, _render_verify)
        return 1 if differences else 0
    with progress() as on_event:
        result = with_engine(lambda engine: engine.repair(accept_losses=accept_losses, on_event=on_event), settings)
    emit(result, _render_repair)
    return 0 if result.is_sound else 1


def _render_verify(console: Console, differences: list[str]) -> None:
    for difference in differences:
        console.print(styled(difference, "red"))
    if differences:
        n = format_count(len(differences), "difference")
        console.print(f"{n}. `quipu verify --repair` builds everything derived again, or names damaged facts.")
    else:
        console.print("Sound: every derivation equals what the facts give.", style="green")


def _render_repair(console: Console, result: RepairResult) -> None:
    for message in (*result.faults, *result.losses, *result.left):
        console.print(styled(message, "red"))
    if result.faults or result.losses:
        faults, losses = format_count(len(result.faults), "damaged fact"), format_count(len(result.losses), "sign")
        console.print(
            f"{faults} and {losses} that facts are missing; nothing can compute these, and nothing was changed. "
            "Remove the documents that are named (`quipu remove`), add them again (`quipu add`), and repeat the repair "
            "with --accept-losses. Or restore a backup (`quipu restore`)."
        )
    elif result.left:
        reason = f": {result.stopped}" if result.stopped else ""
        console.print(f"{format_count(len(result.left), 'difference')} left{reason}.")
    else:
        repaired = format_count(len(result.repaired), "difference")
        console.print(f"Sound: everything derived was built again ({repaired} repaired).", style="green")
        if result.stopped:
            console.print(f"Something is still stale: {result.stopped}")


@click.command("dump", cls=QuipuCommand, examples=("quipu dump > before.jsonl", "quipu dump | sha256sum"))
def dump() -> None:
    """Print the canonical state as JSON lines.

    Two indexes of the same documents print the same bytes, whatever their history.
    """
    with_engine(_print_lines)


async def _print_lines(engine: "Quipu") -> None:
    is_terminal = sys.stdout.isatty()
    async for line in engine.dump():
        click.echo(clean_json(line) if is_terminal else line)


@click.command("reembed", cls=QuipuCommand, examples=("quipu reembed",))
@budget_option
def reembed(budget: str | None) -> None:
    """Compute every vector again with the current embedder.

    Searches use the old vectors until the new ones are complete. No chunk is read again. If a budget ends the work,
    finished vectors are kept, and the next call continues.
    """
    settings = load_settings(budget=budget)
    with progress() as on_event:
        n_embedded = with_engine(lambda engine: engine.reembed(on_event=on_event), settings, repair=True)
    emit({"embedded": n_embedded}, _render_reembed)


def _render_reembed(console: Console, result: dict[str, int]) -> None:
    if result["embedded"]:
        console.print(f"{format_count(result['embedded'], 'text')} embedded; searches use the new vectors from now on.")
    else:
        console.print("Every text already has a vector of the current embedder. There was nothing to do.")


@click.command(
    "copy",
    cls=QuipuCommand,
    examples=(
        "quipu copy ./.quipu 'postgresql://quipu@db/notes?workspace=team'",
        "quipu copy 'postgresql://quipu@db/notes' ./kb",
    ),
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def copy(source: str, target: str) -> None:
    """Copy an index between folders and databases.

    FROM and TO are folders or addresses. There must be nothing in TO. The copy gives the same bytes in `quipu dump`
    and the same rankings. It is made of one snapshot, completely or not at all. Nothing is read or embedded again.
    """
    from quipu.settings import Settings
    from quipu.wiring.restoring import copy_index

    n_rows = asyncio.run(copy_index(Settings(index=source), Settings(index=target)))
    emit({"rows": n_rows}, _render_copy)


def _render_copy(console: Console, result: dict[str, int]) -> None:
    console.print(f"{format_count(result['rows'], 'row')} copied. Compare: quipu --index FROM dump | sha256sum")


@click.command("purge", cls=QuipuCommand, examples=("quipu purge", "quipu purge --before 2025 --dry-run"))
@click.option("--before", default="", metavar="DATE", help="Of earlier versions, only those that ended before DATE.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only tell which earlier versions would go; delete nothing.")
def purge(before: str, is_dry: bool) -> None:
    """Drop earlier versions, cached replies and vectors that nothing needs.

    With the setting `history`, what replaced and removed documents said stays until this command deletes it from
    every file. Cached replies for earlier versions of a document make it free to return to such a version; these are
    deleted, too, to save space.
    """
    date = parse_date(before)
    result = with_engine(lambda engine: engine.purge(before=date, dry_run=is_dry))
    emit(result, lambda console, result: _render_purge(console, result, is_dry=is_dry))


def _render_purge(console: Console, result: PurgeResult, *, is_dry: bool) -> None:
    for version in result.versions[:_MAX_VERSIONS]:
        console.print(named(f"  {version.document_id}, from {version.since[:19]} to {version.ended_at[:19]} UTC"))
    if (n_more := len(result.versions) - _MAX_VERSIONS) > 0:
        console.print(f"  … and {n_more:,} more")
    versions = format_count(len(result.versions), "earlier version")
    if is_dry:
        console.print(f"{versions} would go, with cached replies that nothing needs. Nothing was deleted.")
    else:
        console.print(f"{versions} and {format_count(result.n_rows, 'other row')} dropped.")
