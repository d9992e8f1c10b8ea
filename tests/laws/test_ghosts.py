"""Law: what is removed is gone: none of its words is left in any file of the index."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from string import ascii_lowercase

import pytest

from quipu.engine import Quipu
from quipu.model.document import MetadataValue, SourceDocument
from quipu.stores.relational import conversations, segments
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.llm import ScriptedLLM
from tests.laws.model_world import script, scripted_engine
from tests.laws.world import engine

N_DOCUMENTS, N_REMOVED = 40, 7
WORDS_A_DOCUMENT = 60
SHARED = "Marco Polo met Kublai Khan at the court of Shangdu in 1275."


def words(name: str) -> list[str]:
    """Return words that no other document has."""
    random = Random(name)
    return ["".join(random.choices(ascii_lowercase, k=12)) for _ in range(WORDS_A_DOCUMENT)]


def document(name: str, version: int = 0) -> SourceDocument:
    """Return a document of such words in text, names, title and metadata."""
    title, person, place, tag, *rest = words(f"{name} {version}")
    said = f"{person.capitalize()} Polo met {place.capitalize()} Khan in 1275. {SHARED} " + " ".join(rest)
    metadata: dict[str, MetadataValue] = {"tag": tag, "tags": (tag, name)}
    return SourceDocument(id=f"{name}.md", content=said.encode(), title=title, metadata=metadata)


NAMES = [f"n{number}" for number in range(N_DOCUMENTS)]
REMOVED = Random("removed").sample(NAMES, N_REMOVED)
GONE = [word for name in REMOVED for word in words(f"{name} 0")]


def found(folder: Path, wanted: Sequence[str]) -> set[str]:
    """Return which words stand in a file of the index; of a word, its end is enough."""
    files = [each.read_bytes().lower() for each in sorted(folder.rglob("*")) if each.is_file()]
    return {word for word in wanted if any(word[4:].encode() in content for content in files)}


async def talk_about(kb: Quipu, names: Sequence[str]) -> str:
    """Ask about each document in one conversation, whose answers quote it; return the id of the conversation."""
    talk = ""
    for name in names:
        talk = (await kb.conversations.ask(f"Whom did {words(f'{name} 0')[1]} Polo meet?", talk)).conversation
    return talk


async def fill_and_remove(kb: Quipu) -> None:
    """Add documents one after the other, in groups, and take some of them back."""
    for start in range(0, N_DOCUMENTS, 5):
        await kb.add(*map(document, NAMES[start : start + 5]))
    await kb.remove([f"{name}.md" for name in REMOVED])


async def test_no_word_of_a_removed_document_is_left(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        await fill_and_remove(kb)
        assert await kb.verify() == []
        assert found(tmp_path / "kb", GONE) == set()  # with the index open, too
    assert found(tmp_path / "kb", GONE) == set()
    assert len(found(tmp_path / "kb", words(f"{NAMES[-1]} 0"))) > WORDS_A_DOCUMENT // 2  # some lie across two pages


async def test_no_word_of_a_removed_document_is_left_where_a_reader_kept_the_log_at_first(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        async with engine(tmp_path / "kb") as reader, reader._store.view() as view:
            await view.counts("embedder")
            await fill_and_remove(kb)
            assert found(tmp_path / "kb", GONE), "the reader sees the index as it was"
        await kb.refresh()
        assert found(tmp_path / "kb", GONE) == set()


async def test_no_word_of_a_deleted_conversation_is_left_where_a_reader_kept_the_log_at_first(tmp_path: Path) -> None:
    people = [words(f"{name} 0")[1] for name in REMOVED]
    async with engine(tmp_path / "kb") as kb:
        await kb.add(*map(document, NAMES))
        talk = await talk_about(kb, REMOVED)
        await kb.remove([f"{name}.md" for name in REMOVED])
        async with engine(tmp_path / "kb") as reader, reader._store.view() as view:
            await view.counts("embedder")
            await kb.conversations.delete(talk)
            assert found(tmp_path / "kb", people)
        await kb.refresh()
        assert found(tmp_path / "kb", people) == set()


async def test_no_word_of_a_removed_document_is_left_in_a_saved_conversation(tmp_path: Path) -> None:
    people = {words(f"{name} 0")[1] for name in REMOVED}  # the questions may stay
    wanted = [word for word in GONE if word not in people]
    async with engine(tmp_path / "kb") as kb:
        await kb.add(*map(document, NAMES))
        talk = await talk_about(kb, REMOVED)
        answers = [exchange.answer for exchange in (await kb.conversations.read(talk)).exchanges]
        assert all(answer and answer.citations for answer in answers)
        async with engine(tmp_path / "kb") as other:
            await other.remove([f"{name}.md" for name in REMOVED])
        exchanges = (await kb.conversations.read(talk)).exchanges
        assert [exchange.answer for exchange in exchanges] == [None] * N_REMOVED
        assert found(tmp_path / "kb", wanted) == set()
        assert found(tmp_path / "kb", sorted(people)) == people
        await kb.conversations.delete(talk)
        assert found(tmp_path / "kb", sorted(people)) == set()


async def test_no_word_of_a_removed_document_is_left_in_a_conversation_with_a_model(tmp_path: Path) -> None:
    people = {words(f"{name} 0")[1] for name in REMOVED}  # the questions may stay
    async with scripted_engine(tmp_path / "kb", ScriptedLLM(script())) as kb:
        await kb.add(*map(document, NAMES))
        talk = await talk_about(kb, REMOVED)
        answers = [exchange.answer for exchange in (await kb.conversations.read(talk)).exchanges]
        assert {answer.generator for answer in answers if answer} == {"scripted/chat"}
        await kb.remove([f"{name}.md" for name in REMOVED])
    assert found(tmp_path / "kb", [word for word in GONE if word not in people]) == set()


async def test_the_law_fails_where_the_answers_of_conversations_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "drop_answers", lambda *_: None)
    async with engine(tmp_path / "kb") as kb:
        await kb.add(*map(document, NAMES))
        await talk_about(kb, REMOVED)
        await kb.remove([f"{name}.md" for name in REMOVED])
        assert [line for line in await kb.verify() if "conversation" in line]
    assert found(tmp_path / "kb", GONE)


async def test_no_word_of_a_removed_document_is_left_where_a_model_read_it(tmp_path: Path) -> None:
    async with scripted_engine(tmp_path / "kb", ScriptedLLM(script())) as kb:
        await fill_and_remove(kb)
    assert found(tmp_path / "kb", GONE) == set()


async def test_a_removal_that_was_cut_short_leaves_no_word_either_when_it_is_resumed(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        await kb.add(*map(document, NAMES))
        async with engine(tmp_path / "kb") as other:
            other._store.purge = _stopped  # type: ignore[method-assign]
            with pytest.raises(KeyboardInterrupt):
                await other.remove([f"{name}.md" for name in REMOVED])
        assert found(tmp_path / "kb", GONE)
        await kb.resume()
    assert found(tmp_path / "kb", GONE) == set()


async def test_no_word_of_an_earlier_version_is_left_when_much_has_changed_or_after_a_purge(tmp_path: Path) -> None:
    old = words(f"{NAMES[0]} 0")
    async with engine(tmp_path / "kb") as kb:
        await kb.add(*map(document, NAMES))
        await kb.add(document(NAMES[0], version=1))
        await kb.purge()
        assert found(tmp_path / "kb", old) == set()
        await kb.add(*(document(name, version=1) for name in REMOVED))
    assert found(tmp_path / "kb", GONE) == set()


async def test_the_law_fails_where_full_text_keeps_removed_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "remove", lambda *_: None)
    async with engine(tmp_path / "kb") as kb:
        await fill_and_remove(kb)
    assert found(tmp_path / "kb", GONE)


async def test_the_law_fails_where_the_log_is_not_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteBackend, "empty_log", lambda *_: False)
    async with engine(tmp_path / "kb") as kb:
        await fill_and_remove(kb)
        assert found(tmp_path / "kb", GONE)


async def _stopped(*, text_only: bool = False) -> int:
    raise KeyboardInterrupt
