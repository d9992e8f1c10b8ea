"""`quipu add`: add files, folders or text to the index."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quipu.cli.options import QuipuCommand, budget_option, load_settings, no_model_option, with_engine
from quipu.cli.output import emit
from quipu.cli.progress import progress
from quipu.cli.results import finish_adding, render_estimate
from quipu.errors import InvalidDocument
from quipu.model.chunking import TAKES, Chunking
from quipu.model.document import Metadata, MetadataValue, SourceDocument
from quipu.model.event import Event
from quipu.model.results import AddResult
from quipu.model.usage import Estimate

if TYPE_CHECKING:
    from quipu.engine import Quipu
    from quipu.settings import Settings

_STDIN = "-"
_TEXT_TYPE = "text/markdown"
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The arguments of the command: what to add."""

    paths: tuple[Path, ...]
    text: str | None
    identifier: str | None
    title: str
    metadata: Metadata
    root: Path | None
    chunking: Chunking | None
    reread: bool


_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\f": "\f", "\\\\": "\\"}
_OPTIONS = (
    click.option("--chunker", "method", type=click.Choice(list(TAKES)), help="Chunking method for these documents."),
    click.option("--chunk-tokens", "max_tokens", type=int, metavar="N", help="Maximum tokens of a chunk."),
    click.option("--chunk-overlap", "overlap", type=int, metavar="N", help="Tokens repeated from the previous chunk."),
    click.option("--chunk-separator", "separator", metavar="TEXT", help=r"Text to cut at; \f ends a page."),
    click.option(
        "--chunk-percentile",
        "percentile",
        type=int,
        metavar="N",
        help="Percentage of boundaries without a cut.",
    ),
)


def chunking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `parse_chunking`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def parse_chunking(**options: str | int | None) -> Chunking | None:
    """Return the chunking that the options describe, or None if there are none.

    --chunker starts from that chunker's defaults; without it, the options change the chunker of the settings. Raises
    InvalidInput for options that do not fit together.
    """
    values: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if "separator" in values:
        values["separator"] = re.sub(r"\\[ntf\\]", lambda match: _ESCAPES[match[0]], values["separator"])
    if not values:
        return None
    return Chunking(**values) if "method" in values else replace(load_settings().default_chunking, **values)


@click.command(
    "add",
    cls=QuipuCommand,
    examples=(
        "quipu add ./notes",
        "quipu add report.html --meta region=Asia --meta year=1907",
        'quipu add --text "Bi Sheng made movable type." --id bi-sheng',
        "man sqlite3 | quipu add - --id sqlite3 --title sqlite3",
        "quipu add ./logs --chunker fixed --chunk-tokens 512 --chunk-overlap 64",
        r"quipu add minutes.md --chunker separator --chunk-separator '\n---\n'",
        "quipu add ./reports --dry-run --sample 20",
        "quipu add ./reports --budget 5.00",
        "quipu add ./archive --engine ray",
        "quipu add ./reports --reread --dry-run",
        r"quipu add slides.pdf --chunker separator --chunk-separator '\f'",
    ),
)
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option("--text", help="Add this text instead of files.")
@click.option("--id", "identifier", help="Id of the one document added; by default its path or the hash of its text.")
@click.option("--title", default="", help="Title of the one document added; by default its own.")
@click.option("--meta", "pairs", multiple=True, metavar="KEY=VALUE", help="Metadata of every document added.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Document ids are paths relative to this folder.",
)
@chunking_options
@click.option(
    "--reread", is_flag=True, help="Also read unchanged documents again if another model or other settings read them."
)
@click.option(
    "--engine", type=click.Choice(["local", "ray"]), help="What reads documents: this process, or a Ray cluster."
)
@no_model_option
@budget_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Only estimate calls, tokens, cost and time; add nothing.")
@click.option(
    "--sample", "n_sample", type=click.IntRange(1, 1_000), metavar="N", help="With --dry-run: read N chunks to measure."
)
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No progress; no summary unless a document failed.")
def command(
    *,
    paths: tuple[str, ...],
    text: str | None,
    identifier: str | None,
    title: str,
    pairs: tuple[str, ...],
    root: Path | None,
    reread: bool,
    engine: str | None,
    has_no_model: bool,
    budget: str | None,
    is_dry: bool,
    n_sample: int | None,
    is_quiet: bool,
    **chunking: str | int | None,
) -> int:
    """Add files, folders or text to the index.

    PATH is a file, a folder, or - for standard input. A file added again is an update: only changed chunks are read. An
    unchanged file is not read again, even if the model, ontology or glossary changed since; --reread reads it with the
    current settings. Chunking comes from the settings, from a rule in quipu.toml, or from the options here. With a
    language model, --dry-run estimates the cost, --budget stops the work before it costs more, and --no-model uses
    local rules instead. --engine ray reads and embeds on a Ray cluster, without language models. The exit code is 1 if
    a document failed, the work stopped, or no chunk could be read; finished documents stay in the index.
    """
    if n_sample and not is_dry:
        raise click.UsageError("--sample needs --dry-run.")
    if _STDIN in paths:
        if len(paths) > 1 or text is not None:
            raise click.UsageError("Standard input (-) cannot be combined with other paths or --text.")
        paths, text = (), _read_stdin()
    request = _Request(
        paths=tuple(map(Path, paths)),
        text=text,
        identifier=identifier,
        title=title,
        metadata=parse_metadata(pairs),
        root=root,
        chunking=parse_chunking(**chunking),
        reread=reread,
    )
    _check(request)
    settings = load_settings(has_no_model=has_no_model, budget=budget, engine=engine)
    if is_dry:
        return _print_estimate(request, n_sample or 0, settings, is_quiet=is_quiet)
    with progress(is_quiet=is_quiet) as on_event:
        report = with_engine(lambda engine: _add(engine, request, on_event), settings, create=True)
    return finish_adding(report, is_quiet=is_quiet)


