"""`quipu mirror`: keep the index equal to a folder."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand, budget_option, load_settings, no_model_option, with_engine
from quipu.cli.output import emit, named
from quipu.cli.progress import progress
from quipu.cli.results import render_added
from quipu.model.results import MirrorResult
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.engine import Quipu

_SHOWN = 10


@click.command(
    "mirror",
    cls=QuipuCommand,
    examples=(
        "quipu mirror ./notes --dry-run",
        "quipu mirror ./notes",
        "quipu mirror ./notes --watch",
        "quipu mirror ./notes --allow-removals",
    ),
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Document ids are paths relative to this folder.",
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Only tell what would change; change nothing.")
@click.option("--allow-removals", is_flag=True, help="Also remove where most files of the folder are gone.")
@click.option("--watch", "is_watching", is_flag=True, help="Go on, and mirror every change, until Ctrl-C.")
@no_model_option
@budget_option
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No progress; no summary unless a document failed.")
def command(
    *,
    folder: Path,
    root: Path | None,
    is_dry: bool,
    allow_removals: bool,
    is_watching: bool,
    has_no_model: bool,
    budget: str | None,
    is_quiet: bool,
) -> int:
    """Keep the index equal to a folder.

    New files are added, changed ones updated, and the documents of files that are gone are removed; only documents that
    a mirror of this folder has seen. A moved file keeps what a model read of it. Unchanged files are not even read.
    Files that .quipuignore names, in the syntax of .gitignore, are left out. Where most files are gone, as in a folder
    that is not mounted, nothing changes without --allow-removals. An interrupted mirror is finished by the next one.
    The exit code is 1 if a document failed or the work stopped.
    """
    if is_watching and (is_dry or allow_removals):
        raise click.UsageError("--watch does not go with --dry-run or --allow-removals.")
    settings = load_settings(has_no_model=has_no_model, budget=budget)
    if is_dry:
        plan = with_engine(lambda kb: kb.mirror(folder, root=root, dry_run=True), settings, create=True)
        emit(plan, _render_plan)
        return 0
    with progress(is_quiet=is_quiet) as on_event:

        async def work(kb: "Quipu") -> int:
            if not is_watching:
                result = await kb.mirror(folder, root=root, allow_removals=allow_removals, on_event=on_event)
                return _finish(result, is_quiet=is_quiet)
            with suppress(asyncio.CancelledError):
                async for result in kb.watch(folder, root=root, on_event=on_event):
                    _finish(result, is_quiet=is_quiet)
            return 0

        return with_engine(work, settings, create=True)


def _finish(result: MirrorResult, *, is_quiet: bool) -> int:
    """Print what a mirror did, and return the exit code."""
    added = result.added
    assert added is not None, "only a dry run adds nothing"
    is_complete = not (added.failed or added.stopped)
    if not is_quiet or not is_complete:
        emit(result, _render)
    return 0 if is_complete else 1


def _render(console: Console, result: MirrorResult) -> None:
    added = result.added
    assert added is not None
    n_moved, n_same = len(result.renamed), result.n_unchanged + added.n_unchanged
    counts = [
        f"{format_count(added.n_added - n_moved, 'document')} added",
        f"{added.n_updated:,} updated",
        f"{len(result.removed) - n_moved:,} removed",
        *([f"{n_moved:,} moved"] if n_moved else []),
        f"{n_same:,} unchanged",
        *([f"{len(added.failed):,} failed"] if added.failed else []),
    ]
    render_added(console, added, f"{', '.join(counts)}.")


def _render_plan(console: Console, plan: MirrorResult) -> None:
    moved = dict(plan.renamed)
    lists = (
        ("to add", [name for name in plan.new if name not in moved.values()]),
        ("to update", plan.changed),
        ("to remove", [name for name in plan.removed if name not in moved]),
        ("moved", [f"{old} → {new}" for old, new in plan.renamed]),
    )
    for title, names in lists:
        _print_names(console, title, names)
    if not any(names for _, names in lists):
        console.print("Nothing would change.")
    console.print(f"{format_count(plan.n_unchanged, 'file')} unchanged. Nothing was changed.")


def _print_names(console: Console, title: str, names: Sequence[str]) -> None:
    if names:
        console.print(f"{len(names):,} {title}:")
    for name in names[:_SHOWN]:
        console.print(named(f"  {name}"))
    if len(names) > _SHOWN:
        console.print(f"  … and {len(names) - _SHOWN:,} more")
