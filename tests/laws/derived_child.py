"""Child processes of the laws of derivations: they live through a short history with a model, and die where told to.

Run as `python -m tests.laws.derived_child`: a job is as for `tests.laws.model_child`; points of the kind "reporting"
are those while reports and aggregates are written. Beside FOLDER the steps that are done are noted, and what each
request asks.
"""

import asyncio
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from quipu.engine import Quipu
from quipu.model.chat import ChatRequest, Role
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import OpenAIEmbedder
from quipu.stores.relational.store import RelationalStore
from quipu.testing.scripted.model import ChatCall, ScriptedModel
from tests.laws.derived_world import DERIVATIONS
from tests.laws.model_child import Counted, do_jobs
from tests.laws.model_world import model_engine, model_settings, script, travels

DOCUMENTS = tuple(travels(f"{letter}.md", n_sentences=1) for letter in "abcdef")
N_STEPS = 4
REPORTING = "reporting"  # kind of point


class Staged(Counted):
    """A fuse that may burn only while reports are written."""

    def burn(self, *rest: Any, **more: Any) -> None:
        """Pass one point, and one of reporting if it is."""
        super().burn(*rest, **more)
        if self._stage == Role.REPORT:
            self.pass_one(REPORTING)


async def step(kb: Quipu, number: int) -> None:
    """Do one step of the history; what is done already is left as it is."""
    if number == 0:
        await kb.add(*DOCUMENTS[:4])
    elif number == 1:
        await kb.refresh(DERIVATIONS)
    elif number == 2:
        await kb.add(*DOCUMENTS[4:])
    else:
        known = {document.id for document in await kb.documents()}
        await kb.remove([name for name in ("b.md", "e.md") if name in known])


async def live(folder: Path, base_url: str, done: Path, first: int = 0) -> None:
    """Live through the history from a step on, noting what is done."""
    async with model_engine(model_settings(folder, base_url)) as kb:
        for number in range(first, N_STEPS):
            await step(kb, number)
            _write(done, f"{number}\n")


def lines_of(file: Path) -> list[str]:
    """Return the lines of a file, none where there is none."""
    return file.read_text().splitlines() if file.exists() else []


def _write(file: Path, line: str) -> None:
    with file.open("a") as opened:
        opened.write(line)


def note_keys(fuse: Staged, notes: list[Path]) -> None:
    """Note what each request asks beside the hash of its kept reply, and pass points around each call."""
    model, complete = ScriptedModel(script()), fuse.around(OpenAIChat.complete)

    async def noted(chat: OpenAIChat, request: ChatRequest, *rest: Any) -> Any:
        call = ChatCall(model="scripted", messages=request.messages, max_tokens=request.max_output_tokens)
        spoken = model.complete(call)
        _write(notes[0], f"{request.hash(chat.identity)} {spoken.draw.kind}:{spoken.text_hash}\n")
        return await complete(chat, request, *rest)

    OpenAIChat.complete = noted  # type: ignore[assignment, method-assign]


def main() -> None:
    """Have all the work of a job counted and its requests noted, and do jobs."""
    fuse, keys = Staged(), [Path()]

    def run(folder: Path, base_url: str) -> None:
        keys[0] = Path(f"{folder}.keys")
        asyncio.run(live(folder, base_url, Path(f"{folder}.done")))

    event.listen(Engine, "before_cursor_execute", fuse.burn)
    note_keys(fuse, keys)
    OpenAIEmbedder._embed_batch = fuse.around(OpenAIEmbedder._embed_batch)  # type: ignore[method-assign]
    RelationalStore.record_call = fuse.after_keeping(RelationalStore.record_call)  # type: ignore[method-assign]
    do_jobs(fuse, run)


if __name__ == "__main__":
    main()
