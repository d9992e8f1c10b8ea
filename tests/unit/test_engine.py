"""The engine, end to end, in process: what adding, changing, removing and asking cost and give."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from quipu import parse as quipu_parse
from quipu.engine import Quipu
from quipu.errors import Corrupt, InvalidInput, Mismatch, NotFound, Unavailable
from quipu.ingest import pipeline
from quipu.ingest.documents import parse_document
from quipu.ingest.local import LocalExtractor
from quipu.ingest.sources import text_source
from quipu.model.chunking import Chunking
from quipu.model.delta import Delta
from quipu.model.document import DocumentStatus, ParsedDocument, SourceDocument
from quipu.model.event import DocumentDone, Event, Progress
from quipu.model.extraction import ChunkInput
from quipu.model.query import Budget, Condition, Filter, Query, Turn
from quipu.parse.xlsx import MEDIA_TYPE
from quipu.ports.ingest import ExtractionResult
from quipu.settings import Settings
from quipu.wiring import open_engine
from tests.laws.world import engine
from tests.unit.parse.hostile import xlsx

POLO = "# Marco Polo\n\nMarco Polo was a merchant of Venice. Marco Polo met Kublai Khan in Shangdu in 1275."
KHAN = "# Kublai Khan\n\nKublai Khan founded the Yuan dynasty. Kublai Khan was a grandson of Genghis Khan."


class ChoosyExtractor(LocalExtractor):
    """The local extractor, which counts what it is asked and fails on texts that hold a word."""

    def __init__(self, bad_word: str = "") -> None:
        super().__init__()
        self.bad_word = bad_word
        self.n_asked = 0

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Extract, or fail."""
        self.n_asked += len(inputs)
        async for outcome in super().extract(inputs):
            is_bad = bool(self.bad_word) and self.bad_word in inputs[outcome.index].text
            yield ExtractionResult(index=outcome.index, extraction=None, error="too hard") if is_bad else outcome


async def _dump(kb: Quipu) -> list[str]:
    return [line async for line in kb.dump()]


