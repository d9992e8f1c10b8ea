"""Processes that write for the laws of concurrency, and are certain to meet: one stops in the middle of a commit.

Run as `python -m tests.laws.writer FOLDER FIRST LAST N_STOPS`: it adds the documents `own{FIRST}` … and, over and over,
three that all writers share. It says "midway" in each of its first N_STOPS commits that change entities, when all that
the change is reckoned from is read and nothing of it is written, and goes on when a line comes in. It says "waiting"
when it finds the turn to write taken. The environment variable LAWS_FAULT names a fault to seed.
"""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event

from quipu.errors import Busy
from quipu.model.document import SourceDocument
from quipu.stores.relational.sql import Backend
from tests.children import PATIENCE_S, running
from tests.laws.child import seed_fault
from tests.laws.world import document, engine, open_backend

MIDWAY, WAITING = "midway", "waiting"
N_SHARED = 3


def written(first: int, last: int) -> dict[str, SourceDocument]:
    """Return what a writer of these documents leaves behind."""
    return {source.id: source for number in range(first, last) for source in _step(number)}


def _step(number: int) -> tuple[SourceDocument, SourceDocument]:
    return document(f"shared{number % N_SHARED}.md", 0), document(f"own{number}.md", number)


def writing(
    folder: Path, first: int, last: int, n_stops: int = 0, fault: str = ""
) -> AbstractAsyncContextManager[Process]:
    """Run a writer, and end it whatever happens."""
    numbers = map(str, (first, last, n_stops))
    return running("tests.laws.writer", str(folder), *numbers, environment={"LAWS_FAULT": fault})


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _stop_midway(n: int) -> None:
    """Have this process stop in its first `n` commits that change entities."""
    left = n

    def stop(_connection: Connection, _cursor: object, statement: str, *_: Any) -> None:
        nonlocal left
        if left and statement.startswith("UPDATE entity SET"):
            left -= 1
            _say(MIDWAY)
            sys.stdin.readline()

    event.listen(Engine, "before_cursor_execute", stop)


def _tell_when_waiting(folder: Path) -> None:
    """Have this process say so where it is to write and another does."""
    kind: Any = type(open_backend(folder))
    take_turn = kind.writing

    @contextmanager
    def told(backend: Backend) -> Iterator[Connection]:
        if backend is not impatient and _is_taken(impatient):
            _say(WAITING)
        turn: AbstractContextManager[Connection] = take_turn(backend)
        with turn as connection:
            yield connection

    impatient = open_backend(folder, busy_timeout_s=0.0)
    kind.writing = told


def _is_taken(impatient: Backend) -> bool:
    try:
        with impatient.writing():
            return False
    except Busy:
        return True


async def _write(folder: Path, first: int, last: int) -> None:
    async with engine(folder, busy_timeout_s=PATIENCE_S) as kb:
        for number in range(first, last):
            await kb.add(*_step(number))


def main() -> None:
    """Write, stop and say so as the command line has it."""
    folder, first, last, n_stops = sys.argv[1:]
    seed_fault(os.environ.get("LAWS_FAULT", ""))
    _tell_when_waiting(Path(folder))
    _stop_midway(int(n_stops))
    asyncio.run(_write(Path(folder), int(first), int(last)))


if __name__ == "__main__":
    main()
