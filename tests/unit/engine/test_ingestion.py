"""Tests of ingestion: models are checked once, and a result counts only the calls of its own run."""

import asyncio
from pathlib import Path

import pytest

from quipu.engine.components import Models
from quipu.engine.ingestion import ModelCheck
from quipu.errors import OverBudget, Unavailable
from quipu.ingest.local import LocalExtractor
from quipu.model.chat import ChatRequest, Completion, Role, TokenCount
from quipu.model.delta import Delta
from quipu.model.document import SourceDocument
from quipu.model.usage import SpendingLimit, Stage, total
from quipu.ports.providers import TextSink, ignore_text
from quipu.testing.facts import source
from quipu.testing.llm import ScriptedEmbedder, ScriptedLLM
from quipu.testing.scripted.script import Script
from quipu.wrap.meter import Meter, MeteredCall, ModelPricing, SpendingBudget
from tests.laws.model_world import script, scripted_engine, travels
from tests.unit.stores.opening import open_index

PING = MeteredCall(
    stage=Stage.EXTRACT,
    pricing=ModelPricing(model="tests/model", price=None, count_tokens=len),
    max_tokens=lambda: TokenCount(input=1),
)


class Pings:
    """A check of so many calls, which are counted; or one that fails."""

    def __init__(self, n: int, error: Exception | None = None) -> None:
        self.n_asked = 0
        self._n, self._error = n, error

    async def __call__(self, meter: Meter) -> tuple[str, ...]:
        """Ask, one after the other."""
        for _ in range(self._n):
            await meter.run(self._ask, PING, lambda tokens: tokens)
        return ("a note",)

    async def _ask(self) -> TokenCount:
        self.n_asked += 1
        if self._error:
            raise self._error
        return TokenCount(input=1)


def models(check: Pings, max_calls: int) -> Models:
    """Return models that are checked so, under a budget of calls."""
    return Models(meter=Meter(budget=SpendingBudget(SpendingLimit(calls=max_calls))), check=check)


async def test_models_are_checked_once() -> None:
    model_check, pings = ModelCheck(), Pings(2)
    for _ in range(2):
        await model_check.check(models(pings, 9), LocalExtractor())
    assert (pings.n_asked, model_check.notes) == (2, ("a note",))


async def test_a_budget_that_ends_within_the_check_is_not_spent_on_it_again(tmp_path: Path) -> None:
    model_check, pings = ModelCheck(), Pings(2)
    asked = models(pings, 1)
    await model_check.check(asked, LocalExtractor())
    async with open_index(tmp_path / "index.sqlite") as store:
        await store.commit(Delta(enqueue=[source("a")]))
        await model_check.check_if_waiting(store, models(pings, 1), LocalExtractor())
    assert pings.n_asked == 1


async def test_a_budget_that_allows_no_call_is_told_before_anything_is_queued() -> None:
    with pytest.raises(OverBudget):
        await ModelCheck().check(models(Pings(1), 0), LocalExtractor())


async def test_a_model_that_cannot_be_had_is_checked_again_the_next_time() -> None:
    model_check, pings = ModelCheck(), Pings(1, Unavailable("gone"))
    for _ in range(2):
        with pytest.raises(Unavailable):
            await model_check.check(models(pings, 9), LocalExtractor())
    assert pings.n_asked == 2


class SlowReader(ScriptedLLM):
    """Waits before it reads anything, until it is let go on."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.is_asked = asyncio.Event()
        self.may_read = asyncio.Event()

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Answer all else at once."""
        if request.role is Role.EXTRACT:
            self.is_asked.set()
            await self.may_read.wait()
        return await super().complete(request, on_text)


async def test_a_report_counts_no_question_asked_meanwhile(tmp_path: Path) -> None:
    llm = SlowReader(script())
    async with scripted_engine(tmp_path, llm) as kb:
        adding = asyncio.create_task(kb.add(travels("a.md")))
        await llm.is_asked.wait()
        answer = await kb.query("Who read the book?", strategy="mix")
        llm.may_read.set()
        report = await adding
        assert {row.stage for row in answer.usage} == {Stage.KEYWORDS}
        assert {row.stage for row in report.usage} == {Stage.EXTRACT}
        assert {row.subject for row in report.usage} == {""}
        asked = [each for each in llm.answered if each.request.role is Role.EXTRACT]
        assert total(report.usage).n_calls == len(asked)


async def test_a_report_counts_what_reading_and_summing_up_took(tmp_path: Path) -> None:
    llm = ScriptedLLM(script())
    async with scripted_engine(tmp_path, llm, embedder=ScriptedEmbedder()) as kb:
        report = await kb.add(*(travels(f"{n}.md", n_sentences=6) for n in range(6)))
        assert report.n_summarised > 0
        assert {row.stage for row in report.usage} == {Stage.EXTRACT, Stage.SUMMARISE}
        assert total(report.usage).n_calls == llm.n_completed()
        again = await kb.add(travels("0.md", n_sentences=6))
        assert (again.n_unchanged, again.usage) == (1, ())


async def test_a_report_tells_how_many_records_the_text_does_not_bear_out(tmp_path: Path) -> None:
    class Inventing(ScriptedLLM):
        async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
            reply = await super().complete(request, on_text)
            if request.role is not Role.EXTRACT:
                return reply
            text = f"entity<|>Zorro<|>Person<|>Zorro is in no text.\n{reply.text}"
            return Completion(text=text, finish=reply.finish, tokens=reply.tokens)

    text = b"Marco Polo met Kublai Khan at the court."
    async with scripted_engine(tmp_path, Inventing(script())) as kb:
        report = await kb.add(SourceDocument(id="a.md", content=text, media_type="text/markdown"))
        assert report.n_dropped == 1
