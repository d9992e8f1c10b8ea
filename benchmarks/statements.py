"""Count the statements that a document and a question cost, on SQLite and on PostgreSQL.

    python benchmarks/statements.py [FOLDER]

The documents are those of FOLDER, by default the demo corpus; local rules read them, and the default embedder embeds.
A statement is a round trip to the server, so the table also says how long the work waits at 1 ms to the server. CPU is
that of this process. A server is started for the benchmark; without PostgreSQL, its lines are missing.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sqlalchemy import Engine, event

from quipu.engine import Quipu
from quipu.errors import Unavailable
from quipu.model.query import Query
from quipu.settings import Settings
from quipu.testing.postgres_server import serving
from quipu.wiring import open_engine

CORPUS = Path(__file__).resolve().parents[1] / "src/quipu/testing/corpora/demo"
STRATEGIES = ("lexical", "mix", "weave")
DOCUMENT = "Ibn Battuta met merchants of Venice in Quanzhou. He never met Marco Polo, who met Kublai Khan in Shangdu."
QUESTION = "Whom did Ibn Battuta meet in Quanzhou?"
ROUND_TRIP_MS = 1


async def counted(work: Callable[[], Awaitable[object]]) -> tuple[int, float]:
    """Return how many statements some work sends, and its CPU in milliseconds."""
    n_statements = 0

    def count(*_: object) -> None:
        nonlocal n_statements
        n_statements += 1

    event.listen(Engine, "before_cursor_execute", count)
    start = time.process_time()
    try:
        await work()
    finally:
        event.remove(Engine, "before_cursor_execute", count)
    return n_statements, 1_000 * (time.process_time() - start)


async def measure(settings: Settings, database: str, corpus: Path) -> None:
    """Print the lines of one database."""
    async with await open_engine(settings) as kb:
        await kb.add(corpus, root=corpus)
        await kb.add_text(f"{DOCUMENT} So it is told.", id="before")  # so that every statement is compiled
        _print(database, "one more document", *await counted(lambda: kb.add_text(DOCUMENT, id="one more")))
        for strategy in STRATEGIES:
            await _ask(kb, strategy, "Who ruled in Shangdu?")
            _print(database, f"a question, {strategy}", *await counted(lambda name=strategy: _ask(kb, name, QUESTION)))  # type: ignore[misc]


async def _ask(kb: Quipu, strategy: str, text: str) -> None:
    await kb.retrieve(Query(text=text, strategy=strategy))


def _print(database: str, work: str, n_statements: int, cpu_ms: float) -> None:
    print(f"{database:12} {work:22} {n_statements:10,} {n_statements * ROUND_TRIP_MS:10,} ms {cpu_ms:8.1f} ms")


def main() -> None:
    """Measure both databases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=CORPUS)
    corpus: Path = parser.parse_args().folder
    print(f"{'database':12} {'work':22} {'statements':>10} {f'wait at {ROUND_TRIP_MS} ms':>13} {'CPU':>11}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(measure(Settings(index=folder / "kb"), "SQLite", corpus))
        try:
            with serving() as server:
                settings = Settings(index=server.address(), cache=folder / "cache")
                asyncio.run(measure(settings, "PostgreSQL", corpus))
        except Unavailable as error:
            print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