def _print_estimate(request: _Request, n_sample: int, settings: "Settings", *, is_quiet: bool) -> int:
    """Print what adding would cost, and return the exit code."""
    with progress(is_quiet=is_quiet) as on_event:
        estimate = with_engine(lambda engine: _estimate(engine, request, n_sample, on_event), settings, create=True)
    emit(estimate, render_estimate)
    return int(0 < estimate.n_sampled == estimate.n_sample_failed)


def _check(request: _Request) -> None:
    """Check the request before anything is opened. Raises UsageError."""
    if bool(request.paths) == (request.text is not None):
        raise click.UsageError("Name what to add: a PATH, - for standard input, or --text.")
    if request.text is not None and not request.text.strip():
        raise click.UsageError("The text is empty: there is nothing to add.")
    if request.identifier is not None:
        from quipu.ingest.sources import checked_id

        checked_id(request.identifier)
    missing = [path for path in request.paths if not path.exists()]
    if missing:
        raise click.UsageError(f"There is no file or folder {str(missing[0])!r}.")
    names_one = request.text is not None or (len(request.paths) == 1 and request.paths[0].is_file())
    if (request.identifier or request.title) and not names_one:
        raise click.UsageError("--id and --title are for one document: add one file or text.")


async def _add(engine: "Quipu", request: _Request, on_event: Callable[[Event], None]) -> AddResult:
    return await engine.add(
        *_sources(request),
        root=request.root,
        metadata=request.metadata,
        chunking=request.chunking,
        reread=request.reread,
        on_event=on_event,
    )


async def _estimate(engine: "Quipu", request: _Request, n_sample: int, on_event: Callable[[Event], None]) -> Estimate:
    return await engine.estimate(
        *_sources(request),
        root=request.root,
        metadata=request.metadata,
        chunking=request.chunking,
        reread=request.reread,
        n_sample=n_sample,
        on_event=on_event,
    )


def _sources(request: _Request) -> Sequence[Path | SourceDocument]:
    """Return the sources to add: a text, one file with another id or title, or files and folders."""
    from quipu.ingest.sources import text_source

    if request.text is not None:
        return [text_source(request.text, request.identifier, title=request.title, media_type=_TEXT_TYPE)]
    return [_renamed(request)] if request.identifier or request.title else request.paths


def _renamed(request: _Request) -> SourceDocument:
    """Return the one file of the request with the id and title given for it."""
    from quipu.ingest.sources import UnreadableSource, find_sources
    from quipu.parse import FILE_TYPES

    root = request.root or load_settings().outer_folder.absolute()
    source = next(find_sources(request.paths, root=root, file_types=FILE_TYPES))
    if isinstance(source, UnreadableSource):
        raise source.error
    if not isinstance(source, SourceDocument):
        raise InvalidDocument(f"{request.paths[0]} cannot be read.", remedy="Name a single file.")
    return replace(source, id=request.identifier or source.id, title=request.title or source.title)


def _read_stdin() -> str:
    from quipu.ingest.sources import MAX_BYTES

    content = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InvalidDocument(f"Standard input holds more than {MAX_BYTES:,} bytes.", remedy="Split it into files.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidDocument(
            f"Standard input is not UTF-8 text (byte {error.start}).",
            remedy="Convert it, as in `iconv -f WINDOWS-1251 -t UTF-8`, or add it as a file.",
        ) from None


def parse_metadata(pairs: tuple[str, ...]) -> Metadata:
    """Return `key=value` pairs as metadata: true, false and numbers are converted, all other values are texts."""
    return dict(_pair(pair) for pair in pairs)


def _pair(text: str) -> tuple[str, MetadataValue]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise click.UsageError(f"--meta {text!r} is not key=value.")
    return key.strip(), _natural(value.strip())


def _natural(value: str) -> MetadataValue:
    """Return a boolean or number if `value` is written like one; not `nan`, not `1_000`, not `007`."""
    if value.casefold() in _BOOLEANS:
        return _BOOLEANS[value.casefold()]
    if re.fullmatch(r"-?(0|[1-9]\d*)", value):
        return int(value)
    if re.fullmatch(r"-?(0|[1-9]\d*)\.\d+", value):
        return float(value)
    return value
