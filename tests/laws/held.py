"""A model that holds its replies until two who work on one index have met."""

import asyncio
from collections import Counter

import pytest

from quipu.model.chat import ChatRequest, Completion, Role
from quipu.ports.llm import TextSink, no_text
from quipu.stores.relational.store import RelationalStore
from quipu.testing.llm import ScriptedLLM
from tests.laws.model_world import script

PATIENCE_S = 120.0  # for what takes a second or two: then they have not met


class Held(ScriptedLLM):
    """A model that says when it is first asked about a document, and replies when two have met.

    What reads documents waits for `reading`, all else for `deriving`; to be asked the very same twice opens either.
    """

    def __init__(self) -> None:
        super().__init__(script())
        self.begun, self.reading, self.deriving = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._n_asked = Counter[str]()

    async def complete(self, request: ChatRequest, on_text: TextSink = no_text) -> Completion:
        """Return the scripted reply when the time has come."""
        if request.documents or request.made_from:  # else it is the check of an engine
            gate = self.reading if request.role is Role.EXTRACT else self.deriving
            self.begun.set()
            key = request.hash(self.identity)  # of what a model sees: the same may be asked of another revision
            self._n_asked[key] += 1
            if self._n_asked[key] > 1:
                gate.set()
            await gate.wait()
        return await super().complete(request, on_text)


def open_when_waiting(gate: asyncio.Event, patch: pytest.MonkeyPatch) -> None:
    """Open a gate when somebody finds the turn to derive taken."""
    begin_deriving = RelationalStore.begin_deriving

    async def told(store: RelationalStore) -> bool:
        has_begun = await begin_deriving(store)
        if not has_begun:
            gate.set()
        return has_begun

    patch.setattr(RelationalStore, "begin_deriving", told)
