"""Tests of whole texts and files: what a document keeps, and that chunks and citations stand at their offsets in it."""

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quipu.testing
from quipu.engine import Quipu
from quipu.errors import InvalidDocument, NotFound
from quipu.ingest.documents import read_document
from quipu.model.delta import Delta
from quipu.model.document import SourceDocument
from quipu.model.query import Filter, Query
from quipu.testing.contract.steps import publish
from quipu.testing.facts import document as facts
from quipu.testing.facts import source
from tests.laws.world import INGEST_CONFIG, engine
from tests.unit.parse.test_parse import MEDIA_TYPES, PIECES

_DEMO = Path(quipu.testing.__file__).parent / "corpora" / "demo"
_TEXT = "# Travels\n\nMarco Polo left Venice.\n\nКублай-хан правил. 长城很长。😀 The end."


def _encoded(pieces: list[str]) -> bytes:
    return "".join(pieces).encode()


async def _original(kb: Quipu, document_id: str) -> bytes:
    return b"".join([part async for part in kb.original(document_id)])


async def test_text_and_original_are_kept_and_go_with_the_document(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        await kb.add(SourceDocument(id="a.md", content=_TEXT.encode("utf-16"), media_type="text/markdown"))
        text = await kb.text("a.md")
        assert "Marco Polo left Venice." in text
        assert await _original(kb, "a.md") == _TEXT.encode("utf-16")
        for chunk in (await kb.document("a.md")).chunks:
            assert text[chunk.start : chunk.end] == chunk.text
        await kb.remove(["a.md"])
        with pytest.raises(NotFound, match=re.escape("There is no document 'a.md'")):
            await kb.text("a.md")
        with pytest.raises(NotFound, match=re.escape("There is no document 'a.md'")):
            await _original(kb, "a.md")


async def test_a_citation_stands_at_its_offsets_in_the_text(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        await kb.add_text("Preface.\n\nMarco Polo left Venice in 1271 for the court of Kublai Khan.", id="polo")
        answer = await kb.query("When did Marco Polo leave Venice?")
        text = await kb.text("polo")
        assert answer.citations
        assert all(text[cited.start : cited.end] == cited.quote for cited in answer.citations)


async def test_a_file_of_many_parts_is_read_part_by_part(tmp_path: Path) -> None:
    content = "".join(f"Line {n} of a long list.\n" for n in range(100_000)).encode()
    async with engine(tmp_path / "kb") as kb:
        await publish(kb._components.store, replace(facts("a"), text="", original=content))
        parts = [part async for part in kb.original("a")]
    assert [len(part) for part in parts] == [1_048_576, 1_048_576, len(content) - 2 * 1_048_576]
    assert b"".join(parts) == content


async def test_the_bytes_of_a_removed_original_are_no_longer_in_the_files(tmp_path: Path) -> None:
    noise = Random(3).randbytes(30_000)  # does not compress, so it stands in the file as it is

    def holds_noise() -> bool:
        files = [path for path in (tmp_path / "kb").rglob("*") if path.is_file()]
        return any(noise[start : start + 200] in path.read_bytes() for path in files for start in range(0, 29_000, 500))

    async with engine(tmp_path / "kb") as kb:
        await publish(kb._components.store, replace(facts("a", "Acre fell."), original=noise), facts("b", "Venice."))
        assert holds_noise()
        await kb.remove(["a"])
        assert not holds_noise()


async def test_an_empty_file_has_one_empty_part(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        await publish(kb._components.store, replace(facts("a"), original=b""))
        assert [part async for part in kb.original("a")] == [b""]


async def test_originals_are_left_out_if_they_are_not_to_be_kept(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb", keep_originals=False) as kb:
        await kb.add(source("a.txt", "Marco Polo left Venice."))
        assert await kb.text("a.txt") == "Marco Polo left Venice."
        with pytest.raises(NotFound, match=re.escape("original file of 'a.txt' is not in the index")) as caught:
            await _original(kb, "a.txt")
        assert "keep_originals" in caught.value.remedy
        assert (await kb.add(source("a.txt", "Marco Polo left Venice."))).n_unchanged == 1
    async with engine(tmp_path / "kb") as kb:
        assert (await kb.add(source("a.txt", "Marco Polo left Venice."))).n_updated == 1
        assert await _original(kb, "a.txt") == b"Marco Polo left Venice."
        assert (await kb.add(source("a.txt", "Marco Polo left Venice."))).n_unchanged == 1


async def test_a_document_of_an_older_index_is_told_and_completed_when_it_is_added_again(tmp_path: Path) -> None:
    document = source("a.txt", "Marco Polo left Venice.")
    async with engine(tmp_path / "kb") as kb:
        await kb.add(document)
        store = kb._components.store
        async with store.view() as view:
            (live,) = await view.documents(["a.txt"])
        bare = replace(
            facts("a.txt", "Marco Polo left Venice."), text=None, original=None, content_hash=live.content_hash
        )
        await store.commit(Delta(publish=[bare]))
        with pytest.raises(NotFound, match=re.escape("text of 'a.txt' is not in the index")) as caught:
            await kb.text("a.txt")
        assert "quipu add" in caught.value.remedy
        result = await kb.add(document)
        assert (result.n_updated, result.n_extracted) == (1, 0)  # its replies are still cached
        assert await kb.text("a.txt") == "Marco Polo left Venice."


async def test_a_queued_document_has_no_text_yet(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        await kb._components.store.commit(Delta(enqueue=[source("a.txt", "Waiting.")]))
        with pytest.raises(NotFound, match="its status is queued"):
            await kb.text("a.txt")


async def test_a_file_that_changes_while_it_is_read_is_told(tmp_path: Path) -> None:
    content = b"x" * 3_000_000
    async with engine(tmp_path / "kb") as kb:
        await publish(kb._components.store, replace(facts("a"), original=content))
        parts = kb.original("a")
        assert len(await anext(parts)) == 1_048_576
        await publish(kb._components.store, replace(facts("a"), original=b"other"))
        with pytest.raises(NotFound, match="original file"):
            await anext(parts)


async def test_every_chunk_and_citation_of_the_demo_stands_at_its_offsets(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        await kb.add(_DEMO, root=_DEMO)
        documents = await kb.documents()
        assert len({Path(document.id).suffix for document in documents}) > 4
        for document in documents:
            text = await kb.text(document.id)
            chunks = (await kb.document(document.id)).chunks
            assert chunks
            assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks), document.id
            assert await _original(kb, document.id) == (_DEMO / document.id).read_bytes()
        assert await kb.verify() == []
        questions = [entry["question"] for entry in json.loads((_DEMO.parent / "demo-questions.json").read_bytes())]
        answers = [await kb.query(question, strategy=name) for question in questions for name in ("weave", "naive")]
        citations = [citation for answer in answers for citation in answer.citations]
        assert len(citations) > len(answers)
        for citation in citations:
            assert (await kb.text(citation.document_id))[citation.start : citation.end] == citation.quote


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
@settings(deadline=None, max_examples=30)
@given(data=st.binary(max_size=300) | st.lists(st.sampled_from([*PIECES, " ", "\n", "\n\n"])).map(_encoded))
async def test_chunks_of_any_file_stand_at_their_offsets_in_its_text(media_type: str, data: bytes) -> None:
    try:
        document = await read_document(SourceDocument(id="id", content=data, media_type=media_type), INGEST_CONFIG)
    except InvalidDocument:
        return
    text = document.parsed.text
    assert [text[chunk.start : chunk.end] for chunk in document.chunks] == [chunk.text for chunk in document.chunks]


async def test_a_text_under_two_names_is_shown_once_and_its_citation_names_both(tmp_path: Path) -> None:
    letter = b"# Letter\n\nMarco Polo left Venice in 1271 for the court of Kublai Khan."
    async with engine(tmp_path / "kb") as kb:
        names = ("copies/letter.md", "letter.md", "third.md")
        added = await kb.add(*(SourceDocument(id=name, content=letter, media_type="text/markdown") for name in names))
        assert added.notes[0].startswith("3 documents have the text of another: copies/letter.md (letter.md), ")
        await kb.add_text("Kublai Khan ruled. Marco Polo left Venice, they say.", id="other")
        answer = await kb.query("When did Marco Polo leave Venice?")
        assert answer.context.count("# Letter\n\nMarco Polo left Venice") == 1
        (cited,) = [citation for citation in answer.citations if citation.document_id != "other"]
        assert sorted((cited.document_id, *cited.also_in)) == sorted(names)
        assert not any("letter.md" in name for dropped in answer.trace.dropped for name in dropped.ids)
        assert (await kb.document("letter.md")).copies == ("copies/letter.md", "third.md")
        only = Filter(documents=("letter.md", "other"))
        answer = await kb.query(Query(text="When did Marco Polo leave Venice?", filter=only))
        assert {(citation.document_id, citation.also_in) for citation in answer.citations} >= {("letter.md", ())}
        await kb.remove(["copies/letter.md", "third.md"])
        assert (await kb.document("letter.md")).copies == ()


async def test_a_short_text_under_another_title_is_no_repetition(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        for name in ("Flask", "Django"):
            await kb.add_text("Install it with pip.", id=name, title=name)
        answer = await kb.query("How do I install it with pip?")
        assert answer.context.count("Install it with pip.") == 2