async def test_a_question_is_answered_with_quotes_that_stand_where_the_citation_says(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo")
        await kb.add_text(KHAN, id="khan")
        answer = await kb.query("Who founded the Yuan dynasty?")
        assert answer.is_supported
        assert "Kublai Khan founded the Yuan dynasty." in answer.text
        for citation in answer.citations:
            chunks = (await kb.document(citation.document_id)).chunks
            chunk = next(chunk for chunk in chunks if chunk.id == citation.chunk_id)
            assert chunk.text[citation.start - chunk.start : citation.end - chunk.start] == citation.quote


async def test_nothing_is_made_up_where_nothing_is_known(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo")
        answer = await kb.query("How do I reset the password of my router?")
        assert not answer.is_supported
        assert answer.text.startswith("I found no answer to this")
        assert answer.citations == ()


async def test_the_same_again_costs_nothing_and_a_change_costs_its_chunks(tmp_path: Path) -> None:
    extractor = ChoosyExtractor()
    paragraphs = [f"Paragraph {n}. Envoy{n} Smith travelled to City{n} Port with {n} horses." for n in range(40)]
    async with engine(tmp_path, extractor=extractor) as kb:
        first = await kb.add_text("\n\n".join(paragraphs), id="log", title="Log")
        asked = extractor.n_asked
        again = await kb.add_text("\n\n".join(paragraphs), id="log", title="Log")
        assert (first.n_added, again.n_unchanged, again.n_chunks) == (1, 1, 0)
        assert extractor.n_asked == asked > 5
        paragraphs[20] = "A new paragraph about Ibn Battuta and Tangier."
        changed = await kb.add_text("\n\n".join(paragraphs), id="log", title="Log")
        assert changed.n_updated == 1
        assert 1 <= extractor.n_asked - asked <= 4
        assert changed.n_reused == changed.n_chunks - changed.n_extracted


async def test_of_equal_chunks_one_is_read_and_the_others_are_known(tmp_path: Path) -> None:
    text = "Envoy Smith travelled to City Port with many horses."
    async with engine(tmp_path, extractor=(extractor := ChoosyExtractor())) as kb:
        sources = [SourceDocument(id=name, content=text.encode(), media_type="text/plain", title="T") for name in "abc"]
        report = await kb.add(*sources)
        assert (report.n_chunks, report.n_extracted, report.n_reused, extractor.n_asked) == (3, 1, 2, 1)


async def test_metadata_alone_changes_without_reading_anything_again(tmp_path: Path) -> None:
    extractor = ChoosyExtractor()
    async with engine(tmp_path, extractor=extractor) as kb:
        await kb.add_text(POLO, id="polo", metadata={"year": 1275})
        asked = extractor.n_asked
        report = await kb.add_text(POLO, id="polo", metadata={"year": 1298})
        assert report.n_updated == 1
        assert extractor.n_asked == asked
        assert (await kb.document("polo")).document.metadata["year"] == 1298


async def test_the_same_content_under_two_names_is_two_documents_that_share_the_work(tmp_path: Path) -> None:
    extractor = ChoosyExtractor()
    async with engine(tmp_path, extractor=extractor) as kb:
        await kb.add_text(POLO, id="a")
        asked, before = extractor.n_asked, await _dump(kb)
        await kb.add_text(POLO, id="b")
        assert extractor.n_asked == asked
        await kb.remove(["b"])
        assert await _dump(kb) == before
        await kb.add_text(POLO, id="b")
        await kb.remove(["a"])
        assert extractor.n_asked == asked, "the reply was dropped with the first of two documents"


async def test_a_document_that_cannot_be_read_fails_alone_and_says_why(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        bad = SourceDocument(id="bad", content=b"\x00\x01\x02", media_type="text/plain")
        report = await kb.add(bad, SourceDocument(id="good", content=POLO.encode(), media_type="text/markdown"))
        assert report.n_added == 1
        assert [document.id for document in report.failed] == ["bad"]
        assert report.failed[0].error
        assert {d.id: d.status for d in await kb.documents()} == {
            "bad": DocumentStatus.FAILED,
            "good": DocumentStatus.READY,
        }
        mended = await kb.add(SourceDocument(id="bad", content=KHAN.encode(), media_type="text/markdown"))
        assert (mended.n_added, mended.failed) == (1, ())


async def test_a_changed_document_that_cannot_be_read_leaves_the_old_version_live(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo")
        await kb.add(SourceDocument(id="polo", content=b"\x00", media_type="text/plain"))
        report = await kb.document("polo")
        assert report.document.status is DocumentStatus.FAILED
        assert "Marco Polo" in report.chunks[0].text
        assert await kb.cancel(["polo"]) == 1
        assert (await kb.document("polo")).document.status is DocumentStatus.READY


async def test_failed_chunks_make_a_partial_document_and_are_tried_again(tmp_path: Path) -> None:
    text = "\n\n".join(
        [f"Chapter {n}. Traveller{n} Jones crossed River{n} Delta with a caravan of salt." for n in range(9)]
    )
    extractor = ChoosyExtractor(bad_word="Traveller4")
    async with engine(tmp_path, extractor=extractor) as kb:
        report = await kb.add_text(text, id="book")
        assert [document.status for document in report.partial] == [DocumentStatus.PARTIAL]
        assert report.partial[0].n_failed_chunks == 1
        asked, extractor.bad_word = extractor.n_asked, ""
        assert await kb.retry() == 1
        again = await kb.resume()
        assert extractor.n_asked == asked + 1
        assert (again.n_resumed, again.partial) == (1, ())
        whole = await _dump(kb)
    async with engine(tmp_path / "fresh") as kb:
        await kb.add_text(text, id="book")
        assert await _dump(kb) == whole


async def test_an_extractor_that_breaks_down_loses_nothing_it_has_said(tmp_path: Path) -> None:
    class BrokenExtractor(LocalExtractor):
        async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
            async for outcome in super().extract(inputs):
                if outcome.index == 1:
                    raise ZeroDivisionError("out of order")
                yield outcome

    text = "\n\n".join(
        [f"Chapter {n}. Traveller{n} Jones crossed River{n} Delta with a caravan of salt." for n in range(4)]
    )
    async with engine(tmp_path, extractor=BrokenExtractor()) as kb:
        report = await kb.add_text(text, id="book")
        assert report.n_extracted == 1
        assert "out of order" in (await kb.document("book")).chunks[1].error
        assert await kb.verify() == []


async def test_filters_hide_text_and_descriptions_of_other_documents(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo", metadata={"region": "Europe"})
        await kb.add_text(
            "Marco Polo is a secret code word of the SECRETDOC.", id="secret", metadata={"region": "Mars"}
        )
        europe = Filter(where=(Condition(field="region", operator="=", value="europe"),))
        for strategy in ("naive", "lexical", "local", "global", "hybrid", "mix"):
            answer = await kb.query("Who is Marco Polo?", strategy=strategy, filter=europe)
            assert "SECRETDOC" not in answer.text + answer.context + answer.prompt + repr(answer.trace)
            assert {citation.document_id for citation in answer.citations} <= {"polo"}


async def test_events_tell_how_far_the_work_is(tmp_path: Path) -> None:
    events: list[Event] = []
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo", on_event=events.append)
    assert DocumentDone(document_id="polo", status="ready") in events
    stages = [event.stage for event in events if isinstance(event, Progress)]
    assert {"read", "extract", "embed"} <= set(stages)
    assert all(event.n_done <= event.n_total for event in events if isinstance(event, Progress))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda kb: kb.document("polp"), "Did you mean polo?"),
        (lambda kb: kb.remove(["polo", "nowhere"]), "There is no document 'nowhere'"),
        (lambda kb: kb.entity("Marco Pol"), "Did you mean Marco Polo?"),
        (lambda kb: kb.relation("Marco Polo", "Napoleon"), "Marco Polo relates to"),
        (lambda kb: kb.chunk("0000"), "There is no chunk '0000'"),
        (lambda kb: kb.cancel(["nowhere"]), "There is no document 'nowhere'"),
        (lambda kb: kb.add(Path("no/such/file.md")), "no/such/file.md"),
    ],
)
async def test_what_is_not_there_is_named_with_what_is_near(tmp_path: Path, ask, message: str) -> None:  # type: ignore[no-untyped-def]
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo")
        with pytest.raises(NotFound, match=message):
            await ask(kb)


async def test_wrong_questions_are_refused_with_a_remedy(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        with pytest.raises(InvalidInput, match="empty"):
            await kb.query("  ")
        with pytest.raises(InvalidInput, match="There is no strategy 'locall'") as unknown:
            await kb.query("What?", strategy="locall")
        assert "Did you mean 'local'?" in unknown.value.remedy
        with pytest.raises(InvalidInput, match="topk"):
            await kb.query("What?", topk=3)  # type: ignore[call-arg] # mypy fails where this is no error
        with pytest.raises(InvalidInput, match="top_k"):
            await kb.query("What?", top_k="three")  # type: ignore[arg-type] # and here
        with pytest.raises(InvalidInput, match="not a date"):
            await kb.query(Query(text="What?", filter=Filter(after="last week")))
        with pytest.raises(InvalidInput, match="nothing to search"):
            await kb.search(" ")


async def test_only_what_embeds_is_refused_with_another_embedder_until_the_index_is_embedded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(index=tmp_path / "kb")
    async with await open_engine(settings) as kb:
        await kb.add_text(POLO, id="polo")
        expected = [line for line in await _dump(kb) if '"kind":"vector"' not in line]
        made_with = (await kb.status()).embedder
    monkeypatch.setattr("quipu.providers.local.WordLlamaEmbedder.identity", "wordllama/other")
    async with await open_engine(settings) as kb:
        status = await kb.status()
        assert (status.embedder, status.other_embedder) == (made_with, "wordllama/other")
        assert (await kb.query("Who met Kublai Khan?", strategy="lexical")).is_supported
        assert await kb.verify() == []
        for refused in (
            kb.query("Who met Kublai Khan?"),
            kb.retrieve("Who met Kublai Khan?", strategy="naive"),
            kb.add_text("Niccolò was his father.", id="father"),
        ):
            with pytest.raises(Mismatch, match="quipu reembed"):
                await refused
        assert [document.id for document in await kb.documents()] == ["polo"]
        assert (await kb.resume()).stopped == (await kb.refresh()).stopped == ""
        assert await kb.reembed() > 0
        assert (await kb.query("Who met Kublai Khan?")).is_supported
    async with await open_engine(settings) as kb:
        lines = await _dump(kb)
        assert [line for line in lines if '"kind":"vector"' not in line] == expected
        assert all("wordllama/other" in line for line in lines if '"kind":"vector"' in line)
        assert await kb.verify() == []
        assert (await kb.query("Who met Kublai Khan?")).is_supported


async def test_documents_are_removed_and_what_cannot_be_embedded_is_told_with_another_embedder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(index=tmp_path / "kb")
    async with await open_engine(settings) as kb:
        await kb.add_text(POLO, id="polo")
        await kb.add_text("Marco Polo came home to Venice.", id="home")
        await kb.refresh(["communities", "hierarchy"])
    monkeypatch.setattr("quipu.providers.local.WordLlamaEmbedder.identity", "wordllama/other")
    async with await open_engine(settings) as kb:
        report = await kb.remove(["home"])
        assert report.removed == ("home",)
        assert all("quipu reembed" in each.stopped for each in report.refreshed.derivations)
        assert await kb.verify() == []
        await kb.remove(["polo"])
    async with await open_engine(settings) as kb:
        assert (await kb.status()).other_embedder == ""  # it holds nothing: any embedder will do


async def test_another_tokenizer_is_refused_until_full_text_is_built_again(tmp_path: Path) -> None:
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        await kb.add_text("长城是中国古代的防御工程。", id="wall")
    other = Settings(index=tmp_path / "kb", segmenter="jieba")
    with pytest.raises(Mismatch, match="quipu refresh --rebuild"):
        await open_engine(other)
    async with await open_engine(other, repair=True) as kb:
        await kb.refresh(rebuild=True)
    async with await open_engine(other) as kb:
        assert await kb.verify() == []
        assert [chunk.document_id for _, chunk in (await kb.search("防御工程")).chunks] == ["wall"]


async def test_no_index_is_made_by_looking_for_one(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="quipu add"):
        await open_engine(Settings(index=tmp_path / "kb"), create=False)
    assert not (tmp_path / "kb").exists()


async def test_many_tasks_may_ask_while_one_adds(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(KHAN, id="khan")
        adding = asyncio.create_task(kb.add(*(SourceDocument(id=f"d{n}", content=POLO.encode()) for n in range(30))))
        answers = await asyncio.gather(*(kb.query("Who founded the Yuan dynasty?") for _ in range(12)))
        assert (await adding).n_added == 30
        assert all(answer.is_supported for answer in answers)
        assert await kb.verify() == []


async def test_an_index_stands_where_its_path_says_whatever_letters_it_has(tmp_path: Path) -> None:
    for name in ("what?", "a%20b", "c#d", "mode=ro?x=1", "空 格"):
        async with await open_engine(Settings(index=tmp_path / name)) as kb:
            await kb.add_text(POLO, id=name)
        async with await open_engine(Settings(index=tmp_path / name), create=False) as kb:
            assert [document.id for document in await kb.documents()] == [name]
        assert (tmp_path / name / "index.sqlite").is_file()


async def test_damage_to_the_file_is_found(tmp_path: Path) -> None:
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        await kb.add(*(SourceDocument(id=f"d{n}", content=f"{POLO} Number {n}.".encode()) for n in range(40)))
        assert await kb.damage() == []
    path = tmp_path / "kb" / "index.sqlite"
    data = bytearray(path.read_bytes())
    data[40_000:45_000] = bytes(range(250)) * 20
    path.write_bytes(bytes(data))
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        try:
            assert await kb.damage()
        except Corrupt as error:
            assert error.remedy


async def test_a_question_that_is_a_book_is_refused(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        with pytest.raises(InvalidInput, match="at most"):
            await kb.query("why " * 10_000)


async def test_an_index_that_is_deleted_while_open_is_not_written_to(tmp_path: Path) -> None:
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        await kb.add_text(POLO, id="polo")
        shutil.rmtree(tmp_path / "kb")
        with pytest.raises(Unavailable, match="deleted"):
            await kb.add_text(KHAN, id="khan")


async def test_an_index_that_cannot_be_written_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        await kb.add_text(POLO, id="polo")
    monkeypatch.setattr(os, "access", lambda *_: False)  # a test run as root could write anywhere
    async with await open_engine(Settings(index=tmp_path / "kb"), create=False) as kb:
        assert (await kb.query("Who met Kublai Khan?")).is_supported
        with pytest.raises(Unavailable, match="can be written"):
            await kb.add_text(KHAN, id="khan")


async def test_each_of_several_callers_is_told_of_its_own_documents(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        reports = await asyncio.gather(*(kb.add_text(f"{POLO} Copy {n}.", id=f"d{n}") for n in range(8)))
        assert [(report.n_added, report.failed) for report in reports] == [(1, ())] * 8
        assert [document.status for document in await kb.documents()] == [DocumentStatus.READY] * 8


async def test_removals_that_were_cut_short_are_counted_as_they_are_finished(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo")
        await kb.add_text(KHAN, id="khan")
        await kb._store.commit(Delta(enqueue_removal=["polo", "khan"]))
        report = await kb.resume()
        assert (report.n_removed, report.n_resumed) == (2, 0)
        assert await kb.documents() == []


async def test_a_document_added_again_while_its_removal_is_under_way_stays(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo")
        store = kb._store
        await store.commit(Delta(enqueue_removal=["polo"]))
        [removal] = await store.claim_jobs(5)
        await kb.add_text(KHAN, id="polo")
        await store.commit(Delta(remove_claimed=[removal.id]))
        assert "Kublai" in (await kb.document("polo")).chunks[0].text


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (SourceDocument(id=" ", content=b"Text."), "cannot be the id"),
        (SourceDocument(id="a\x00b", content=b"Text."), "cannot be the id"),
        (SourceDocument(id="", content=b"Text."), "'' cannot be the id"),
        (SourceDocument(id="x" * 5_000, content=b"Text."), "1 to 4,096"),
        (SourceDocument(id="d", content=b"Text.", metadata={"score": float("nan")}), "'score' = nan"),
        (SourceDocument(id="d", content=b"Text.", metadata={"": "x"}), "a name"),
    ],
)
async def test_what_could_not_be_named_or_compared_is_refused(
    tmp_path: Path, document: SourceDocument, message: str
) -> None:
    async with engine(tmp_path) as kb:
        with pytest.raises(InvalidInput, match=message):
            await kb.add(document)


async def test_options_that_ask_for_nothing_are_refused(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        with pytest.raises(InvalidInput, match="top_k = 0"):
            await kb.query("What?", top_k=0)
        with pytest.raises(InvalidInput, match="related_chunks = -1"):
            await kb.query("What?", related_chunks=-1)


async def test_a_closed_index_says_so(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo")
    for use in (kb.query("Who met Kublai Khan?"), kb.add_text(KHAN, id="khan")):
        with pytest.raises(Unavailable, match="closed"):
            await use


async def test_a_filter_may_name_thousands_of_documents(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo", metadata={"year": 1275})
        await kb.add_text(KHAN, id="khan", metadata={"year": 1260})
        many = tuple(f"d{n}" for n in range(3_000))
        years = ",".join(str(year) for year in range(1261, 5_000))
        allowed = Filter(documents=(*many, "po*"), exclude=many)
        later = Filter(where=(Condition(field="year", operator="in", value=years),))
        for chosen in (allowed, later):
            found = await kb.retrieve("Who met Kublai Khan?", strategy="lexical", filter=chosen)
            assert [(await kb.chunk(hit.id)).chunk.document_id for hit in found.chunks] == ["polo"]


LOG = " ".join(f"Marco Polo met merchant number {number} in Venice." for number in range(60))


async def test_a_call_says_how_to_cut_and_the_same_again_costs_nothing(tmp_path: Path) -> None:
    source = text_source(LOG, "log")
    async with engine(tmp_path) as kb:
        await kb.add(source)
        structured = (await kb.document("log")).chunks
        fixed = Chunking(method="fixed", max_tokens=100, overlap=20)
        assert (await kb.add(source, chunking=fixed)).n_updated == 1
        assert (await kb.add(source, chunking=fixed)).n_unchanged == 1
        windows = (await kb.document("log")).chunks
        assert len(windows) < len(structured)
        assert all(after.start < before.end for before, after in pairwise(windows))
        assert (await kb.add(source)).n_updated == 1
        assert (await kb.document("log")).chunks == structured
        assert await kb.verify() == []


async def test_a_document_is_cut_where_its_subject_changes(tmp_path: Path) -> None:
    venice = " ".join(f"Merchant {number} of Venice sold silk in the market." for number in range(30))
    stars = " ".join(f"Astronomer {number} saw a distant galaxy through a telescope." for number in range(30))
    async with engine(tmp_path) as kb:
        report = await kb.add(text_source(f"{venice} {stars}", "both"), chunking=Chunking(method="semantic"))
        assert report.n_added == 1
        first, second = (await kb.document("both")).chunks
        assert "Astronomer" not in first.text
        assert "Venice" not in second.text


async def test_work_that_is_resumed_is_cut_as_it_was_to_be(tmp_path: Path) -> None:
    windows = Chunking(method="fixed", max_tokens=100, overlap=20)
    async with engine(tmp_path / "whole") as kb:
        await kb.add(text_source(LOG, "log"), chunking=windows)
        wanted = await _dump(kb)

    def stop(_event: Event) -> None:
        raise KeyError("stopped before any work")

    async with engine(tmp_path / "stopped") as kb:
        with pytest.raises(KeyError):
            await kb.add(text_source(LOG, "log"), chunking=windows, on_event=stop)
        assert (await kb.status()).n_documents == 0
    async with engine(tmp_path / "stopped") as kb:
        await kb.resume()
        assert await _dump(kb) == wanted
        assert (await kb.add(text_source(LOG, "log"), chunking=windows)).n_unchanged == 1


async def test_packed_documents_are_read_a_few_megabytes_of_text_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "MAX_GROUP_BYTES", 5_000)
    rows = "<w>" + "<row><c t='s'><v>0</v></c></row>" * 10 + "</w>"
    sources = [
        SourceDocument(
            id=f"{n}.xlsx", media_type=MEDIA_TYPE, content=xlsx(rows, f"<s><si><t>{f'y{n} ' * 300}</t></si></s>")
        )
        for n in range(3)
    ]
    assert sum(len(source.content) for source in sources) < 5_000
    told: list[Event] = []
    async with engine(tmp_path) as kb:
        await kb.add(*sources, on_event=told.append)
    order = [type(each) for each in told if isinstance(each, DocumentDone) or each.stage == "extract"]
    assert order.count(DocumentDone) == 3
    assert Progress in order[order.index(DocumentDone) :]


@pytest.mark.parametrize(("fault", "said"), [(MemoryError(), "not enough memory"), (KeyError("x"), "please report it")])
async def test_a_fault_of_a_parser_fails_its_document_alone_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, said: str
) -> None:
    def parse(source: SourceDocument) -> ParsedDocument:
        if source.id == "bad":
            raise fault
        return quipu_parse.parse(source)

    monkeypatch.setattr(
        pipeline,
        "parse_document",
        lambda source, ingest_config: parse_document(source, replace(ingest_config, parse=parse)),
    )
    async with engine(tmp_path) as kb:
        report = await kb.add(text_source(POLO, "good"), text_source(KHAN, "bad"))
        assert [(document.id, said in document.error) for document in report.failed] == [("bad", True)]
        assert report.n_added == 1


async def test_what_a_busy_index_did_not_let_a_run_give_back_the_next_run_takes_up(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb._store.commit(Delta(enqueue=[text_source(POLO, id="polo")]))
        await kb._store.claim_jobs(1)
        report = await kb.resume()
        assert report.n_resumed == 1
        assert [each.id for each in await kb.documents()] == ["polo"]


async def test_a_single_text_is_one_id_and_not_one_for_each_letter(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        for name in ("1", "2", "12", "3"):
            await kb.add_text(f"{POLO} {name}", id=name)
        await kb.remove("12")
        assert [document.id for document in await kb.documents()] == ["1", "2", "3"]
        with pytest.raises(NotFound, match="'13'"):
            await kb.cancel("13")
        with pytest.raises(NotFound, match="'13'"):
            await kb.retry("13")


async def test_what_is_no_text_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo")
        for work in (
            kb.query("caf\udcff"),
            kb.query("Who?", history=(Turn(role="user", text="\ud800"),)),
            kb.query("Who?", filter=Filter(documents=("\udcff",))),
            kb.search("caf\udcff"),
            kb.remove(["\udcff"]),
            kb.document("\udcff"),
        ):
            with pytest.raises(InvalidInput, match="lone surrogate"):
                await work


async def test_a_chunk_tells_the_aliases_it_states(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text("The World Health Organization (WHO) was founded in Geneva.", id="who")
        (chunk,) = (await kb.document("who")).chunks
        assert [(each.surface, each.key) for each in (await kb.chunk(chunk.id)).aliases] == [
            ("WHO", "world health organization")
        ]


async def test_a_question_is_compared_and_explained(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo")
        await kb.add_text(KHAN, id="khan")
        question = "Who founded the Yuan dynasty?"
        compared = await kb.compare(question, ["naive", "local"])
        assert [row.strategy for row in compared.results] == ["naive", "local"]
        first, rest = await kb.explain(question, strategy="local", rank=1), await kb.explain(question, strategy="local")
        assert first.chunks[0] == rest.chunks[0]
        assert (rest.chunks[0].document_id, rest.dropped) == ("khan", ())
        narrow = await kb.explain(question, strategy="naive", budget=Budget(total=200))
        assert {chunk.id for chunk in narrow.chunks} == {chunk for hits in narrow.dropped for chunk in hits.ids}
        with pytest.raises(NotFound, match="There is no chunk 'dead'"):
            await kb.explain(question, chunk="dead")


async def test_a_removal_tells_what_was_brought_up_to_date(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text(POLO, id="polo")
        await kb.add_text(KHAN, id="khan")
        report = await kb.remove(["polo", "polo"])
        assert (report.removed, report.refreshed.is_complete, report.refreshed.usage) == (("polo",), True, ())


async def test_enqueued_documents_wait_until_someone_works_through_the_queue(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Ada wrote to Charles.", encoding="utf-8")
    (tmp_path / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        enqueued = await kb.enqueue(tmp_path / "a.md", tmp_path / "b.png")
        assert enqueued.added == ("a.md",)
        assert [name for name, _ in enqueued.unreadable] == ["b.png"]
        assert [document.status.value for document in await kb.documents()] == ["queued"]
        assert (await kb.resume()).n_resumed == 1
        assert (await kb.enqueue(tmp_path / "a.md")).unchanged == ("a.md",)
        assert [document.status.value for document in await kb.documents()] == ["ready"]
