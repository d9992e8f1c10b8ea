"""Law: two workers on one index, each with a store of its own, pay once for what both are told to do."""

import asyncio
from pathlib import Path

import pytest

from quipu.model.chat import ChatRequest
from quipu.model.document import SourceDocument
from quipu.model.results import AddResult
from quipu.stores.relational import jobs
from quipu.testing.llm import ScriptedLLM
from quipu.testing.scripted.script import RequestKind
from tests.children import PATIENCE_S
from tests.laws.held import Held, open_when_waiting
from tests.laws.model_world import dump_of, script, scripted_engine, travels

DOCUMENTS = [travels(f"{name}.md") for name in ("amber", "birch", "cedar", "daisy", "elder", "fir", "grape", "hazel")]

pytestmark = pytest.mark.usefixtures("quick_looks")


async def asked_by_both(
    folder: Path, llm: Held, first: list[SourceDocument], second: list[SourceDocument], *, waits: bool = True
) -> list[ChatRequest]:
    """Have an engine add documents while another on the same index does; return what the model was asked of them.

    It replies as soon as the second has queued its documents, or where that `waits` for nothing, is asked the same.
    """
    async with asyncio.timeout(PATIENCE_S), scripted_engine(folder, llm) as one, scripted_engine(folder, llm) as other:

        async def join() -> AddResult:
            await llm.begun.wait()
            return await other.add(*second, on_event=lambda _: llm.reading.set() if waits else None)

        reports = await asyncio.gather(one.add(*first), join())
        assert [(report.failed, report.partial, report.summary_failures) for report in reports] == [((), (), ())] * 2
        assert await one.verify() == []
        together = await dump_of(one)
    assert {RequestKind.EXTRACT, RequestKind.GLEAN, RequestKind.SUMMARISE} <= {call.kind for call in llm.answered}
    async with scripted_engine(folder.with_name("alone"), ScriptedLLM(script())) as kb:
        await kb.add(*{each.id: each for each in (*first, *second)}.values())
        assert await dump_of(kb) == together
    requests = [call.request for call in llm.answered]
    return [each for each in requests if each.documents or each.source_replies]  # else it is the check of an engine


async def test_two_that_add_the_same_at_once_pay_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Held()
    open_when_waiting(llm.deriving, monkeypatch)
    asked = await asked_by_both(tmp_path / "kb", llm, DOCUMENTS, DOCUMENTS)
    assert len(asked) == len(set(asked))


async def test_two_that_add_some_of_the_same_pay_once_for_what_they_share(tmp_path: Path) -> None:
    llm = Held()
    llm.deriving.set()
    asked = await asked_by_both(tmp_path / "kb", llm, DOCUMENTS[:6], DOCUMENTS[2:])
    assert len(asked) == len(set(asked))


async def test_the_law_fails_where_the_same_replaces_work_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> list[str]:
        return []

    monkeypatch.setattr(jobs, "_same_as_queued", nothing)
    llm = Held()
    llm.deriving.set()
    asked = await asked_by_both(tmp_path / "kb", llm, DOCUMENTS, DOCUMENTS, waits=False)
    assert len(asked) > len(set(asked))


@pytest.mark.usefixtures("nobody_waits")
async def test_the_law_fails_where_nobody_waits_for_the_turn_to_derive(tmp_path: Path) -> None:
    asked = await asked_by_both(tmp_path / "kb", Held(), DOCUMENTS, DOCUMENTS)
    assert len(asked) > len(set(asked))
