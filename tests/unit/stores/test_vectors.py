"""Vectors of chunks as arrays: what is followed equals what is read anew, and costs what has changed."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from quipu.errors import Stale
from quipu.model.delta import Delta, DocumentFacts
from quipu.ports.derivation_view import ChangeSet
from quipu.stores.relational import change_log, vectors
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import Ints
from quipu.stores.relational.store import RelationalStore
from quipu.testing.contract.steps import DIMENSION, MODEL, embed, publish, remove
from quipu.testing.facts import document, entity, passage
from tests.unit.stores.opening import open_index

_TEXTS = [f"Venice has {n} bridges." for n in range(8)]

Rows = tuple[list[int], list[int]]


def a_document(name: str, numbers: Sequence[int], *, title: str = "") -> DocumentFacts:
    """Return a document of some of the texts, which others share."""
    return document(name, *(passage(_TEXTS[n], entity("Venice")) for n in numbers), title=title)


async def chunk_vector_rows(store: RelationalStore) -> Rows:
    """Return the numbers and the vector rows of chunks, read through a view of the store."""
    async with store.view() as view:
        numbers, rows = await view.chunk_vector_rows()
    return numbers.tolist(), rows.tolist()


@pytest.fixture
def n_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many chunks each look found by reading all of them."""
    counts: list[int] = []
    read_all = vectors._read_chunk_vectors

    def noted(snapshot: Snapshot) -> tuple[Ints, Ints]:
        found = read_all(snapshot)
        counts.append(len(found[0]))
        return found

    monkeypatch.setattr(vectors, "_read_chunk_vectors", noted)
    return counts


@pytest.mark.parametrize("seed", range(6))
async def test_what_is_followed_equals_what_is_read_anew(seed: int, tmp_path: Path) -> None:
    random, path = Random(seed), tmp_path / "index.sqlite"
    async with open_index(path) as store:
        await store.set_embedder(MODEL, DIMENSION)
        for _ in range(12):
            name, what = random.choice("abcd"), random.randrange(6)
            if what < 3:
                await publish(store, a_document(name, random.sample(range(8), 3), title=random.choice(["", "Bridges"])))
            elif what == 3:
                await remove(store, name)
            elif what == 4:
                await embed(store)
            else:
                await store.purge()
            followed = await chunk_vector_rows(store)
            async with open_index(path) as other:
                assert followed == await chunk_vector_rows(other)


async def test_a_chunk_under_another_title_that_is_read_no_other_way_is_followed_to_the_vector_others_had(
    tmp_path: Path,
) -> None:
    def read_alike(name: str, title: str) -> DocumentFacts:
        given = a_document(name, [0], title=title)
        alike = [replace(each, chunk=replace(each.chunk, input_hash="alike")) for each in given.chunks]
        return replace(given, chunks=tuple(alike))

    async with open_index(tmp_path / "index.sqlite") as store:
        await store.set_embedder(MODEL, DIMENSION)
        await publish(store, read_alike("a", ""), read_alike("b", "Bridges"))
        await embed(store)
        before = await chunk_vector_rows(store)
        assert len(set(before[1])) == 2
        await publish(store, read_alike("a", "Bridges"))
        after = await chunk_vector_rows(store)
    assert after == (before[0], [before[1][1]] * 2)


async def test_after_a_commit_only_what_changed_is_read(tmp_path: Path, n_read: list[int]) -> None:
    async with open_index(tmp_path / "index.sqlite") as store:
        await store.set_embedder(MODEL, DIMENSION)
        await publish(store, a_document("a", [0, 1, 2]))
        await embed(store)
        assert len((await chunk_vector_rows(store))[0]) == 3
        await publish(store, a_document("b", [2, 3]), a_document("a", [0, 4]))
        assert len((await chunk_vector_rows(store))[0]) == 2  # the text that is new has no vector yet
        await embed(store)
        assert len((await chunk_vector_rows(store))[0]) == 4
        await remove(store, "a")
        assert len((await chunk_vector_rows(store))[0]) == 2
    assert n_read == [3]


async def test_other_vectors_and_forgotten_changes_are_read_anew(tmp_path: Path, n_read: list[int]) -> None:
    async with open_index(tmp_path / "index.sqlite") as store:
        await store.set_embedder(MODEL, DIMENSION)
        await publish(store, a_document("a", [0, 1]))
        await embed(store)
        before = await chunk_vector_rows(store)
        async with store.reembedding("another/1", DIMENSION):
            await embed(store, "another/1")
        after = await chunk_vector_rows(store)
        assert after[0] == before[0]
        assert not set(after[1]) & set(before[1])
        await publish(store, a_document("b", [0]))
        with store._backend.writing() as connection:
            change_log.forget_before(connection, 10**6)
        assert len((await chunk_vector_rows(store))[0]) == 3
    assert n_read == [2, 2, 3]


async def test_the_error_for_a_second_set_that_was_purged_says_what_to_do(tmp_path: Path) -> None:
    async with open_index(tmp_path / "index.sqlite") as store:
        await store.set_embedder(MODEL, DIMENSION)
        await publish(store, a_document("a", [0]))
        with pytest.raises(Stale, match="another/1 were deleted meanwhile, by `quipu purge`") as caught:
            async with store.reembedding("another/1", DIMENSION):
                await embed(store, "another/1")
                await store.purge()
        assert caught.value.remedy.startswith("Run `quipu reembed` again")


async def test_a_restored_index_is_read_anew(
    tmp_path: Path, n_read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_index(tmp_path / "index.sqlite") as store:
        await store.set_embedder(MODEL, DIMENSION)
        await publish(store, a_document("a", [0, 1]))
        await embed(store)
        await chunk_vector_rows(store)
        changed = ChangeSet(chunks=np.empty(0, np.int64), entities=np.empty(0, np.int64), history_nonce=7)
        monkeypatch.setattr(change_log, "changes_since", lambda *_: changed)  # of another history
        await store.commit(Delta(publish=[a_document("b", [0])]))
        await chunk_vector_rows(store)
    assert n_read == [2, 3]


async def test_a_backup_of_the_same_revision_is_not_answered_from_what_was_read_before_it_came_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "index.sqlite"
    async with open_index(path) as store:
        await store.set_embedder(MODEL, DIMENSION)
        await publish(store, a_document("a", [0, 1]))
        with closing(sqlite3.connect(":memory:")) as backup:
            with closing(sqlite3.connect(path)) as index:
                index.backup(backup)
            await publish(store, a_document("b", [2, 3]))
            await embed(store)
            assert len((await chunk_vector_rows(store))[0]) == 4
            with closing(sqlite3.connect(path)) as index:
                backup.backup(index)
        await publish(store, a_document("c", [2]))
        await embed(store)
        assert len((await chunk_vector_rows(store))[0]) == 3
