"""`quipu bench speed`: what adding documents and asking about them cost as an index grows, beside LightRAG if asked."""

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from quipu.cli.options import QuipuCommand, load_settings, split_names
from quipu.cli.output import Column, emit, print_wide, stderr, styled
from quipu.cli.progress import progress

if TYPE_CHECKING:
    from quipu.bench.peers import LightRag
    from quipu.bench.speed import PeerSpeed, SizeSpeed, SpeedReport
    from quipu.settings import Settings

SIZES = (200, 1_000, 4_000)  # chunks
PEER_UP_TO = 1_000  # chunks: LightRAG takes minutes for 4,000
TIMED = ("weave", "mix", "naive", "lexical")
SEED = 1
CACHE = Path(tempfile.gettempdir()) / "quipu-bench"


@click.command(
    "speed",
    cls=QuipuCommand,
    examples=(
        "quipu bench speed ./docs",
        "quipu bench speed ./docs --size 500 --size 2000 -s weave,ppr",
        "quipu bench speed ./docs --peers",
        "quipu bench speed ./docs --json",
    ),
)
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--size",
    "sizes",
    multiple=True,
    type=click.IntRange(1),
    default=SIZES,
    metavar="N",
    help=f"Chunks at which to measure; may be given several times. [{', '.join(map(str, SIZES))}]",
)
@click.option(
    "-s", "--strategies", "listed", default=",".join(TIMED), metavar="NAMES", help=f"To ask with. [{','.join(TIMED)}]"
)
@click.option("--peers", "with_peers", is_flag=True, help="Also measure LightRAG, on the same chunks.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    default=CACHE,
    metavar="DIR",
    help="Where LightRAG is installed, once, in an environment of its own.",
)
def speed(folder: Path, sizes: tuple[int, ...], listed: str, *, with_peers: bool, cache: Path) -> int:
    """Measure what adding FOLDER and asking about it cost as the index grows, with your embedder.

    The documents are added to a new index, which is deleted afterwards; local rules read them, so no language model is
    asked. At each size one more document, its removal, questions and the opening of the index are timed. A strategy
    that needs a derivation which `quipu refresh` makes is left out.

    LightRAG is measured up to 1,000 chunks, unless you name sizes. What local rules read, vectors and the counting of
    tokens cost it nothing; Quipu's times include them. LightRAG makes the context of an answer, Quipu the answer too.
    """
    import asyncio

    from quipu.bench.speed import measure_speed
    from quipu.ingest.sources import find_sources
    from quipu.model.document import SourceDocument
    from quipu.parse import FILE_TYPES
    from quipu.retrieve import strategy_named

    names = split_names([listed])
    for name in names:
        strategy_named(name)
    root = folder.resolve()

    def readable(*paths: Path) -> "Iterator[SourceDocument]":
        found_sources = find_sources(paths, root=root, file_types=FILE_TYPES)
        return (source for source in found_sources if isinstance(source, SourceDocument))

    paths = [root / source.id for source in readable(root)]  # what `quipu add` would read; it is read again later
    random.Random(SEED).shuffle(paths)  # so that each size has documents of all folders
    sources = readable(*paths)
    with tempfile.TemporaryDirectory() as index, progress() as on_event:
        settings = load_settings().without_models().model_copy(update={"index": Path(index) / "kb"})

        async def measured() -> "SpeedReport":
            max_chunks = PEER_UP_TO if sizes == SIZES else max(sizes)
            peer = await _open_lightrag(settings, max_chunks, cache, Path(index)) if with_peers else None
            return await measure_speed(settings, sources, sizes, names, on_event, peer)

        report = asyncio.run(measured())
    emit(report, _render_speed)
    return 1 if report.failed or not report.sizes else 0


