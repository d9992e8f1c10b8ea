"""The laws with history: order, as of any time, nothing left after a purge, crash, concurrency and determinism.

Each has seeded faults. Run as `python -m tests.laws.test_history FILE FAULT`, it prints the dump of one history.

Times are part of the work: equal work with equal times gives equal bytes, in any order of independent documents.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import cast

import pytest
from sqlalchemy import Connection, Engine, event

from quipu.engine.past import PastIndexes
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.document import SourceDocument
from quipu.model.edit import Edit, EditKind
from quipu.model.query import Filter
from quipu.ports.store import Store
from quipu.stores.relational import history
from quipu.stores.relational.change_log import CommitStamp
from quipu.stores.relational.history import RelationalHistory
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.laws import version
from quipu.testing.contract.steps import ReadTargets, dump, everything
from quipu.testing.facts import entity
from tests.children import PATIENCE_S, ROOT
from tests.laws.child import _without_transaction
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


async def lived(file: Path, work: Sequence[Event], step: int) -> tuple[list[list[str]], list[tuple[Path, int]], int]:
    """Live through a history; return the dump after each event, images of the disk, and how many writes there were.

    A killed process leaves the files as they are at a statement. They are copied at every `step`-th write, with the
    number of events that were done; 0: never.
    """
    images, dumps, n_writes = list[tuple[Path, int]](), list[list[str]](), 0

    def watch(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        nonlocal n_writes
        is_write = statement.startswith(("INSERT", "UPDATE", "DELETE"))
        n_writes += is_write
        if is_write and step and n_writes % step == 0:
            image = file.with_name(f"{file.stem} killed {len(images)}.sqlite")
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{file}{suffix}", f"{image}{suffix}")
            images.append((image, len(dumps) - 1))

    async with opened(file) as store:
        dumps.append(await dump(store))
        for done in work:
            with statements_watched(watch):
                await store.commit(done.delta())
            dumps.append(await dump(store))
    return dumps, images, n_writes


async def a_crash_is_noticed(folder: Path, seed: int, n_points: int) -> bool:
    """Say whether a process killed at some write leaves anything but the state after a whole number of events.

    Then the work is finished on what is left.
    """
    work = events(seed)
    expected, _, n_writes = await lived(folder / f"{seed} counted.sqlite", work, 0)
    assert n_writes >= n_points
    _, images, _ = await lived(folder / f"{seed} lived.sqlite", work, n_writes // n_points)
    assert len(images) >= n_points
    for image, n_done in images:
        async with opened(image) as store:
            left = await dump(store)
            if left not in expected[n_done : n_done + 2] or await store.verify():
                return True
            for rest in work[n_done + (left != expected[n_done]) :]:
                await store.commit(rest.delta())
            if await dump(store) != expected[-1]:
                return True
    return False


@contextmanager
def statements_watched(watch: Callable[..., None], when: str = "before_cursor_execute") -> Iterator[None]:
    """Have a function called at each statement of this process."""
    event.listen(Engine, when, watch)
    try:
        yield
    finally:
        event.remove(Engine, when, watch)


async def test_killed_at_any_statement_the_history_is_whole_and_can_be_continued(
    tmp_path: Path, laws_scale: int
) -> None:
    for seed in range(2 * laws_scale):
        assert not await a_crash_is_noticed(tmp_path, seed, 12)


async def test_the_law_fails_where_a_version_is_not_kept_in_the_transaction_that_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteBackend, "writing", _without_transaction)
    assert await a_crash_is_noticed(tmp_path, 1, 12)


async def copies_are_torn(folder: Path, seed: int) -> bool:
    """Say whether a copy that is made in the middle of a commit of another store differs from the state before it."""
    work, file, copy = events(seed), folder / f"{seed} lived.sqlite", folder / f"{seed} copy.sqlite"
    is_due = False

    def make_copy(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        nonlocal is_due
        if is_due and statement.startswith("INSERT INTO earlier_version"):
            is_due = False
            asyncio.run(reader.history.copy_to(copy))

    with statements_watched(make_copy, "after_cursor_execute"):
        async with opened(file) as writer, opened(file) as reader:
            for done in work:
                before = await dump(writer)
                is_due = not copy.exists()
                await writer.commit(done.delta())
                if copy.exists():
                    async with opened(copy) as copied:
                        return await dump(copied) != before or await copied.verify() != []
    raise AssertionError("no commit ended a version")


async def test_a_copy_made_while_another_writes_is_a_whole_snapshot(tmp_path: Path, laws_scale: int) -> None:
    for seed in range(3 * laws_scale):
        assert not await copies_are_torn(tmp_path, seed)


async def test_the_law_fails_where_a_copy_is_one_of_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy_file(backend: SqliteBackend, _connection: Connection, target: Path) -> None:
        shutil.copyfile(str(backend._engine.url.database), target)

    monkeypatch.setattr(SqliteBackend, "copy_to", copy_file)
    assert await copies_are_torn(tmp_path, 1)


def dumped(folder: Path, hash_seed: str, fault: str = "") -> list[str]:
    """Return the dump of a history as a process with this hash seed writes it."""
    command = [sys.executable, "-m", "tests.laws.test_history", str(folder / f"{hash_seed}{fault}.sqlite"), fault]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    return ended.stdout.splitlines()


def test_hash_seeds_change_nothing_of_a_history(tmp_path: Path) -> None:
    first = dumped(tmp_path, "0")
    assert any('"ended_at"' in line for line in first)
    assert dumped(tmp_path, "4711") == first


def test_the_law_fails_where_the_order_of_a_set_decides_what_is_kept(tmp_path: Path) -> None:
    assert len({"\n".join(dumped(tmp_path, seed, "order of a set")) for seed in ("0", "1", "4711")}) > 1


def _encode_in_set_order(facts: DocumentFacts) -> bytes:
    chunks = tuple(replace(chunk, entities=tuple(set(chunk.entities))) for chunk in facts.chunks)
    return sound_encode(replace(facts, chunks=chunks))


async def _print_dump(file: Path) -> None:
    async with opened(file) as store:
        for done in events(1):
            await store.commit(done.delta())
        print("\n".join(await dump(store)))


sound_encode = history._encode

if __name__ == "__main__":
    if sys.argv[2]:
        history._encode = _encode_in_set_order
    asyncio.run(_print_dump(Path(sys.argv[1])))
