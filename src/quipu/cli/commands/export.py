"""`quipu export`: the graph as a file or a folder."""

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.atomic_file import remove_files, replace_atomically
from quipu.cli.asking import filter_options
from quipu.cli.options import QuipuCommand, with_engine
from quipu.cli.output import emit, styled
from quipu.engine.graph_export import FORMATS
from quipu.errors import InvalidInput, NotFound
from quipu.model.query import Filter

if TYPE_CHECKING:
    from quipu.engine import Quipu

_ZIP = ".zip"


@click.command(
    "export",
    cls=QuipuCommand,
    examples=(
        "quipu export graph.html",
        "quipu export people.graphml --type Person",
        "quipu export vault --format obsidian",
        "quipu export tables.csv.zip",
        'quipu export late.cypher --where "year >= 1900"',
    ),
    help="Write the graph to FILE: entities and their relations, in some formats documents, too.\n\n\b\n"
    + "\n".join(f"{name:9} {written.purpose}" for name, written in FORMATS.items())
    + "\n\nA format that is a folder of files becomes a folder, or one archive if FILE ends in .zip. The page holds "
    "the 10,000 entities with the most relations. Nothing of an earlier FILE is left, and a failure leaves it as it "
    "was; a folder must be new or empty.",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "format_name", type=click.Choice(list(FORMATS)), help="By default, as FILE ends.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only entities of this type; more than once: any.")
@click.option("--community", "communities", multiple=True, metavar="ID", help="Only entities of this community.")
@filter_options
def command(
    *, file: Path, format_name: str | None, types: tuple[str, ...], communities: tuple[str, ...], allowed: Filter
) -> None:
    """Write the graph to a file or a folder."""
    name = format_name or _format_of(file)
    is_folder = FORMATS[name].is_folder and file.suffix.lower() != _ZIP
    _check_target(file, is_folder=is_folder)
    unfinished = file.with_name(f".{file.name}.unfinished")
    archive = file.with_name(f".{file.name}.zip") if is_folder else file

    async def write(engine: "Quipu") -> int:
        try:
            with replace_atomically(archive, unfinished) as opened:
                options = {"types": types, "communities": communities}
                async for piece in engine.export_graph(name, filter=allowed, **options):
                    opened.write(piece)
                n_bytes = opened.tell()
            return _unpack(archive, file) if is_folder else n_bytes
        finally:
            remove_files([unfinished, *([archive] if is_folder else [])])

    emit({"file": str(file), "format": name, "bytes": with_engine(write)}, _render_export)


def _format_of(file: Path) -> str:
    suffix = file.with_suffix("").suffix if file.suffix.lower() == _ZIP else file.suffix
    names = [name for name, written in FORMATS.items() if written.suffix == suffix.lower()]
    if not names or names == ["obsidian"]:  # a note is no vault
        raise InvalidInput(f"The name {file.name!r} says no format.", remedy=f"Add --format: {', '.join(FORMATS)}.")
    return names[0]


def _check_target(file: Path, *, is_folder: bool) -> None:
    """Raise an error for a place that cannot be written, before anything is read."""
    if not file.absolute().parent.is_dir():
        raise NotFound(f"There is no folder {str(file.parent)!r}.", remedy="Create it, or name another file.")
    if is_folder and file.exists() and not (file.is_dir() and not any(file.iterdir())):
        raise InvalidInput(
            f"{str(file)!r} is not an empty folder.", remedy="Name a new folder, or an archive that ends in .zip."
        )
    if not is_folder and file.is_dir():
        raise InvalidInput(f"{str(file)!r} is a folder.", remedy="Name a file.")


def _unpack(archive: Path, folder: Path) -> int:
    """Unpack an archive into a folder that appears when it is complete; return the bytes of its files.

    Where the folder is a link to an empty one, that one is filled.
    """
    folder = folder.resolve()
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as place:
        unfinished = Path(place) / folder.name
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(unfinished)
            n_bytes = sum(entry.file_size for entry in opened.infolist())
        if folder.is_dir():
            folder.rmdir()
        unfinished.rename(folder)
        return n_bytes


def _render_export(console: Console, result: dict[str, object]) -> None:
    console.print(styled(f"{result['file']}: {result['bytes']:,} bytes of {result['format']}."))
