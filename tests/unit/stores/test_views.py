"""Tests of views in threads: what is cancelled has ended before its connection is given back."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection

from quipu.model.query import Filter
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import VectorSpace
from quipu.stores.relational import chunks, full_text
from quipu.stores.relational.full_text import search
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.steps import DIMENSION, MODEL, embed, publish, remove
from quipu.testing.facts import document, entity, passage
from tests.unit.stores.opening import EXAMPLE


class _SlowBackend(SqliteBackend):
    """A backend whose searches begin, and end only when they are let go; it notes in which order things end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, busy_timeout_s=5.0)
        self.has_begun = threading.Event()
        self.may_end = threading.Event()
        self.ended: list[str] = []

    @contextmanager
    def viewing(self) -> Iterator[Connection]:
        try:
            with super().viewing() as connection:
                yield connection
        finally:
            self.ended.append("view")

    def search(self, snapshot: Snapshot, terms: Sequence[str], k: int) -> list[tuple[int, float]]:
        self.has_begun.set()
        assert self.may_end.wait(timeout=60)
        hits = search(snapshot, terms, k)
        self.ended.append("read")
        return hits


async def test_a_cancelled_read_ends_before_its_view(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = _SlowBackend(database)
    monkeypatch.setattr(full_text, "search", backend.search)
    store = RelationalStore(backend, lease_s=60.0)
    await store.prepare()
    await publish(store, *EXAMPLE)
    backend.ended.clear()

    async def search() -> None:
        async with store.view() as view:
            await view.search_text(NodeKind.CHUNK, "geneva", 5)

    task = asyncio.create_task(search())
    await asyncio.to_thread(backend.has_begun.wait, 60)
    task.cancel()
    async with store.view() as view:
        assert len(await view.documents()) == 2
    assert backend.ended == ["view"]
    backend.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert backend.ended == ["view", "read", "view"]
    await store.close()


async def test_an_error_in_a_view_is_the_callers_own(database: Path) -> None:
    store = RelationalStore(SqliteBackend(database, busy_timeout_s=5.0), lease_s=60.0)
    await store.prepare()
    with pytest.raises(ZeroDivisionError):
        async with store.view() as view:
            assert 1 // len(await view.documents())
    await publish(store, *EXAMPLE)
    await store.close()


async def test_many_views_may_be_open_at_once(database: Path) -> None:
    store = RelationalStore(SqliteBackend(database, busy_timeout_s=5.0), lease_s=60.0)
    await store.prepare()
    await publish(store, *EXAMPLE)

    async def count() -> int:
        async with store.view() as view:
            return len(await view.documents())

    assert await asyncio.gather(*(count() for _ in range(40))) == [2] * 40
    await store.close()


@pytest.mark.parametrize("allowed", [Filter(), Filter(documents=("a",))])
async def test_what_views_share_cannot_be_written_into(database: Path, allowed: Filter) -> None:
    store = RelationalStore(SqliteBackend(database, busy_timeout_s=5.0), lease_s=60.0)
    await store.prepare()
    await store.set_embedder(MODEL, DIMENSION)
    await publish(store, document("a", passage("Ada met Bo.", entity("Ada", "person"), entity("Bo", "person"))))
    await embed(store)
    async with store.view(allowed) as view:
        types = await view.entity_types()
        found = [
            await view.allowed_numbers(NodeKind.CHUNK),
            *[await view.allowed_numbers(space) for space in VectorSpace],
        ]
        shared = [each for each in found if each is not None] if not allowed.is_empty() else []
        for array in (types.numbers, types.codes, *await view.chunk_vector_rows(), *shared):
            with pytest.raises(ValueError, match="read-only"):
                array.fill(7)
    await store.close()


async def test_what_is_remembered_under_a_filter_ends_with_the_commit_of_another_process(database: Path) -> None:
    ours, theirs = (RelationalStore(SqliteBackend(database, busy_timeout_s=5.0), lease_s=60.0) for _ in range(2))
    some = Filter(documents=("a", "b"))
    await ours.prepare()
    await ours.set_embedder(MODEL, DIMENSION)
    await publish(ours, document("a", passage("Ada met Bo.", entity("Ada", "person"), entity("Bo", "person"))))
    await embed(ours)

    async def seen() -> tuple[list[str], int, int, tuple[str, ...]]:
        async with ours.view(some) as view:
            types, rows = await view.entity_types(), await view.allowed_numbers(VectorSpace.ENTITY)
            chunks = await view.allowed_numbers(NodeKind.CHUNK)
            assert rows is not None
            assert chunks is not None
            keys = await view.ids(NodeKind.ENTITY, types.numbers.tolist())
            return sorted(keys.values()), len(rows), len(chunks), types.types

    before = await seen()
    assert before == await seen() == (["ada", "bo"], 2, 1, ("person",))
    await publish(theirs, document("b", passage("Bo saw Rome.", entity("Bo", "person"), entity("Rome", "place"))))
    await embed(theirs)
    assert await seen() == (["ada", "bo", "rome"], 3, 2, ("person", "place"))
    await remove(theirs, "a")
    assert await seen() == (["bo", "rome"], 2, 1, ("person", "place"))
    await ours.close()
    await theirs.close()


async def test_a_chunk_is_read_once_for_a_revision_and_filter(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RelationalStore(SqliteBackend(database, busy_timeout_s=5.0), lease_s=60.0)
    await store.prepare()
    await publish(store, document("a", "One."), document("b", "Two."))
    async with store.view() as view:
        ids = [chunk.id for name in "ab" for chunk in await view.chunks(document_id=name)]
        assert [chunk.text for chunk in await view.chunks(ids)] == ["One.", "Two."]
    monkeypatch.setattr(chunks, "check_rows", lambda _table, rows: pytest.fail(f"{len(rows)} read again"))
    async with store.view() as view:
        assert [chunk.text for chunk in await view.chunks([ids[1], ids[0], ids[1]])] == ["Two.", "One.", "Two."]
    monkeypatch.undo()
    async with store.view(Filter(exclude=("a",))) as view:
        assert [chunk.text for chunk in await view.chunks(ids)] == ["Two."]
    await remove(store, "a")
    async with store.view() as view:
        assert [chunk.text for chunk in await view.chunks(ids)] == ["Two."]
