"""Count the statements and the round trips that a document and a question cost, on SQLite and on PostgreSQL.

    python benchmarks/statements.py [FOLDER]

The documents are those of FOLDER, by default the demo corpus; local rules read them, and the default embedder embeds.
A relay between the client and the server counts the round trips, and makes each a millisecond longer for the last
column, the time of the work. CPU is that of this process, without the relay. A server is started for the benchmark;
without PostgreSQL, its lines are missing.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import Engine, event

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that it runs as a file, too

from benchmarks.relay import Relay, relayed
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
DELAY_S = 0.001


@dataclass(frozen=True, slots=True)
class Cost:
    """What some work cost."""

    n_statements: int
    n_round_trips: int
    cpu_ms: float
    wall_ms: float


async def cost_of(work: Callable[[], Awaitable[object]], relay: Relay | None) -> Cost:
    """Do some work and return its cost."""
    n_statements = 0

    def count(*_: object) -> None:
        nonlocal n_statements
        n_statements += 1

    n_before = relay.n_round_trips if relay else 0
    event.listen(Engine, "before_cursor_execute", count)
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    try:
        await work()
    finally:
        event.remove(Engine, "before_cursor_execute", count)
    return Cost(
        n_statements=n_statements,
        n_round_trips=relay.n_round_trips - n_before if relay else 0,
        cpu_ms=1_000 * (time.process_time() - cpu_s),
        wall_ms=1_000 * (time.perf_counter() - wall_s),
    )


async def measure(settings: Settings, corpus: Path, relay: Relay | None = None) -> dict[str, Cost]:
    """Return what one more document and one question cost in an index with the corpus."""
    costs: dict[str, Cost] = {}
    async with await open_engine(settings) as kb:
        await kb.add(corpus, root=corpus)
        await kb.add_text(f"{DOCUMENT} So it is told.", id="before")  # so that every statement is compiled
        costs["one more document"] = await cost_of(lambda: kb.add_text(DOCUMENT, id="one more"), relay)
        for strategy in STRATEGIES:
            await _ask(kb, strategy, "Who ruled in Shangdu?")
            work = partial(_ask, kb, strategy, QUESTION)
            costs[f"a question, {strategy}"] = await cost_of(work, relay)
    return costs


async def _ask(kb: Quipu, strategy: str, text: str) -> None:
    await kb.retrieve(Query(text=text, strategy=strategy))


def measure_postgres(corpus: Path, delay_s: float) -> dict[str, Cost]:
    """Return the costs on a server of its own, whose round trips take `delay_s` longer."""
    with (
        serving() as server,
        relayed(server.folder, delay_s=delay_s) as relay,
        tempfile.TemporaryDirectory() as cache,
    ):
        settings = Settings(index=server.address(host=relay.folder), cache=Path(cache))
        return asyncio.run(measure(settings, corpus, relay))


def main() -> None:
    """Measure both databases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=CORPUS)
    corpus: Path = parser.parse_args().folder
    print(f"{'database':11} {'work':20} {'statements':>11} {'round trips':>12} {'CPU':>9} {'time at 1 ms':>13}")
    with tempfile.TemporaryDirectory() as name:
        for work, cost in asyncio.run(measure(Settings(index=Path(name) / "kb"), corpus)).items():
            print(f"{'SQLite':11} {work:20} {cost.n_statements:11,} {'-':>12} {cost.cpu_ms:6.1f} ms {'-':>13}")
    try:
        near, far = (measure_postgres(corpus, delay_s) for delay_s in (0.0, DELAY_S))
    except Unavailable as error:
        print(error, file=sys.stderr)
        return
    for work, cost in near.items():
        counts = f"{cost.n_statements:11,} {cost.n_round_trips:12,}"
        print(f"{'PostgreSQL':11} {work:20} {counts} {cost.cpu_ms:6.1f} ms {far[work].wall_ms:10.1f} ms")


if __name__ == "__main__":
    main()
