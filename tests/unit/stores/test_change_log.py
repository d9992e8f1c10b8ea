"""The log of what commits changed, and the numbers by which it is told."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from quipu.model.cluster import Cluster, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.ports.derivation_view import ChangeSet, NodeKind
from quipu.stores.relational import change_log
from quipu.stores.relational.store import RelationalStore
from quipu.testing.facts import alias, document, entity, passage
from tests.unit.stores.opening import open_index

ADA, BOB = entity("Ada"), entity("Bob")


async def changed(store: RelationalStore, revision: int) -> ChangeSet:
    async with store.view() as view:
        found = await view.changes_since(revision)
    assert found is not None
    return found


async def numbers(store: RelationalStore, *keys: str) -> list[int]:
    async with store.view() as view:
        return sorted((await view.numbers(NodeKind.ENTITY, keys)).values())


async def test_what_a_commit_changes_is_noted(database: Path) -> None:
    async with open_index(database) as store:
        await store.commit(Delta(publish=[document("a", passage("Ada.", ADA), passage("Bob.", BOB))]))
        ada, bob = await numbers(store, "ada", "bob")
        assert (await changed(store, 0)).entities.tolist() == [ada, bob]
        assert (await changed(store, 0)).chunks.tolist() == [1, 2]
        await store.commit(Delta(publish=[document("b", passage("Ada again.", ADA))]))
        assert (await changed(store, 1)).entities.tolist() == []  # it stands in other chunks where chunks say so
        assert (await changed(store, 1)).chunks.tolist() == [3]
        await store.commit(Delta(publish=[document("b", passage("Ada again.", ADA, alias("Ada", "A. L.")))]))
        assert (await changed(store, 2)).entities.tolist() == []  # what the chunk says is the same input's: it stays
        await store.commit(Delta(publish=[document("c", passage("Ada A. L.", ADA, alias("Ada", "A. L.")))]))
        assert (await changed(store, 3)).entities.tolist() == [ada]
        await store.commit(Delta(remove=["a", "c"]))
        assert (await changed(store, 4)).entities.tolist() == [ada, bob]
        assert (await changed(store, 4)).chunks.tolist() == [1, 2, 4]
        assert (await changed(store, 5)).chunks.tolist() == []


async def test_a_number_used_again_is_noted_twice(database: Path) -> None:
    async with open_index(database) as store:
        await store.commit(Delta(publish=[document("a", passage("Ada.", ADA))]))
        await store.commit(Delta(remove=["a"]))
        await store.commit(Delta(publish=[document("b", passage("Bob.", BOB))]))
        assert await numbers(store, "bob") == [1]
        for revision in (1, 2):
            assert (await changed(store, revision)).entities.tolist() == [1]
            assert (await changed(store, revision)).chunks.tolist() == [1]


async def test_an_index_of_an_earlier_version_does_not_know_what_changed(database: Path) -> None:
    async with open_index(database) as store:
        await store.commit(Delta(publish=[document("a", passage("Ada.", ADA))]))
    engine = create_engine(f"sqlite:///{database}")
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE change")
        connection.exec_driver_sql("UPDATE meta SET value = '4' WHERE key = 'schema'")
    engine.dispose()
    async with open_index(database) as store:
        async with store.view() as view:
            assert await view.changes_since(0) is None
            changes = await view.changes_since(view.revision)
            assert changes is not None
            assert changes.history_nonce is not None
        await store.commit(Delta(publish=[document("b", passage("Bob.", BOB))]))
        assert (await changed(store, 1)).chunks.tolist() == [2]


async def test_what_is_said_of_entities_is_forgotten_apart(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "MAX_ROWS", 200)
    several = [entity(f"E{n}") for n in range(10)]
    async with open_index(database) as store:
        await store.commit(Delta(publish=[document("a", passage("All.", *several))]))
        members = tuple(f"E{n}" for n in range(10))
        cluster = Cluster(id="all", hierarchy=Hierarchy.COMMUNITIES, level=0, members=members, inputs_hash="x")
        await store.commit(Delta(partition=Partition(hierarchy=cluster.hierarchy, clusters=[cluster], revision=1)))
        for n in range(64):
            await store.commit(Delta(publish=[document(f"b{n}", passage(f"More {n}.", *several))]))
        assert len((await changed(store, 0)).chunks) == 65
        with closing(sqlite3.connect(database)) as connection:
            kept = dict(connection.execute("SELECT kind, min(revision) FROM change GROUP BY kind").fetchall())
    assert (kept["c"], kept["m"] > 3) == (1, True)
