"""Tests of the pipeline: what is read no longer than it is wanted, and what stops it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import get_ident

import numpy as np
import numpy.typing as npt
import pytest

import quipu
from quipu.engine import Quipu
from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, Unavailable
from quipu.ingest.local import LocalExtractor
from quipu.model.chunking import SEMANTIC, Chunking
from quipu.model.document import DocumentStatus, SourceDocument
from quipu.model.event import DocumentDone, Event, Progress
from quipu.model.extraction import ChunkInput
from quipu.parse import sandbox
from quipu.ports.ingest import ExtractionResult
from tests.laws.world import engine
from tests.unit.parse.files import pdf, prose
from tests.unit.wrap.fakes import FakeEmbedder

N_PARTS = 160


class WaitingExtractor(LocalExtractor):
    """Reads one chunk after the other, as one that waits for a model; before the third it waits to be let go on."""

    n_ahead = 4

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.has_begun = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.n_closed = 0

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Yield an outcome now and then."""
        try:
            for index, each in enumerate(inputs):
                self.asked.append(each.text)
                if len(self.asked) == 3:
                    self.has_begun.set()
                    await self.may_go_on.wait()
                await asyncio.sleep(0.002)
                async for outcome in super().extract([each]):
                    yield replace(outcome, index=index, n_dropped=1)
        finally:
            self.n_closed += 1


def _book(name: str, n_parts: int = N_PARTS) -> SourceDocument:
    parts = (
        f"## Part {i}\n\n{name} Polo met Envoy{i} Khan of {name} in City{i} Port. {'So it is. ' * 12}"
        for i in range(n_parts)
    )
    return SourceDocument(id=f"{name}.md", content="\n\n".join(parts).encode(), media_type="text/markdown")


async def test_a_document_removed_while_it_is_read_costs_nothing_more(tmp_path: Path) -> None:
    extractor = WaitingExtractor()
    async with engine(tmp_path, extractor=extractor) as kb:
        adding = asyncio.create_task(kb.add(_book("Alpha")))
        await extractor.has_begun.wait()
        await kb.remove(["Alpha.md"])
        extractor.may_go_on.set()
        report = await adding
        assert len(extractor.asked) < N_PARTS // 2
        assert extractor.n_closed == 1
        assert (report.n_added, report.n_chunks, report.failed) == (0, 0, ())
        assert await kb.documents() == []


async def test_a_document_removed_before_its_turn_is_not_begun(tmp_path: Path) -> None:
    extractor = WaitingExtractor()
    async with engine(tmp_path, extractor=extractor) as kb:
        adding = asyncio.create_task(kb.add(_book("Alpha"), _book("Beta", 3)))
        await extractor.has_begun.wait()
        await kb.remove(["Beta.md"])
        extractor.may_go_on.set()
        report = await adding
        assert (report.n_added, [each.id for each in await kb.documents()]) == (1, ["Alpha.md"])
        assert not any("Beta" in text for text in extractor.asked)


class StoppingExtractor(LocalExtractor):
    """Reads one chunk of a group after the other, as one that waits for a model; it reads 15 until it may go on."""

    n_ahead = 4

    def __init__(self) -> None:
        self.n_asked = 0
        self.may_go_on = asyncio.Event()

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Yield an outcome for each input."""
        for index, chunk in enumerate(inputs):
            self.n_asked += 1
            if self.n_asked > 15:
                await self.may_go_on.wait()
            await asyncio.sleep(0)
            async for outcome in super().extract([chunk]):
                yield replace(outcome, index=index)


async def test_small_documents_are_ready_and_searchable_while_others_wait_for_the_model(tmp_path: Path) -> None:
    extractor, is_one_ready = StoppingExtractor(), asyncio.Event()

    def on_event(event: Event) -> None:
        if isinstance(event, DocumentDone):
            is_one_ready.set()

    documents = [_book(f"Book{number}", 1) for number in range(60)]
    async with engine(tmp_path, extractor=extractor) as kb:
        adding = asyncio.create_task(kb.add(*documents, on_event=on_event))
        await asyncio.wait_for(is_one_ready.wait(), 20)
        ready = [document for document in await kb.documents() if document.status is DocumentStatus.READY]
        evidence = await kb.retrieve("Envoy0 Khan", strategy="lexical")
        assert 0 < len(ready) < len(documents)
        assert evidence.chunks
        extractor.may_go_on.set()
        assert (await adding).n_added == len(documents)


async def test_what_the_text_does_not_bear_out_is_counted(tmp_path: Path) -> None:
    extractor = WaitingExtractor()
    extractor.may_go_on.set()
    async with engine(tmp_path, extractor=extractor) as kb:
        report = await kb.add(_book("Alpha", 4))
        assert report.n_dropped == len(extractor.asked) > 0


async def test_a_failure_of_the_callers_sink_is_the_callers(tmp_path: Path) -> None:
    def tell(event: Event) -> None:
        if isinstance(event, Progress) and event.stage == "extract":
            raise BrokenPipeError("nobody listens")

    extractor = WaitingExtractor()
    async with engine(tmp_path, extractor=extractor) as kb:
        with pytest.raises(BrokenPipeError, match="nobody listens"):
            await kb.add(_book("Alpha", 2), on_event=tell)
        assert extractor.n_closed == 1
        assert [each.status for each in await kb.documents()] == [DocumentStatus.QUEUED]
        extractor.may_go_on.set()
        assert (await kb.resume()).n_resumed == 1
        assert not any(chunk.error for chunk in (await kb.document("Alpha.md")).chunks)


class FailingEmbedder(FakeEmbedder):
    """Cannot read what holds a word."""

    def __init__(self, word: str, error: QuipuError) -> None:
        super().__init__()
        self.word, self.error = word, error

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return vectors, or raise."""
        if any(self.word in text for text in texts):
            raise self.error
        return await super().embed(texts)


