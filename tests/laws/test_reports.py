"""Law: in the commit that removes a document, every report that may tell of it goes, and so does each reply."""

import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Connection, create_engine, select

from quipu.derive import communities, reports
from quipu.derive.derivation import DerivationContext, embed_stale
from quipu.model.cluster import Hierarchy, Partition
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.event import ignore_event
from quipu.providers.local import ByteTokenizer
from quipu.stores.relational import cluster_writes
from quipu.stores.relational import schema as s
from quipu.stores.relational.cluster_writes import Touched
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.facts import PassageSpec, document, entity, passage, relation
from quipu.testing.llm import ScriptedEmbedder, ScriptedLLM
from quipu.topology import LocalTopologyIndex
from quipu.vectors.local import LocalVectors
from quipu.wrap.meter import Meter
from quipu.wrap.reply_cache import CachedLLM

_PEOPLE = [f"{town} {number}" for town in ("Acre", "Bari", "Cori") for number in range(12)]


def letter(number: int, version: int = 0) -> DocumentFacts:
    """Return a document whose every sentence and description, and one name, hold a word of its own."""
    random = Random(number)
    town = random.randrange(3)
    people = [_PEOPLE[12 * town + each] for each in random.sample(range(12), 5)]
    word = _word(number, version)
    return document(f"letter{number}", *(_passage(word, place, people[place:]) for place in range(3)))


def _word(number: int, version: int = 0) -> str:
    return f"zq{'abcdefghij'[number % 10]}{'abcdefghij'[number // 10]}{'xyz'[version]}w"


def _passage(word: str, place: int, people: list[str]) -> PassageSpec:
    names = [*people, f"{word.capitalize()} {place}"]
    told = [f"{names[0]} saw {other} by {word}." for other in names[1:]]
    said = [entity(name, "Person", f"{name} was at {word}.") for name in names]
    return passage(" ".join(told), *said, *(relation(names[0], other, f"Told by {word}.") for other in names[1:]))


@asynccontextmanager
async def _open(folder: Path, *, asks: bool) -> AsyncIterator[DerivationContext]:
    embedder, llm = ScriptedEmbedder(), ScriptedLLM()
    store = RelationalStore(SqliteBackend(folder / "index.sqlite", busy_timeout_s=5), lease_s=60)
    await store.prepare()
    await store.set_embedder(embedder.identity, embedder.dimension)
    yield DerivationContext(
        store=store,
        vectors=LocalVectors(folder / "vectors"),
        embedder=embedder,
        topology=LocalTopologyIndex(folder / "topology"),
        tokenizer=ByteTokenizer(),
        llm=CachedLLM(lambda _: llm, [llm.identity], store, Meter()) if asks else None,
        n_ahead=4,
    )
    await store.close()


async def _refresh(context: DerivationContext) -> None:
    await communities.refresh(context, False)
    report = await reports.refresh(context, False)
    assert (report.failed, report.stopped) == ((), "")
    await embed_stale(context.store, context.embedder, ignore_event)


def _holding(folder: Path, word: str) -> set[str]:
    """Return the tables with a row that holds a word, in the open or packed."""
    engine = create_engine(f"sqlite:///{folder / 'index.sqlite'}")
    with engine.connect() as connection:
        tables = {name for name, table in s.metadata.tables.items() if _holds(connection, table.name, word)}
    engine.dispose()
    return tables


def _holds(connection: Connection, table: str, word: str) -> bool:
    for row in connection.execute(select(s.metadata.tables[table])):
        for value in row:
            data = value if isinstance(value, bytes) else f"{value}".encode()
            with suppress(zlib.error):
                data = zlib.decompress(data)
            if word.encode() in data.lower():
                return True
    return False


@pytest.mark.parametrize("asks", [False, True])
async def test_no_word_of_a_removed_document_is_left_in_any_table(tmp_path: Path, asks: bool) -> None:
    async with _open(tmp_path, asks=asks) as context:
        await context.store.commit(Delta(publish=[letter(number) for number in range(12)]))
        await _refresh(context)
        assert _holding(tmp_path, _word(3)) >= {"report", "chunk", "entity"} | ({"reply"} if asks else set())
        for number in (3, 7):
            await context.store.commit(Delta(remove=[f"letter{number}"]))
            assert _holding(tmp_path, _word(number)) == set()  # at once, before anything is refreshed
        await context.store.commit(Delta(publish=[letter(5, version=1)]))  # an update takes back as well
        assert _holding(tmp_path, _word(5)) == set()
        await _refresh(context)
        assert await context.store.verify() == []
        for number in (3, 5, 7):
            assert _holding(tmp_path, _word(number)) == set()


async def test_no_word_is_left_where_entities_have_moved_from_one_community_to_another(tmp_path: Path) -> None:
    """A report that tells of an entity goes when it leaves: removed later, it is no longer found by it."""
    random = Random(1)
    async with _open(tmp_path, asks=False) as context:
        live = list(range(20))
        await context.store.commit(Delta(publish=[letter(number) for number in live]))
        await communities.refresh(context, False)
        await reports.refresh(context, False)
        while live:
            async with context.store.view() as view:
                found, revision = await view.clusters(Hierarchy.COMMUNITIES), view.revision
            finest = [each for each in found if each.members]
            first, second = random.sample(finest, 2) if len(finest) > 1 else (finest[0], finest[0])
            if first is not second and len(first.members) > 1:
                moved = [
                    replace(first, members=first.members[1:]),
                    replace(second, members=(*second.members, first.members[0])),
                ]
                rest = [each for each in found if each.id not in (first.id, second.id)]
                whole = Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=[*rest, *moved], revision=revision)
                await context.store.commit(Delta(partition=whole))
            number = live.pop(random.randrange(len(live)))
            await context.store.commit(Delta(remove=[f"letter{number}"]))
            assert _holding(tmp_path, _word(number)) == set()
            assert await context.store.verify() == []


async def test_the_law_fails_where_reports_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_writes, "follow_mentions", lambda *_: Touched())
    async with _open(tmp_path, asks=False) as context:
        await context.store.commit(Delta(publish=[letter(number) for number in range(12)]))
        await _refresh(context)
        await context.store.commit(Delta(remove=["letter3"]))
        assert "report" in _holding(tmp_path, _word(3))
