"""`quipu backup` and `quipu restore`: everything that an index holds, as one file."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand, command_line, load_settings, with_engine
from quipu.cli.output import emit, styled
from quipu.cli.progress import progress
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.ports.history import ArchiveSummary

_MEGABYTE = 1_000_000
_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.command(
    "backup",
    cls=QuipuCommand,
    examples=(
        "quipu backup kb.quipu",
        "quipu backup --check kb.quipu",
        "quipu --index ./kb backup /mnt/kb.quipu --json",
    ),
)
@_FILE
@click.option("--check", "is_check", is_flag=True, help="Read the archive FILE, and say whether it is whole.")
def backup(file: Path, is_check: bool) -> None:
    """Write everything that the index holds to one archive.

    That is every fact, waiting work, paid replies, usage, conversations, edits, vectors and all other derivations, as
    of one moment, while others may write. FILE appears when it is complete. The archive has a digest, and does not
    depend on the kind of database. Whoever has the archive has your documents.
    """
    with progress() as on_event:
        if is_check:
            from quipu.wiring.restoring import check_archive

            summary = asyncio.run(check_archive(file, on_event))
        else:
            summary = with_engine(lambda engine: engine.backup(file, on_event))
    emit(summary, _render_checked if is_check else _render_backup)


@click.command(
    "restore",
    cls=QuipuCommand,
    examples=("quipu --index ./kb restore kb.quipu", "quipu restore kb.quipu --replace"),
)
@_FILE
@click.option("--replace", "is_replacing", is_flag=True, help="Replace the index that is there.")
def restore(file: Path, is_replacing: bool) -> None:
    """Make the index again from an archive of `quipu backup`.

    The archive is read and checked to its end before anything is changed: one that was truncated or altered is refused
    whole. Nothing is computed or paid for again. A process that has a replaced index open must open it again.
    """
    from quipu.wiring.restoring import restore_index

    settings = load_settings()
    with progress() as on_event:
        summary = asyncio.run(restore_index(file, settings, replace=is_replacing, on_event=on_event))
    emit(summary, _render_restore)


def _render_backup(console: Console, summary: "ArchiveSummary") -> None:
    console.print(styled(f"{summary.file}: {_contents(summary)}."))


def _render_checked(console: Console, summary: "ArchiveSummary") -> None:
    console.print(styled(f"Whole: {summary.file} of {summary.created_at}, {_contents(summary)}.", "green"))


def _render_restore(console: Console, summary: "ArchiveSummary") -> None:
    console.print(styled(f"Restored as of {summary.created_at}: {_contents(summary)}."))
    console.print(styled(f"`{command_line('verify')}` recomputes it from its facts and compares.", "dim"))


def _contents(summary: "ArchiveSummary") -> str:
    counts = (format_count(summary.n_documents, "document"), format_count(summary.n_chunks, "chunk"))
    return f"{', '.join(counts)}, {summary.n_bytes / _MEGABYTE:,.1f} MB"
