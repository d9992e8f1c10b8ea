"""A model that holds its replies until two who work on one index have met, and ways to wait for who is at work."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from quipu.model.chat import ChatRequest, Completion, Role
from quipu.ports.providers import TextSink, ignore_text
from quipu.stores.relational.store import RelationalStore
from quipu.testing.llm import ScriptedLLM
from tests.laws.model_world import script

T = TypeVar("T")


class Held(ScriptedLLM):
    """A model that says when it is first asked about a document, and replies when two have met.

    What reads documents waits for `reading`, all else for `deriving`; to be asked the very same twice opens either.
    """

    def __init__(self) -> None:
        super().__init__(script())
        self.begun, self.reading, self.deriving = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._n_asked = Counter[str]()

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the scripted reply when the time has come."""
        if request.documents or request.source_replies:  # else it is the check of an engine
            gate = self.reading if request.role is Role.EXTRACT else self.deriving
            self.begun.set()
            key = request.hash(self.identity)  # of what a model sees: the same may be asked of another revision
            self._n_asked[key] += 1
            if self._n_asked[key] > 1:
                gate.set()
            await gate.wait()
        return await super().complete(request, on_text)


def open_when_waiting(gate: asyncio.Event, patch: pytest.MonkeyPatch) -> None:
    """Open a gate when somebody finds the derivation lease taken."""
    derivation_lease = RelationalStore.derivation_lease

    @asynccontextmanager
    async def watched(store: RelationalStore) -> AsyncIterator[bool]:
        async with derivation_lease(store) as is_held:
            if not is_held:
                gate.set()
            yield is_held

    patch.setattr(RelationalStore, "derivation_lease", watched)


@asynccontextmanager
async def under_way(work: Coroutine[Any, Any, T]) -> AsyncIterator["asyncio.Task[T]"]:
    """Have some work go on within this context, and end it there whatever happens."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def comes_before_the_end(event: asyncio.Event, work: "asyncio.Task[Any]") -> bool:
    """Wait until an event is set or some work has ended, and say whether the event is set; raise what the work did."""
    async with under_way(event.wait()) as told:
        await asyncio.wait({work, told}, return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        work.result()
    return event.is_set()
