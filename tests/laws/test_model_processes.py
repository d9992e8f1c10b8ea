"""Law: two workers on one index, each with a store of its own, pay once for what both are told to do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quipu import engine
from quipu.engine import turn
from quipu.engine.models import Models
from quipu.model.chat import ChatRequest, Completion
from quipu.model.document import SourceDocument
from quipu.model.report import AddReport
from quipu.ports.llm import TextSink, no_text
from quipu.ports.store import Store
from quipu.stores.relational import jobs
from quipu.testing.llm import ScriptedLLM
from quipu.testing.scripted.kind import Kind
from quipu.testing.scripted.script import Latency
from tests.laws.model_world import dump_of, script, scripted_engine, travels

DOCUMENTS = [travels(f"{name}.md") for name in ("amber", "birch", "cedar", "daisy", "elder", "fir", "grape", "hazel")]

SLOW = Latency(mean_s=0.05)


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each look often what the other does."""
    for module in (engine, turn):
        monkeypatch.setattr(module, "POLL_S", 0.002)


class Held(ScriptedLLM):
    """A model that says when it is first asked about a document, and replies to nothing before `released`."""

    def __init__(self) -> None:
        super().__init__(script(latency=SLOW))
        self.begun, self.released = asyncio.Event(), asyncio.Event()

    async def complete(self, request: ChatRequest, on_text: TextSink = no_text) -> Completion:
        """Return the scripted reply when the time has come."""
        if request.documents:
            self.begun.set()
            await self.released.wait()
        return await super().complete(request, on_text)


async def asked_by_both(folder: Path, first: list[SourceDocument], second: list[SourceDocument]) -> list[ChatRequest]:
    """Have an engine add documents while another on the same index does; return what the model was asked of them."""
    llm = Held()
    async with scripted_engine(folder, llm) as one, scripted_engine(folder, llm) as other:

        async def join() -> AddReport:
            await llm.begun.wait()
            return await other.add(*second, on_event=lambda _: llm.released.set())  # as soon as they are queued

        reports = await asyncio.gather(one.add(*first), join())
        assert [(report.failed, report.partial, report.unsummarised) for report in reports] == [((), (), ())] * 2
        assert await one.verify() == []
        together = await dump_of(one)
    assert {Kind.EXTRACT, Kind.GLEAN, Kind.SUMMARISE} <= {call.kind for call in llm.answered}
    async with scripted_engine(folder.with_name("alone"), ScriptedLLM(script())) as kb:
        await kb.add(*{each.id: each for each in (*first, *second)}.values())
        assert await dump_of(kb) == together
    requests = [call.request for call in llm.answered]
    return [each for each in requests if each.documents or each.made_from]  # else it is the check of an engine


async def test_two_that_add_the_same_at_once_pay_once(tmp_path: Path) -> None:
    asked = await asked_by_both(tmp_path / "kb", DOCUMENTS, DOCUMENTS)
    assert len(asked) == len(set(asked))


async def test_two_that_add_some_of_the_same_pay_once_for_what_they_share(tmp_path: Path) -> None:
    asked = await asked_by_both(tmp_path / "kb", DOCUMENTS[:6], DOCUMENTS[2:])
    assert len(asked) == len(set(asked))


async def test_the_law_fails_where_the_same_replaces_work_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> list[str]:
        return []

    monkeypatch.setattr(jobs, "_under_way", nothing)
    asked = await asked_by_both(tmp_path / "kb", DOCUMENTS, DOCUMENTS)
    assert len(asked) > len(set(asked))


async def test_the_law_fails_where_nobody_waits_for_the_turn_to_derive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def at_once(_store: Store, _models: Models) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(engine, "turn_to_derive", at_once)
    asked = await asked_by_both(tmp_path / "kb", DOCUMENTS, DOCUMENTS)
    assert len(asked) > len(set(asked))
