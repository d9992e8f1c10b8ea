"""Law 3: readers see only whole snapshots while a writer works, and two writers lose no update."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection

from quipu.engine import Quipu
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.steps import dump
from tests.children import ENDED, PATIENCE_S, end, go_on, heard
from tests.laws.child import _without_transaction
from tests.laws.test_history import Event, statements_watched
from tests.laws.test_history import opened as opened_with_history
from tests.laws.world import chunk_texts, document, engine, fresh_state, state
from tests.laws.writer import MIDWAY, WAITING, writing, written

KNOWN = [document(f"known{number}.md", number) for number in range(8)]  # of every name there is


async def sees_whole_documents(kb: Quipu, n_written: int) -> int:
    """Assert that a reader sees each document a writer writes whole or not at all; return how many it knows of."""
    assert await kb.verify() == []
    documents = await kb.documents()
    for known in documents:
        texts = [chunk.text for chunk in (await kb.document(known.id)).chunks]
        assert texts in ([], chunk_texts(written(0, n_written)[known.id]))
    return len(documents)


async def test_readers_see_only_whole_snapshots_while_another_process_writes(database: str, tmp_path: Path) -> None:
    n, n_stops = (40, 8) if database == "sqlite" else (8, 3)
    async with engine(tmp_path / "kb") as kb, writing(tmp_path / "kb", 0, n, n_stops) as writer:
        sizes: list[int] = []
        while await heard(writer) == MIDWAY:
            sizes.append(await sees_whole_documents(kb, n))
            await go_on(writer)
            sizes.append(await sees_whole_documents(kb, n))  # at any point of what follows
        assert await end(writer) == 0
        assert len(sizes) == 2 * n_stops
        assert sizes == sorted(sizes)
        assert sizes[0] < sizes[-1] < await sees_whole_documents(kb, n) == len(written(0, n))


async def sees_a_write(folder: Path) -> bool:
    """Say whether a view sees what another process writes while it is open."""
    async with engine(folder) as kb:
        await kb.add(document("before.md", 0))
        async with kb._store.view() as view:
            before = await view.documents()
            async with writing(folder, 0, 5) as writer:
                assert await end(writer) == 0
            return await view.documents() != before


async def test_a_view_does_not_change_while_another_process_writes(database: str, tmp_path: Path) -> None:
    assert not await sees_a_write(tmp_path)


async def test_the_law_fails_where_a_view_is_no_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def reading(backend: SqliteBackend) -> Iterator[Connection]:
        with backend._engine.connect() as connection:
            yield connection

    monkeypatch.setattr(SqliteBackend, "viewing", reading)
    assert await sees_a_write(tmp_path)


async def differ_after_two_writers(folder: Path, n: int, fault: str = "") -> bool:
    """Say whether an index that two processes wrote to differs from one that was built alone.

    They meet: one is in the middle of its first commit when the other comes to write.
    """
    async with engine(folder / "kb") as kb:
        await kb.add(*KNOWN)
        async with writing(folder / "kb", 0, n, 1, fault) as one:
            assert await heard(one) == MIDWAY
            async with writing(folder / "kb", n, 2 * n, 0, fault) as other:
                assert await heard(other) == (ENDED if fault else WAITING)
                await go_on(one)
                assert [await end(one), await end(other)] == [0, 0]
        await kb.resume()
        together = await kb.verify(), await state(kb)
    alone = await fresh_state(folder / "fresh", [*KNOWN, *written(0, 2 * n).values()])
    return together != ([], alone)


async def test_two_writers_lose_no_update(database: str, tmp_path: Path) -> None:
    assert not await differ_after_two_writers(tmp_path, 15 if database == "sqlite" else 4)


async def test_the_law_fails_where_writers_do_not_take_turns(tmp_path: Path) -> None:
    """One commit each, of nothing the other writes, so that neither waits for the other's work."""
    assert not await differ_after_two_writers(tmp_path / "sound", 1)
    assert await differ_after_two_writers(tmp_path / "broken", 1, fault="no write transaction")


async def two_writers_lose_a_version(folder: Path, seed: int, waits_for: str) -> bool:
    """Say whether two stores that write to one index at once leave another dump than one after the other.

    They meet: one has kept the version that its commit ends when the other comes to write, or, where writers take no
    turns, until the other "wrote".
    """
    first, second = [Event(day, "a", number) for day, number in ((0, 1), (1, 2))], Event(2, "b", 3)
    met, was_held = {name: threading.Event() for name in ("came", "wrote")}, False

    def hold(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        nonlocal was_held
        if not was_held and statement.startswith("UPDATE entity SET"):
            was_held = True
            loop.call_soon_threadsafe(is_midway.set)
            assert met[waits_for].wait(PATIENCE_S)

    dumps: list[list[str]] = []
    loop, is_midway = asyncio.get_running_loop(), asyncio.Event()
    async with opened_with_history(folder / f"{seed} alone.sqlite") as store:
        for done in (Event(0, "b", seed % 2 + 1), *first, second):
            await store.commit(done.delta())
        dumps.append(await dump(store))
    async with (
        opened_with_history(folder / f"{seed} together.sqlite") as one,
        opened_with_history(folder / f"{seed} together.sqlite") as other,
    ):
        for done in (Event(0, "b", seed % 2 + 1), first[0]):
            await one.commit(done.delta())
        with statements_watched(hold):
            work = asyncio.create_task(one.commit(first[1].delta()))
            await is_midway.wait()
            later = asyncio.create_task(other.commit(second.delta()))
            later.add_done_callback(lambda _: met["wrote"].set())
            await asyncio.sleep(0)
            met["came"].set()
            await asyncio.gather(work, later)
        dumps.append(await dump(one))
        return dumps[0] != dumps[1] or await one.verify() != []


async def test_two_writers_lose_no_version(tmp_path: Path, laws_scale: int) -> None:
    for seed in range(2 * laws_scale):
        assert not await two_writers_lose_a_version(tmp_path, seed, "came")


async def test_the_law_fails_where_writers_of_a_history_take_no_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteBackend, "writing", _without_transaction)
    assert await two_writers_lose_a_version(tmp_path, 1, "wrote")
