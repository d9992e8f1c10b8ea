"""The laws with history: order, as of any time, and nothing left after a purge; each with seeded faults.

Times are part of the work: equal work with equal times gives equal bytes, in any order of independent documents.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import cast

import pytest

from quipu.engine.past import PastIndexes
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.document import SourceDocument
from quipu.model.edit import Edit, EditKind
from quipu.model.query import Filter
from quipu.ports.store import Store
from quipu.stores.relational import history
from quipu.stores.relational.documents import CommitStamp
from quipu.stores.relational.history import RelationalHistory
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.laws import version
from quipu.testing.contract.steps import ReadTargets, dump, everything
from quipu.testing.facts import entity
from tests.laws.test_ghosts import GONE, NAMES, REMOVED, document, found, words
from tests.laws.world import engine

DOCUMENTS = ("a", "b", "c")
START = datetime(2020, 1, 1, 12, tzinfo=UTC)
EDIT = Edit(kind=EditKind.RETYPE, entities=(entity("Marco Polo").key,), type="Traveller")


@dataclass(frozen=True)
class Event:
    """On a day, a document gets a version, or is removed (0)."""

    day: int
    name: str
    version: int

    def delta(self) -> Delta:
        """Return the change, with its time."""
        publish = [version(self.name, self.version)] if self.version else []
        return Delta(publish=publish, remove=[] if self.version else [self.name], at=START + timedelta(days=self.day))


def events(seed: int, n: int = 9) -> list[Event]:
    """Return what happens to a few documents, one event each day."""
    random = Random(seed)
    return [Event(day, random.choice(DOCUMENTS), random.choice((0, 1, 2, 3))) for day in range(n)]


def interleaved(work: Sequence[Event], random: Random) -> list[Event]:
    """Return the same events in another order that keeps the order of those of one document."""
    waiting = {name: [event for event in work if event.name == name] for name in DOCUMENTS}
    return [waiting[name].pop(0) for name in random.sample([event.name for event in work], len(work))]


@asynccontextmanager
async def opened(file: Path) -> AsyncIterator[RelationalStore]:
    """Open a store that keeps history."""
    store = RelationalStore(SqliteBackend(file, busy_timeout_s=30), lease_s=60, keeps_history=True)
    await store.prepare()
    try:
        yield store
    finally:
        await store.close()


async def order_matters(folder: Path, seed: int) -> bool:
    """Say whether the same events give another dump in another order."""
    work = events(seed)
    dumps: list[list[str]] = []
    for order in (work, interleaved(work, Random(seed))):
        async with opened(folder / f"{seed} {len(dumps)}.sqlite") as store:
            for event in order:
                await store.commit(event.delta())
            assert await store.verify() == []
            dumps.append(await dump(store))
    return dumps[0] != dumps[1]


async def seen(store: Store, as_of: str = "") -> dict[str, object]:
    """Return all that can be read of the documents in these histories."""
    facts = [version(name, number) for name in DOCUMENTS for number in (1, 2, 3)]
    targets = ReadTargets(
        documents=DOCUMENTS,
        chunks=sorted({chunk.chunk.id for document in facts for chunk in document.chunks}),
        keys=sorted({mention.key for document in facts for chunk in document.chunks for mention in chunk.entities}),
        relations=[],
        words=("marco", "wall"),
    )
    async with store.view(Filter(as_of=as_of)) as view:
        return await everything(view, targets)


async def the_past_differs(folder: Path, seed: int) -> bool:
    """Say whether on some day the index as of then differs from one of the documents of that day."""
    work = events(seed)
    async with opened(folder / f"{seed} lived.sqlite") as store:
        for event in work:
            await store.commit(event.delta())
        await store.commit(Delta(edits=[EDIT]))
        for event in work:
            as_of = (START + timedelta(days=event.day)).date().isoformat()
            held: dict[str, DocumentFacts] = {}
            for earlier in work[: event.day + 1]:
                held = {name: facts for name, facts in held.items() if name != earlier.name}
                held |= {earlier.name: version(earlier.name, earlier.version)} if earlier.version else {}
            async with opened(folder / f"{seed} {event.day} then.sqlite") as then:
                await then.commit(Delta(publish=list(held.values()), edits=[EDIT]))
                expected = await seen(then)
            file = folder / f"{seed} {event.day} copy.sqlite"
            await store.history.copy_to(file)
            async with opened(file) as copy:
                await copy.history.rewind(await copy.history.rewind_to(as_of))
                if await seen(copy, as_of) != expected:
                    return True
    return False


async def test_equal_work_with_equal_times_gives_equal_bytes_in_any_order(tmp_path: Path, laws_scale: int) -> None:
    for seed in range(4 * laws_scale):
        assert not await order_matters(tmp_path, seed)


async def test_the_law_fails_where_a_commit_reads_a_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommitStamp, "moment", property(lambda _: datetime.now(UTC).isoformat()))
    assert await order_matters(tmp_path, 1)


async def test_on_every_day_the_past_is_an_index_of_the_documents_of_that_day(tmp_path: Path, laws_scale: int) -> None:
    for seed in range(2 * laws_scale):
        assert not await the_past_differs(tmp_path, seed)


async def test_the_law_fails_where_replaced_versions_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "keep", lambda *_: None)
    assert await the_past_differs(tmp_path, 1)


async def test_the_law_fails_where_a_restored_version_gets_the_time_of_its_restoration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_set_since", lambda *_: None)
    assert await the_past_differs(tmp_path, 1)


async def _fill_remove_and_ask(folder: Path) -> None:
    """Add documents, take some back, ask about the time before, and purge; words in questions are not searched for."""
    async with engine(folder, keeps_history=True) as kb:
        await kb.add(*(document(name) for name in NAMES[:12] + REMOVED))
        await kb.remove([f"{name}.md" for name in REMOVED])
        moment = (await kb.earlier_versions())[0].since
        assert await kb.verify() == []
        # What the history keeps is compressed, apart from the title, and stands in no other table.
        assert found(folder, GONE) == {words(f"{name} 0")[0] for name in REMOVED}
        question = "Whom did Polo meet in 1275?"
        assert {citation.document_id for citation in (await kb.query(question)).citations}.isdisjoint(
            f"{name}.md" for name in REMOVED
        )
        past = await kb.passages(question, as_of=moment, chunk_top_k=100, strategy="lexical")
        assert {passage.document.id for passage in past} >= {f"{name}.md" for name in REMOVED}
        assert found(folder, GONE)  # the copy holds them
        await kb.conversations.ask(question, as_of=moment)
        assert len((await kb.purge()).versions) == len(set(REMOVED))
        assert await kb.earlier_versions() == []
        assert await kb.verify() == []


async def test_no_word_of_an_earlier_version_is_left_after_a_purge(tmp_path: Path) -> None:
    await _fill_remove_and_ask(tmp_path / "kb")
    assert found(tmp_path / "kb", GONE) == set()


async def test_the_law_fails_where_a_purge_leaves_the_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_: object) -> None: ...

    monkeypatch.setattr(PastIndexes, "drop", nothing)
    monkeypatch.setattr(PastIndexes, "close", nothing)
    await _fill_remove_and_ask(tmp_path / "kb")
    assert found(tmp_path / "kb", GONE)


async def test_the_law_fails_where_a_purge_leaves_the_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_: object, *, before: str = "") -> int:
        return 0

    monkeypatch.setattr(RelationalHistory, "drop", nothing)
    with pytest.raises(AssertionError):
        await _fill_remove_and_ask(tmp_path / "kb")


async def test_a_removal_deletes_copies_in_which_the_removed_text_was_live(tmp_path: Path) -> None:
    """History was on and is off now: what is removed must not stay in a copy of the index."""
    folder = tmp_path / "kb"
    secret = SourceDocument(id="secret.md", content=b"Xyzzyplugh Polo met Kublai Khan in Shangdu.")
    async with engine(folder, keeps_history=True) as kb:
        await kb.add(document(NAMES[0]), secret)
        await kb.add(document(NAMES[0], version=1))
        moment = (await kb.earlier_versions())[0].since
    async with engine(folder) as kb:
        await kb.retrieve("Whom did Polo meet?", as_of=moment)
        assert cast(PastIndexes, kb._components.past).copies
        await kb.remove(["secret.md"])
        assert found(folder, ["xyzzyplugh"]) == set()
