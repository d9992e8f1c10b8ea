"""Tests of reports: what a piece of work says of itself, and nothing of what others did meanwhile."""

import asyncio
from pathlib import Path

from quipu.model.chat import ChatRequest, Completion, Role
from quipu.model.document import SourceDocument
from quipu.model.usage import Stage, total
from quipu.ports.providers import TextSink, ignore_text
from quipu.testing.llm import ScriptedEmbedder, ScriptedLLM
from quipu.testing.scripted.script import Script
from tests.laws.model_world import script, scripted_engine, travels


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
        answer = await kb.query("Who read the book?")
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
        report = await kb.add(SourceDocument(id="a.md", data=text, media_type="text/markdown"))
        assert report.n_dropped == 1
