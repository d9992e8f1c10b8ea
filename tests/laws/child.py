"""Child processes of the laws: live through a fixed history, and die where they are told to.

Run as `python -m tests.laws.child WORK …`; see `main`.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event

from quipu.ingest import pipeline
from quipu.ingest.extraction import chunk_facts
from quipu.ingest.local import LocalExtractor
from quipu.model.delta import ChunkFacts
from quipu.model.document import SourceDocument
from quipu.model.extraction import ChunkInput, Extraction
from quipu.model.graph import Chunk
from quipu.ports.ingest import ExtractionResult
from quipu.stores.sqlite.backend import SqliteBackend
from tests.laws.mortal import Life, forked, jobs, tell
from tests.laws.world import DATABASE_VARIABLE, document, engine, state

NAMES = tuple(f"{letter}.md" for letter in "abcdefgh")
EXACT_BELOW = 10


class CountingExtractor(LocalExtractor):
    """The local extractor, noting in a file the hash of every input it is asked for."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Note each input, then extract."""
        with self._log.open("a") as log:
            log.writelines(f"{entry.hash(self.identity)}\n" for entry in inputs)
        async for outcome in super().extract(inputs):
            yield outcome


def history() -> list[tuple[list[SourceDocument], list[str]]]:
    """Return the steps of the history: documents to add together, then documents to remove."""
    first = [document(name, 0) for name in NAMES[:5]]
    second = [document(name, 1) for name in NAMES[2:]]
    third = [document(name, 2) for name in NAMES[:3]]
    return [(first, []), (second, ["b.md"]), (third, ["h.md", "c.md"])]


async def live(
    folder: Path,
    *,
    extractor: CountingExtractor | None = None,
    acknowledged: Path | None = None,
    first_step: int = 0,
) -> None:
    """Live through the history from a step on, noting each step that was acknowledged."""
    async with engine(folder, extractor=extractor, exact_below=EXACT_BELOW) as kb:
        for number, (added, removed) in list(enumerate(history()))[first_step:]:
            await kb.add(*added)
            known = {document.id for document in await kb.documents()}
            await kb.remove([name for name in removed if name in known])
            if acknowledged is not None:
                with acknowledged.open("a") as log:
                    log.write(f"{number}\n")


class Fuse:
    """Kills this process, by SIGKILL, at the n-th of the points it is told of."""

    def __init__(self, n: int) -> None:
        self.n = n

    def burn(self, *_: Any, **__: Any) -> None:
        """Pass one point."""
        self.n -= 1
        if self.n == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def _watch_statements(fuse: Fuse) -> None:
    event.listen(Engine, "before_cursor_execute", fuse.burn)


def _watch_files(fuse: Fuse) -> None:
    """Pass a point before and after each rename and each sync of a file: the swaps of an index."""
    for name in ("replace", "rename", "fsync"):
        original = getattr(os, name)

        def watched(*args: Any, original: Any = original, **kwargs: Any) -> Any:
            fuse.burn()
            result = original(*args, **kwargs)
            fuse.burn()
            return result

        setattr(os, name, watched)


@contextmanager
def _without_transaction(backend: SqliteBackend) -> Iterator[Connection]:
    """Return a connection without a transaction: each statement is written at once."""
    with backend._engine.connect() as connection:
        yield connection


def seed_fault(name: str) -> None:
    """Break the code under test, to show that the law's test notices."""
    if name == "no write transaction":
        SqliteBackend.writing = _without_transaction  # type: ignore[assignment, method-assign]
    elif name == "order of a set":
        pipeline.chunk_facts = _facts_in_set_order  # type: ignore[attr-defined]


def _facts_in_set_order(chunk: Chunk, extraction: Extraction) -> ChunkFacts:
    facts = chunk_facts(chunk, extraction)
    by_key = {mention.key: mention for mention in facts.entities}
    return replace(facts, entities=tuple(by_key[key] for key in set(by_key)))


def _live_and_die(folder: Path, kind: str, n: int, fault: str, server: str = "") -> None:
    seed_fault(fault)
    if server:
        os.environ[DATABASE_VARIABLE] = server
    fuse = Fuse(n)
    {"statement": _watch_statements, "file": _watch_files}[kind](fuse)
    beside = folder.parent
    extractor = CountingExtractor(beside / f"{folder.name}.asked")
    asyncio.run(live(folder, extractor=extractor, acknowledged=beside / f"{folder.name}.acks"))
    _points_of(folder).write_text(f"{n - fuse.n}")


def warm_up() -> None:
    """Live through the history once, so that forks find every module loaded and every statement compiled."""
    os.environ.pop(DATABASE_VARIABLE, None)  # a job names its server
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(Path(folder) / "warm"))


def _points_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.points")


def main() -> None:
    """`live`: for each job FOLDER, KIND, N, FAULT [SERVER] live and die at the N-th statement or file operation.

    With an N of 0 it lives, and all are counted. `state FOLDER FAULT`: build everything once without and once with a
    fault, and print dumps and rankings. A FAULT named is seeded, "sound" is none.
    """
    if sys.argv[1] == "live":
        warm_up()
        for name, kind, n, *others in jobs():
            folder = Path(name)
            code = forked(partial(_live_and_die, folder, kind, int(n), *others))
            points = _points_of(folder)
            tell(Life(code=code, n_points=int(points.read_text()) if points.exists() else 0, stage=""))
    else:
        folder = Path(sys.argv[2])
        sound = asyncio.run(_built(folder / "sound"))
        seed_fault(sys.argv[3])
        print(json.dumps([sound, asyncio.run(_built(folder / "broken"))]))


async def _built(folder: Path) -> list[str]:
    async with engine(folder, exact_below=EXACT_BELOW) as kb:
        await kb.add(*(document(name, 3) for name in NAMES))
        return [line for lines in await state(kb) for line in lines]


if __name__ == "__main__":
    main()