def _cut_by_vectors(kb: Quipu, embedder: FakeEmbedder) -> None:
    kb._components = replace(kb._components, ingest_config=replace(kb._components.ingest_config, embedder=embedder))


def _talk(name: str) -> SourceDocument:
    text = f"{name} spoke of salt. {name} then spoke of paper. At last {name} Polo met Kublai Khan."
    return SourceDocument(
        id=name, content=text.encode(), media_type="text/plain", chunking=Chunking(method=SEMANTIC, max_tokens=48)
    )


@pytest.mark.parametrize("error", [OverBudget("All is spent."), Unavailable("The embedder is gone.")])
async def test_an_embedder_that_is_gone_stops_the_reading_and_documents_wait(tmp_path: Path, error: QuipuError) -> None:
    async with engine(tmp_path) as kb:
        _cut_by_vectors(kb, FailingEmbedder("Zoe", error))
        report = await kb.add(_talk("Zoe"))
        assert (report.stopped, report.n_waiting, report.failed) == (str(error), 1, ())
        _cut_by_vectors(kb, FakeEmbedder())
        assert (await kb.resume()).n_resumed == 1


async def test_a_text_an_embedder_refuses_fails_its_document_alone(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        _cut_by_vectors(kb, FailingEmbedder("Zoe", Refused("It will not read this.")))
        plain = SourceDocument(id="plain", content=b"Zoe met Marco Polo.", media_type="text/plain")
        report = await kb.add(_talk("Ada"), _talk("Zoe"), plain)
        assert report.n_added == 2
        assert [(each.id, each.error) for each in report.failed] == [("Zoe", "It will not read this.")]


async def test_an_embedder_that_is_too_busy_fails_what_needs_it(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        _cut_by_vectors(kb, FailingEmbedder("Zoe", Overloaded("Too busy.")))
        plain = SourceDocument(id="plain", content=b"Zoe met Marco Polo.", media_type="text/plain")
        report = await kb.add(_talk("Ada"), _talk("Zoe"), plain)
        assert (report.n_added, sorted(each.id for each in report.failed)) == (1, ["Ada", "Zoe"])
        assert await kb.retry() == 2


async def test_the_pages_of_a_long_pdf_are_reported_while_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_REPORT_S", 0.0)
    content = pdf([prose(f"The caravan of day {page} leaves Samarkand.") for page in range(30)])
    long = SourceDocument(id="long.pdf", content=content, media_type="application/pdf")
    events: list[Event] = []
    threads: set[int] = set()

    def on_event(event: Event) -> None:
        events.append(event)
        threads.add(get_ident())

    async with quipu.open(tmp_path / "kb") as kb:
        await kb.add(_book("Alpha", 2), long, on_event=on_event)
    pages = [event for event in events if isinstance(event, Progress) and event.stage == "pages"]
    assert {(event.document_id, event.detail, event.n_total) for event in pages} == {("long.pdf", "long.pdf", 30)}
    assert [event.n_done for event in pages] == sorted({event.n_done for event in pages})
    assert pages[-1].n_done == 30
    assert threads == {get_ident()}  # that of the engine, and not that in which a document is parsed
