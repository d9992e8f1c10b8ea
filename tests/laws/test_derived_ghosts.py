"""Law: with every derivation kept, no word of a removed document is left: in no row at once, then in no file."""

import json
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, closing, suppress
from dataclasses import replace
from pathlib import Path
from sqlite3 import connect

import pytest

from quipu.engine import Quipu
from quipu.model.chat import ChatRequest, Completion, Role
from quipu.model.cluster import Hierarchy, report_text
from quipu.model.delta import Delta
from quipu.ports.providers import TextSink, ignore_text
from quipu.stores.relational import cluster_writes
from quipu.stores.relational.cluster_writes import Touched
from quipu.stores.relational.schema import metadata
from quipu.testing import facts
from quipu.testing.llm import ScriptedLLM
from tests.laws.derived_world import keep_all, told_of
from tests.laws.model_world import script, scripted_engine
from tests.laws.test_ghosts import NAMES, document, found, words
from tests.laws.world import engine

KEPT, REMOVED = NAMES[:9], NAMES[9:12]
GONE = [word for name in REMOVED for word in words(f"{name} 0")]


class Quoting(ScriptedLLM):
    """A model whose reports and aggregates repeat all they are shown."""

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the scripted reply, with the whole message where the reply tells of something in JSON."""
        completion = await super().complete(request, on_text)
        if request.role is not Role.REPORT:
            return completion
        said = json.loads(completion.text)
        for field in {"summary", "description"} & said.keys():
            said[field] = request.messages[-1].text
        return replace(completion, text=json.dumps(said))


def opened(folder: Path, *, asks: bool) -> AbstractAsyncContextManager[Quipu]:
    """Open an engine without a model, or with one that quotes."""
    return scripted_engine(folder, Quoting(script())) if asks else engine(folder)


def told(folder: Path, wanted: Sequence[str]) -> dict[str, set[str]]:
    """Return the tables with a row that holds one of these words, in the open or packed, with the words.

    Those of full text are left out: they hold words in pieces, until they are wiped.
    """
    holding: dict[str, set[str]] = {}
    with closing(connect(folder / "index.sqlite")) as database:
        for table in metadata.tables:
            content = b" ".join(_values(database.execute(f'SELECT * FROM "{table}"').fetchall())).lower()
            if held := {word for word in wanted if word.encode() in content}:
                holding[table] = held
    return holding


def _values(rows: list[tuple[object, ...]]) -> Iterator[bytes]:
    for row in rows:
        for value in row:
            data = value if isinstance(value, bytes) else f"{value}".encode()
            with suppress(zlib.error):
                data = zlib.decompress(data)
            yield data


@pytest.mark.parametrize("asks", [False, True])
async def test_no_word_of_a_removed_document_is_left(asks: bool, tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    async with opened(folder, asks=asks) as kb:
        await kb.add(*map(document, KEPT))
        await keep_all(kb)
        await kb.add(*map(document, REMOVED))
        assert told(folder, GONE).keys() >= {"chunk", "entity", "report"}
        await kb._store.commit(Delta(remove=[f"{name}.md" for name in REMOVED]))
        assert told(folder, GONE) == {}  # at once, before anything is refreshed
        await kb.refresh()
        await kb._store.purge(text_only=True)
        assert told(folder, GONE) == {}
        assert found(folder, GONE) == set()
        for hierarchy in Hierarchy:
            _, reports = await told_of(kb, hierarchy)
            assert reports
            text = " ".join(map(report_text, reports)).lower()
            assert not any(word in text for word in GONE)
            assert any(word in text for name in KEPT for word in words(f"{name} 0"))
        assert await kb.verify() == []
    assert found(folder, GONE) == set()


class Meddling(Quoting):
    """A model that quotes, and takes its time: while the first reply of a kind is under way, something happens."""

    def __init__(self, meanwhile: Callable[[str], Awaitable[object]], role: Role) -> None:
        super().__init__(script())
        self._meanwhile, self._role = meanwhile, role
        self.name = ""

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply, when what happens meanwhile to a document whose words it holds has happened."""
        owners = [each for each in request.documents if each.removesuffix(".md") in NAMES]
        if request.role is self._role and owners and not self.name:
            self.name = owners[0].removesuffix(".md")
            await self._meanwhile(owners[0])
        return await super().complete(request, on_text)


@pytest.mark.parametrize("returns", [False, True])
async def test_no_word_that_is_taken_back_while_replies_are_under_way_is_left(returns: bool, tmp_path: Path) -> None:
    async def meanwhile(document_id: str) -> None:
        if returns:
            await kb._store.commit(Delta(remove=[document_id]))
        await kb._store.commit(Delta(publish=[facts.document(document_id, facts.passage("Nothing of note."))]))

    folder, llm = tmp_path / "kb", Meddling(meanwhile, Role.REPORT)
    async with scripted_engine(folder, llm) as kb:
        await kb.add(*map(document, KEPT))
        await keep_all(kb)
        assert llm.name
        await kb._store.purge()  # what was read of the document before it was another one
        assert told(folder, words(f"{llm.name} 0")) == {}
        assert await kb.verify() == []


async def test_the_law_fails_where_reports_and_aggregates_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_writes, "follow_mentions", lambda *_: Touched())
    with pytest.raises(AssertionError):
        await test_no_word_of_a_removed_document_is_left(True, tmp_path)
