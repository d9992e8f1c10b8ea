"""Child processes of the laws with models: they add documents over the scripted server, and die where they are told to.

Run as `python -m tests.laws.model_child`: each line of standard input is a job, "FOLDER BASE_URL POINT", done by a fork
of the process, so that it begins at once. At that point of its work the fork kills itself (0: never); the answer is how
it ended, how many points it passed, and what it was at.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from quipu.model.event import Event, Progress
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import OpenAIEmbedder
from tests.laws.child import Fuse
from tests.laws.model_world import model_engine, model_settings, travels

DOCUMENTS = tuple(travels(f"{letter}.md") for letter in "abcdefgh")
READING = "reading"

Call = Callable[..., Coroutine[Any, Any, Any]]


class Counted(Fuse):
    """A fuse that notes how far it has burnt, and what the work is at."""

    def __init__(self, n: int, notes: Path) -> None:
        super().__init__(n)
        self.stage = READING
        self._notes = notes
        self._n_passed = 0

    def burn(self, *_: Any, **__: Any) -> None:
        """Pass one point."""
        self._n_passed += 1
        if self.n in (0, 1):
            self.note()
        if self.n:
            super().burn()

    def note(self) -> None:
        """Write down how many points were passed, and the stage."""
        self._notes.write_text(f"{self._n_passed} {self.stage}")

    def watch(self, happening: Event) -> None:
        """Learn from an event what the work is at."""
        if isinstance(happening, Progress):
            self.stage = happening.stage


def _watched(call: Call, fuse: Fuse) -> Call:
    """Return a call that passes a point before it begins, and one when its reply is there."""

    async def watched(*args: Any, **kwargs: Any) -> Any:
        fuse.burn()
        reply = await call(*args, **kwargs)
        fuse.burn()
        return reply

    return watched


async def _add(folder: Path, base_url: str, fuse: Counted) -> None:
    async with model_engine(model_settings(folder, base_url)) as kb:
        await kb.add(*DOCUMENTS, on_event=fuse.watch)


def _die_at(folder: Path, base_url: str, point: int) -> None:
    """Add the documents, and be killed at the point."""
    fuse = Counted(point, folder.parent / f"{folder.name}.notes")
    event.listen(Engine, "before_cursor_execute", fuse.burn)
    OpenAIChat.complete = _watched(OpenAIChat.complete, fuse)  # type: ignore[method-assign]
    OpenAIEmbedder._batch = _watched(OpenAIEmbedder._batch, fuse)  # type: ignore[method-assign]
    asyncio.run(_add(folder, base_url, fuse))


def _forked(work: Callable[[], None]) -> int:
    """Do work in a fork; return how that ended, negative where by a signal."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        work()
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Do one job after the other, until there are no more."""
    for line in sys.stdin:
        folder, base_url, point = line.split()
        code = _forked(partial(_die_at, Path(folder), base_url, int(point)))
        notes = Path(f"{folder}.notes")
        print(code, notes.read_text() if notes.exists() else "0 -", flush=True)


if __name__ == "__main__":
    main()
