"""Tests of the Bloom filter: whatever happened to the index meanwhile, no known name is missed."""

from pathlib import Path

import pytest

from quipu.model.delta import Delta
from quipu.stores.relational.snapshot import BloomFilter
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.steps import publish
from quipu.testing.facts import document, entity, passage
from quipu.text.names import NameStarts
from tests.unit.stores.opening import open_index

_FILLER = " ".join(f"Word{number} goes" for number in range(200))


async def _name(store: RelationalStore, *names: str) -> None:
    """Make entities of these names known, with so many words that the Bloom filter of the store is filled."""
    said = [passage(f"{name} stays. {_FILLER}", entity(name)) for name in names]
    await publish(store, *(document(f"of {name}", each) for name, each in zip(names, said, strict=True)))


async def _check(store: RelationalStore, document_id: str, name: str) -> None:
    """Publish a text with a known name and look whether its link is there."""
    await publish(store, document(document_id, f"Here {name} is. {_FILLER}"))
    assert await store.verify() == []


async def test_names_of_another_process_are_found(tmp_path: Path) -> None:
    database = tmp_path / "index.sqlite"
    async with open_index(database) as ours, open_index(database) as theirs:
        await _name(ours, "Anna Karenina", "Oslo")
        await _check(ours, "a", "Oslo")
        await _name(theirs, "Ivan Ilyich", "Bergen")
        await _check(ours, "b", "Ivan Ilyich")
        await _check(ours, "c", "Bergen")
        await _check(theirs, "d", "Anna Karenina")


async def test_names_of_another_process_are_found_after_a_change_that_failed(tmp_path: Path) -> None:
    """The failed change would have made the revision that the other process then makes."""
    database = tmp_path / "index.sqlite"
    async with open_index(database) as ours, open_index(database) as theirs:
        await _name(ours, "Anna Karenina")
        said = document("x", passage(f"Tromsø. {_FILLER}", entity("Tromsø")))
        with pytest.raises(ValueError, match="no such"):
            await ours.commit(_Failing(publish=[said]))
        await _name(theirs, "Ivan Ilyich")
        await _check(ours, "b", "Ivan Ilyich")
        await _name(theirs, "Tromsø")
        await _check(ours, "c", "Tromsø")


async def test_names_that_another_process_rebuilt_are_found(tmp_path: Path) -> None:
    database = tmp_path / "index.sqlite"
    async with open_index(database) as ours, open_index(database) as theirs:
        await _name(ours, "Anna Karenina", "Oslo")
        with ours._backend.writing() as connection:
            connection.exec_driver_sql("DELETE FROM link WHERE name = (SELECT rid FROM name WHERE key = 'oslo')")
            connection.exec_driver_sql("DELETE FROM name WHERE key = 'oslo'")
        ours._bloom._bits = None
        await publish(ours, document("a", f"Nothing. {_FILLER}"))
        await theirs.commit(Delta(rebuild_text=True))
        await _check(ours, "b", "Oslo")


class _Failing(Delta):
    """A change that fails after everything else has been done."""

    def __getattribute__(self, name: str) -> object:
        if name == "vectors":
            raise ValueError("no such thing")
        return super().__getattribute__(name)


def test_a_full_filter_is_filled_again_and_lets_every_name_through(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "index.sqlite", busy_timeout_s=5.0)
    bloom = BloomFilter()
    names = [f"name {number}" for number in range(30_000)]
    with backend.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE name (rid INTEGER PRIMARY KEY, words TEXT)")
        for start in range(0, len(names), 5_000):
            block = names[start : start + 5_000]
            connection.exec_driver_sql("INSERT INTO name (words) VALUES (?)", [(name,) for name in block])
            bloom.add(block)
            bloom.begin(start)
            bloom.finish(start + 5_000)
            known = NameStarts(range(start + 5_000), names[: start + 5_000])
            assert bloom.passing(connection, known).anchors == known.anchors
            strange = NameStarts(range(10_000), [f"strange {number}" for number in range(10_000)])
            assert len(bloom.passing(connection, strange).anchors) < 2_000
    backend.close()
