"""`quipu remove`: remove documents, and the facts that only they state."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.cli.document_ids import is_pattern, matching_ids
from quipu.cli.options import QuipuCommand, budget_option, load_settings, no_model_option, with_engine
from quipu.cli.output import emit, named, stderr
from quipu.cli.progress import progress
from quipu.cli.results import edit_summary, render_refresh
from quipu.model.results import RemovalPreview, RemoveResult
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.engine import Quipu

_SHOWN = 10


@click.command(
    "remove",
    cls=QuipuCommand,
    examples=(
        "quipu remove notes/a.md",
        "quipu remove 'letters/*'",
        "quipu remove 'letters/**/*.md' --dry-run",
        "quipu remove --all --yes",
    ),
)
@click.argument("ids", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Remove every document.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only tell what would go; remove nothing.")
@no_model_option
@budget_option
def command(ids: tuple[str, ...], is_all: bool, yes: bool, is_dry: bool, has_no_model: bool, budget: str | None) -> int:
    """Remove documents and the facts that only they state.

    IDS are paths from the current folder, document ids, or patterns of either. As in a shell, '*.md' means files of the
    current folder only, and '**' stands for any number of folders: '**/*.md' also means those below. A pattern that
    begins with a folder and matches nothing here is compared with whole ids. With a pattern or --all, the command asks
    before it removes. Derived data that depends on these documents, such as summaries, is then brought up to date. This
    may call a language model; --no-model leaves it for later. The exit code is 1 if something is still stale.
    """
    if bool(ids) == is_all:
        raise click.UsageError("Name documents, or use --all.")
    settings = load_settings(has_no_model=has_no_model, budget=budget)
    if is_dry:
        emit(with_engine(lambda engine: _preview(engine, ids, is_all=is_all), settings), _render_preview)
        return 0
    report = with_engine(lambda engine: _remove(engine, ids, is_all=is_all, is_sure=yes), settings)
    emit(report, _render)
    return 0 if report.refreshed.is_complete else 1


async def _preview(engine: "Quipu", ids: Sequence[str], *, is_all: bool) -> RemovalPreview:
    return await engine.preview_removal(await _chosen(engine, ids, is_all=is_all), k=_SHOWN)


async def _chosen(engine: "Quipu", ids: Sequence[str], *, is_all: bool) -> list[str]:
    known = [document.id for document in await engine.documents()]
    return known if is_all else matching_ids(ids, known)


async def _remove(engine: "Quipu", ids: Sequence[str], *, is_all: bool, is_sure: bool) -> RemoveResult:
    chosen = await _chosen(engine, ids, is_all=is_all)
    if not is_sure and chosen and (is_all or any(is_pattern(name) and name not in chosen for name in ids)):
        _confirm(chosen)
    with progress() as on_event:
        return await engine.remove(chosen, on_event=on_event)


def _confirm(chosen: Sequence[str]) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError(f"This removes {format_count(len(chosen), 'document')}: add --yes.")
    console = stderr()
    for document_id in chosen[:_SHOWN]:
        console.print(named(f"  {document_id}"))
    if len(chosen) > _SHOWN:
        console.print(f"  … and {len(chosen) - _SHOWN:,} more")
    click.confirm(f"Remove {format_count(len(chosen), 'document')}?", abort=True, err=True)


def _render_preview(console: Console, preview: RemovalPreview) -> None:
    parts = ((len(preview.documents), "document"), (preview.n_chunks, "chunk"), (preview.n_claims, "claim"))
    console.print(f"This would remove {', '.join(format_count(n, noun) for n, noun in parts if n)}.")
    counts = f"{format_count(preview.n_entities, 'entity')} and {format_count(preview.n_relations, 'relation')}"
    console.print(f"{counts} would go with them, because nothing else states them.")
    _print_names(console, [entity.name for entity in preview.entities], preview.n_entities)
    relations = [f"{relation.source_name} -- {relation.target_name}" for relation in preview.relations]
    _print_names(console, relations, preview.n_relations)
    entities = format_count(preview.n_entities_changed, "entity")
    console.print(f"{entities} and {format_count(preview.n_relations_changed, 'relation')} would lose a part.")
    if preview.n_clusters_changed:
        console.print(f"{format_count(preview.n_reports, 'report')} would be written again.")
        _print_names(console, [title for _, title in preview.reports], preview.n_reports)
    console.print(f"{format_count(preview.n_replies, 'saved reply')} of models would go.")
    for edits, what in ((preview.edits_lost, "have no target"), (preview.edits_changed, "change less")):
        if edits:
            console.print(f"{format_count(len(edits), 'edit')} would {what}.")
            _print_names(console, [f"{edit.id}: {edit_summary(edit.edit)}" for edit in edits[:_SHOWN]], len(edits))
    if preview.n_answers:
        console.print(f"The text of {format_count(preview.n_answers, 'answer')} in saved conversations would go.")


def _print_names(console: Console, names: Sequence[str], n_all: int) -> None:
    for name in names:
        console.print(named(f"  {name}"))
    if n_all > len(names):
        console.print(f"  … and {n_all - len(names):,} more")


def _render(console: Console, report: RemoveResult) -> None:
    for document_id in report.removed[:_SHOWN]:
        console.print(named(f"removed {document_id}"))
    who = "it" if len(report.removed) == 1 else "they"
    console.print(f"{format_count(len(report.removed), 'document')} removed, with the facts that only {who} stated.")
    if report.is_kept:
        console.print("What they said stays in the history, for --as-of. `quipu purge` deletes it.")
    render_refresh(console, report.refreshed)
