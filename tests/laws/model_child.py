"""Child processes of the laws with models: they add documents over the scripted server, and die where they are told to.

Run as `python -m tests.laws.model_child`: a job is FOLDER, BASE_URL and POINT. At that point of its work the process
kills itself; it is a fork, so that it begins at once. "kept-ROLE:N" is when the N-th reply to that role has been kept,
"begun-STAGE:N" when the N-th call of that stage, a role or "embed", begins.
With 0 for a point the job is done to its end by the process itself, which is then warm.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from quipu.model.chat import ChatRequest
from quipu.ports.store import CallReply
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import OpenAIEmbedder
from quipu.stores.relational.store import RelationalStore
from tests.laws.child import Fuse
from tests.laws.model_world import model_engine, model_settings, travels
from tests.laws.mortal import Life, forked, jobs, tell

DOCUMENTS = tuple(travels(f"{letter}.md", n_sentences=1) for letter in "abcdefg")
READING = "reading"
SURVIVED = "survived"  # the stage of one that came to its end
ANY = ""  # kind of point
BATCH_TOKENS = 40  # of descriptions in a call: summaries of several calls each

Call = Callable[..., Coroutine[Any, Any, Any]]
Work = Callable[[Path, str], None]  # in a folder, with the models at an address


class Counted(Fuse):
    """A fuse that notes how many points were passed when it is burnt down, and what the work was at."""

    def __init__(self) -> None:
        super().__init__(0)
        self._stage, self._n_passed, self._notes, self._counted = READING, 0, Path(), ANY
        self._lock = threading.Lock()

    def begin(self, point: str, notes: Path) -> None:
        """Burn anew: until the n-th point for "n", the n-th of a kind for "KIND:n"."""
        self._counted, _, n = point.rpartition(":")
        self.n, self._stage, self._n_passed, self._notes = int(n), READING, 0, notes

    def burn(self, *_: Any, **__: Any) -> None:
        """Pass one point of any kind; statements are made in threads."""
        with self._lock:
            self._n_passed += 1
        self.pass_one(ANY)

    def pass_one(self, kind: str) -> None:
        """Pass one point of a kind."""
        with self._lock:
            if kind == self._counted:
                if self.n == 1:
                    self.note()
                super().burn()

    def note(self) -> None:
        """Write down how many points were passed, and the stage."""
        self._notes.write_text(json.dumps([self._n_passed, self._stage]))

    def around(self, call: Call) -> Call:
        """Return a call that passes a point before it begins, and one when its reply is there."""

        async def watched(*args: Any, **kwargs: Any) -> Any:
            self._stage = args[1].role.value if isinstance(args[1], ChatRequest) else "embed"
            self.pass_one(f"begun-{self._stage}")
            self.burn()
            reply = await call(*args, **kwargs)
            self.burn()
            return reply

        return watched

    def after_keeping(self, keep: Call) -> Call:
        """Return a `keep` of a store that passes a point when a reply is committed."""

        async def watched(store: RelationalStore, usage: Any, reply: CallReply | None = None) -> None:
            await keep(store, usage, reply)
            if reply is not None:
                self.pass_one(f"kept-{reply.request.role.value}")

        return watched


async def _add(folder: Path, base_url: str) -> None:
    async with model_engine(model_settings(folder, base_url), batch_tokens=BATCH_TOKENS) as kb:
        await kb.add(*DOCUMENTS)


def _run(folder: Path, base_url: str) -> None:
    asyncio.run(_add(folder, base_url))


def do_jobs(fuse: Counted, work: Work) -> None:
    """Do one job after the other, until there are no more."""
    for folder, base_url, point in jobs():
        notes, code = Path(f"{folder}.notes"), 0
        fuse.begin(point, notes)
        if fuse.n:
            code = forked(partial(work, Path(folder), base_url))
        else:
            work(Path(folder), base_url)
            fuse.note()
        n_points, stage = json.loads(notes.read_text()) if notes.exists() else (0, SURVIVED)
        tell(Life(code=code, n_points=n_points, stage=stage))


def main() -> None:
    """Have all the work of a job counted, and do jobs."""
    fuse = Counted()
    event.listen(Engine, "before_cursor_execute", fuse.burn)
    OpenAIChat.complete = fuse.around(OpenAIChat.complete)  # type: ignore[method-assign]
    OpenAIEmbedder._embed_batch = fuse.around(OpenAIEmbedder._embed_batch)  # type: ignore[method-assign]
    RelationalStore.record_call = fuse.after_keeping(RelationalStore.record_call)  # type: ignore[method-assign]
    do_jobs(fuse, _run)


if __name__ == "__main__":
    main()
