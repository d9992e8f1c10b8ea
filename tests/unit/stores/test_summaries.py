"""Tests of summaries in a database: cut short anywhere, a change of theirs is whole or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from quipu.model.delta import Delta
from quipu.stores.relational import summaries
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.steps import DIMENSION, MODEL, dump, embed, summarise, summary_of, summary_targets
from quipu.testing.facts import document, entity, passage, relation


def _saying(name: str, *numbers: int) -> Delta:
    said = [
        passage(
            f"Acre {n}.",
            entity("Acre", description=f"Acre is {n}."),
            entity("Venice"),
            relation("Acre", "Venice", f"They met at {n}."),
        )
        for n in numbers
    ]
    return Delta(publish=[document(name, *said)])


class _Unplugged(Exception):
    """The power went."""


@contextmanager
def _unplugged_at(backend: SqliteBackend, n: int) -> Iterator[list[int]]:
    """Fail at the n-th statement that follows; count them."""
    passed: list[int] = []

    def burn(*_: object) -> None:
        passed.append(1)
        if len(passed) == n:
            raise _Unplugged

    event.listen(backend._engine, "before_cursor_execute", burn)
    yield passed
    event.remove(backend._engine, "before_cursor_execute", burn)


@pytest.fixture
def backend(database: Path) -> Iterator[SqliteBackend]:
    backend = SqliteBackend(database, busy_timeout_s=5.0)
    yield backend
    backend.close()


@pytest.fixture
async def store(backend: SqliteBackend) -> RelationalStore:
    store = RelationalStore(backend, lease_s=60.0)
    await store.prepare()
    await store.set_embedder(MODEL, DIMENSION)
    await store.commit(_saying("a", *range(9)))
    return store


async def test_a_change_that_is_cut_short_at_any_statement_leaves_nothing_behind(
    backend: SqliteBackend, store: RelationalStore
) -> None:
    await store.commit(_saying("b", 20))
    tasks = await store.summary_tasks(await summary_targets(store))
    for step in (
        Delta(summaries=[summary_of(task) for task in tasks]),
        _saying("c", 30),
        Delta(remove=["c", "b"]),
    ):
        before = await dump(store)
        n_statements, at = 0, 1
        while not n_statements:
            with _unplugged_at(backend, at) as passed:
                try:
                    await store.commit(step)
                    n_statements = len(passed)
                except _Unplugged:
                    pass
            if not n_statements:
                assert await dump(store) == before
                at += 1
        assert (n_statements, await store.verify()) == (at - 1, [])
        assert await dump(store) != before
        await summarise(store)
        await embed(store)
        assert await store.verify() == []


async def test_verify_notices_where_outdated_summaries_are_kept(
    store: RelationalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seeded fault: never find that descriptions have changed."""
    await summarise(store)
    monkeypatch.setattr(summaries, "with_changed_descriptions", lambda *_: set())
    await store.commit(_saying("b", 20))
    assert any("other descriptions" in difference for difference in await store.verify())
