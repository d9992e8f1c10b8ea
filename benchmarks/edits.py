"""What an edit costs: the CPU time of making one and of asking after it, by how many chunks mention its entity.

    python benchmarks/edits.py [--documents N]

Each of N documents mentions one entity of its own; 10, 100 and 1,000 of them mention one more. Times are CPU
milliseconds of this process, the median of five edits that are then undone.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import quipu
from quipu import EditKind, EditRequest, Quipu, SourceDocument

_N_REPEATS = 5
_NAMES = {1: "Keeper One", 10: "Harbour Office", 100: "Coast Guard", 1_000: "Lighthouse Board"}


async def main(n_documents: int) -> None:
    """Build the index and print a table."""
    with tempfile.TemporaryDirectory() as folder:
        async with quipu.open(Path(folder) / "kb") as kb:
            await kb.add(*(_document(number, n_documents) for number in range(n_documents)))
            print(f"{'mentions':>10} {'edit, ms':>10} {'undo, ms':>10} {'question after, ms':>20} {'before, ms':>12}")
            for n_mentions, name in sorted(_NAMES.items()):
                if n_mentions <= n_documents:
                    await _measure(kb, name, n_mentions)


def _document(number: int, n_documents: int) -> SourceDocument:
    names = [
        name for n, name in _NAMES.items() if n > 1 and number * n // n_documents != (number - 1) * n // n_documents
    ]
    names += ["Keeper One"] if number == 0 else []
    text = " ".join(f"The {name} wrote to Watchman {number} Olsen about lamp {number}." for name in [*names, "Town"])
    return SourceDocument(id=f"{number}.md", content=text.encode())


async def _measure(kb: Quipu, name: str, n_mentions: int) -> None:
    question = f"What did the {name} write about?"
    await kb.retrieve(question)
    before = [await _cpu_ms(lambda: kb.retrieve(question)) for _ in range(_N_REPEATS)]
    made, undone, after = list[float](), list[float](), list[float]()
    for number in range(_N_REPEATS):
        request = EditRequest(kind=EditKind.RETYPE, entities=(name,), type=f"Kind {number}")
        made.append(await _cpu_ms(partial(kb.edits.make, request)))
        after.append(await _cpu_ms(lambda: kb.retrieve(question)))
        (edit,) = (await kb.edits.history(k=1)).edits
        undone.append(await _cpu_ms(partial(kb.edits.undo, [edit.id])))
    values = (statistics.median(times) for times in (made, undone, after, before))
    edit_ms, undo_ms, after_ms, before_ms = values
    print(f"{n_mentions:>10} {edit_ms:>10.1f} {undo_ms:>10.1f} {after_ms:>20.1f} {before_ms:>12.1f}")


async def _cpu_ms(work: Callable[[], Awaitable[object]]) -> float:
    start = time.process_time()
    await work()
    return 1_000 * (time.process_time() - start)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=4_000)
    asyncio.run(main(parser.parse_args().documents))