async def _open_lightrag(settings: "Settings", max_chunks: int, cache: Path, folder: Path) -> "LightRag":
    import asyncio

    from quipu.bench.peers import LightRag, install_lightrag
    from quipu.wiring import open_embedder

    environment = cache / "lightrag-venv"
    if not environment.exists():
        stderr().print(styled(f"Installing LightRAG in {environment}, which takes minutes, once.", "dim"))
    python = await asyncio.to_thread(install_lightrag, environment)
    embedder = await open_embedder(settings)
    return LightRag(python=python, folder=folder, embedder=embedder, max_chunks=max_chunks)


def _render_speed(console: Console, report: "SpeedReport") -> None:
    """Draw a row for each size of the index: what adding took, and the questions of each strategy; the same of a peer.

    A cell of the peer also says how many times Quipu's figure it is.
    """
    if not report.sizes:
        console.print(styled(report.note, "yellow"))
        return
    _print_sizes(console, report.sizes)
    console.print(
        styled(
            "Wall time, but for CPU; of a question the median / 95th percentile. Adding is counted from the size "
            "before; one more is a document of one chunk. Memory is the most that this process has had.",
            "dim",
        )
    )
    console.print(styled(f"Read by: {report.extractor}. Embedded by: {report.embedder}.", "dim"))
    if report.peer:
        _print_peer(console, report.peer, report.sizes)
    for strategy, error in report.failed:
        console.print(styled(f"left out: {strategy}. {error}", "yellow"))
    if report.note:
        console.print(styled(report.note, "yellow"))


def _print_peer(console: Console, peer: "PeerSpeed", sizes: Sequence["SizeSpeed"]) -> None:
    if peer.sizes:
        console.print(f"\n{peer.name}, and how many times Quipu's figure that is")
        _print_sizes(console, peer.sizes, sizes)
        note = (
            "What local rules read, and vectors, cost it nothing here. Its questions end with the context of an answer."
        )
        console.print(styled(note, "dim"))
    if peer.note:
        console.print(styled(peer.note, "yellow"))


def _print_sizes(console: Console, sizes: Sequence["SizeSpeed"], ours: Sequence["SizeSpeed"] = ()) -> None:
    """Print a row for each size. With `ours`, which are as many or more, each figure is also divided by the one there.

    Questions are then compared with those of the same strategy.
    """

    def cells(figure: Callable[["SizeSpeed"], float], digits: int) -> tuple[Text, ...]:
        return tuple(Text(_figure_and_ratio(figure(size), figure(own) if own else 0.0, digits)) for size, own in pairs)

    pairs = list(zip_longest(sizes, ours[: len(sizes)]))
    columns = [
        Column("add, ms a chunk", cells(lambda size: size.add_ms, 1)),
        Column("CPU ms a chunk", cells(lambda size: size.add_cpu_ms, 1)),
        Column("one more, ms", cells(lambda size: size.one_more_ms, 0)),
        Column("remove, ms", cells(lambda size: size.remove_ms, 0)),
        Column("open, ms", cells(lambda size: size.open_ms, 0)),
        Column("index, MB", cells(lambda size: size.n_bytes / 1e6, 1)),
        Column("memory, MB", cells(lambda size: size.peak_bytes / 1e6, 0)),
    ]
    for strategy in dict.fromkeys(question.strategy for size in sizes for question in size.questions):
        texts = tuple(Text(_question_cell(strategy, size, own)) for size, own in pairs)
        columns.append(Column(f"{strategy}, ms", texts))
    print_wide(console, [f"{size.n_chunks:,}" for size in sizes], columns, heading="chunks")


def _question_cell(strategy: str, size: "SizeSpeed", ours: "SizeSpeed | None") -> str:
    speed = {question.strategy: question for question in size.questions}.get(strategy)
    if speed is None:
        return "–"
    own = {question.strategy: question for question in ours.questions}.get(strategy) if ours else None
    median_ms = _figure_and_ratio(speed.median_ms, own.median_ms if own else 0.0, 0)
    return median_ms if own else f"{median_ms} / {speed.p95_ms:.0f}"


def _figure_and_ratio(figure: float, ours: float, digits: int) -> str:
    if not figure:
        return "–"
    return f"{figure:,.{digits}f} ({figure / ours:.1f}×)" if ours else f"{figure:,.{digits}f}"
