"""Laws of derivations where several work at once: they end in one state, pay once, and readers see one snapshot."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from quipu.derive.derivation import embed_stale
from quipu.engine import Quipu
from quipu.ingest.pipeline import PipelineResult, process_queue
from quipu.model.chat import ChatRequest, Completion
from quipu.model.cluster import Hierarchy
from quipu.model.derivation import HIERARCHY, SYNONYMS
from quipu.model.event import ignore_event
from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.providers import TextSink, ignore_text
from quipu.ports.store import ReadView
from quipu.retrieve import STRATEGIES, Tools
from quipu.testing.llm import ScriptedLLM
from tests.children import PATIENCE_S
from tests.laws.derived_world import DERIVATIONS, NAMES, QUESTIONS, keep_all, story, told_of
from tests.laws.held import Held, open_when_waiting
from tests.laws.model_world import dump_of, script, scripted_engine
from tests.laws.world import engine

pytestmark = pytest.mark.usefixtures("quick_looks")


async def ended(kb: Quipu) -> object:
    """Return the state of a sound index: the dump, communities and aggregates."""
    assert await kb.verify() == []
    assert await kb.plan() == ()
    return await dump_of(kb), *[await told_of(kb, hierarchy) for hierarchy in Hierarchy]


async def test_two_that_refresh_at_once_end_in_the_state_of_one(tmp_path: Path) -> None:
    """Without a model nothing is paid for, and neither waits for the other."""
    async with engine(tmp_path / "kb") as one, engine(tmp_path / "kb") as other:
        await one.add(*(story(name, 0) for name in NAMES[:4]))
        await asyncio.gather(keep_all(one), keep_all(other))
        await asyncio.gather(one.add(story(NAMES[4], 0)), other.remove(NAMES[:1]))
        await asyncio.gather(one.refresh(), other.refresh())
        together = await ended(other)
    async with engine(tmp_path / "alone") as kb:
        await kb.add(*(story(name, 0) for name in NAMES[1:5]))
        await keep_all(kb)
        assert await ended(kb) == together


async def asked_by_both(folder: Path, llm: Held) -> list[str]:
    """Have two engines make all derivations of one index at once; return the hashes of what was asked of documents.

    They are of what the model sees: the same may be asked of another revision.
    """
    async with asyncio.timeout(PATIENCE_S), scripted_engine(folder, llm) as one, scripted_engine(folder, llm) as other:
        llm.reading.set()
        llm.deriving.set()
        await one.add(*(story(name, 0) for name in NAMES[:3]))
        llm.deriving.clear()
        n_before = len(llm.answered)
        await asyncio.gather(keep_all(one), keep_all(other))
        requests = [call.request for call in llm.answered[n_before:]]
        asked = [each.hash(llm.identity) for each in requests if each.documents or each.source_replies]
        assert await one.verify() == []
        assert await other.plan() == ()
        return asked


async def test_two_that_refresh_at_once_pay_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Held()
    open_when_waiting(llm.deriving, monkeypatch)
    asked = await asked_by_both(tmp_path / "kb", llm)
    assert len(asked) == len(set(asked)) > 3


@pytest.mark.usefixtures("nobody_waits")
async def test_the_law_fails_where_nobody_waits_for_the_turn(tmp_path: Path) -> None:
    asked = await asked_by_both(tmp_path / "kb", Held())
    assert len(asked) > len(set(asked))


async def found_in(view: ReadView, kb: Quipu) -> list[Evidence]:
    """Return what every strategy that reads the index finds in a view."""
    parts = kb._components
    tools = Tools(
        vectors=parts.vectors, embedder=parts.embedder, topology=parts.topology, tokenizer=parts.ingest_config.tokenizer
    )
    return [
        await strategy.retrieve(Query(text=question, strategy=strategy.name), view, tools)
        for strategy in STRATEGIES.values()
        if strategy.name != "bypass"
        for question in QUESTIONS
    ]


async def test_a_reader_sees_one_snapshot_while_others_refresh(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb, engine(tmp_path / "kb") as other:
        await kb.add(*(story(name, 0) for name in NAMES[:4]))
        await keep_all(kb)
        async with kb._store.view() as view:
            before = await found_in(view, kb)
            await other.add(story(NAMES[4], 0), story(NAMES[0], 1))
            await other.remove([NAMES[1]])
            await other.refresh(DERIVATIONS, rebuild=True)
            async with kb._store.view() as new:
                assert all(a != b for a, b in zip(before, await found_in(new, kb), strict=True))
            assert await found_in(view, kb) == before


class Reader(ScriptedLLM):
    """A model that works on documents, and replies once a question has been answered since it was asked."""

    def __init__(self) -> None:
        super().__init__(script())
        self.answered_one = asyncio.Condition()

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the scripted reply after the next question."""
        if request.documents or request.source_replies:  # else it is part of a question itself
            async with self.answered_one:
                await self.answered_one.wait()
        return await super().complete(request, on_text)


async def test_readers_are_answered_soundly_all_the_while_a_model_writes(tmp_path: Path) -> None:
    async with scripted_engine(tmp_path / "kb", ScriptedLLM(script())) as kb:
        await kb.add(*(story(name, 0) for name in NAMES[:2]))
        await keep_all(kb)
    llm = Reader()
    async with asyncio.timeout(PATIENCE_S), scripted_engine(tmp_path / "kb", llm) as kb:
        work = asyncio.create_task(kb.add(story(NAMES[2], 0)))
        n_asked = 0
        while not work.done():
            name = list(STRATEGIES)[n_asked % len(STRATEGIES)]
            answer = await kb.query(QUESTIONS[0], strategy=name, with_answer=False)
            assert name in ("bypass", "community_global") or answer.trace.evidence.chunks, name
            n_asked += 1
            async with llm.answered_one:
                llm.answered_one.notify_all()
        await work
        assert n_asked > 3
        assert await kb.verify() == []


@pytest.mark.parametrize("name", [HIERARCHY, SYNONYMS])
async def test_texts_that_another_adds_after_all_have_vectors_get_theirs_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A document is published by another engine between the embedding and the view that a derivation reads."""
    async with engine(tmp_path / "kb") as kb, engine(tmp_path / "kb") as other:
        await kb.add(*(story(name, 0) for name in NAMES[:3]))
        waiting = [story(NAMES[3], 0)]

        async def embed_then_publish(*arguments: Any) -> int:
            n_embedded = await embed_stale(*arguments)
            if waiting:
                await other.enqueue(waiting.pop())
                await process_queue(other._store, other._components.ingest_config, PipelineResult(), ignore_event)
            return n_embedded

        for module in ("hierarchy", "names", "derivation"):
            monkeypatch.setattr(f"quipu.derive.{module}.embed_stale", embed_then_publish, raising=False)
        assert (await kb.refresh([name])).is_complete
        monkeypatch.undo()
        await kb.refresh()
        together = await ended(kb)
    async with engine(tmp_path / "alone") as kb:
        await kb.add(*(story(name, 0) for name in NAMES[:4]))
        await kb.refresh([name])
        assert await ended(kb) == together
