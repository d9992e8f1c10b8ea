"""Tests of opening: what is no index of ours, or of another version, is refused with what to do about it."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from quipu.errors import Corrupt, Mismatch, QuipuError
from quipu.model.delta import Delta
from quipu.stores.relational.migrations import SCHEMA
from quipu.testing.contract.steps import dump, publish
from quipu.testing.facts import document
from tests.unit.stores.opening import EXAMPLE, fill, open_index


def _execute(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def _write(database: Path, data: bytes) -> None:
    database.write_bytes(data)


def _read(database: Path) -> bytes:
    return database.read_bytes()


async def _open(database: Path, *, any_tokenizer: bool = False) -> None:
    async with open_index(database, any_tokenizer=any_tokenizer):
        pass


async def test_a_file_that_is_no_database_is_refused(database: Path) -> None:
    _write(database, b"Once upon a time. " * 500)
    with pytest.raises(Corrupt) as caught:
        await _open(database)
    assert str(database) in caught.value.message
    assert caught.value.remedy
    assert _read(database) == b"Once upon a time. " * 500


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE recipe (name TEXT)",),
        ("CREATE TABLE meta (id INTEGER, name TEXT)", "INSERT INTO meta VALUES (1, 'x')"),
        ("CREATE TABLE meta (key TEXT, value TEXT)", "INSERT INTO meta VALUES ('schema', 'public')"),
        ("CREATE TABLE meta (key TEXT, value TEXT)",),
    ],
)
async def test_the_database_of_another_program_is_refused_and_left_alone(
    database: Path, statements: tuple[str, ...]
) -> None:
    _execute(database, *statements)
    with pytest.raises(Corrupt) as caught:
        await _open(database)
    assert caught.value.remedy
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()
    assert tables == (1,)


async def test_an_index_of_a_newer_version_is_refused(database: Path) -> None:
    await _open(database)
    _execute(database, f"UPDATE meta SET value = '{SCHEMA + 1}' WHERE key = 'schema'")
    with pytest.raises(Mismatch) as caught:
        await _open(database)
    assert str(SCHEMA + 1) in caught.value.message
    assert "pgrade" in caught.value.remedy


async def test_full_text_of_another_tokenizer_is_refused_until_it_is_built_anew(database: Path) -> None:
    async with open_index(database) as store:
        await fill(store)
        before = await dump(store)
    _execute(
        database,
        "UPDATE meta SET value = 'quipu-words/0' WHERE key = 'tokenizer'",
        "INSERT INTO posting VALUES (1, 'old-fashioned', x'0000', x'01', x'0000')",
        "DELETE FROM link",
    )
    with pytest.raises(Mismatch) as caught:
        await _open(database)
    assert "quipu-words/0" in caught.value.message
    assert "quipu refresh --rebuild" in caught.value.remedy
    async with open_index(database, any_tokenizer=True) as store:
        await store.commit(Delta(rebuild_text=True))
    async with open_index(database) as store:
        assert await dump(store) == before
        assert await store.verify() == []


async def test_a_damaged_table_is_reported_where_it_is_read(database: Path) -> None:
    async with open_index(database) as store:
        await publish(store, *EXAMPLE)
    with closing(sqlite3.connect(database)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'chunk'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    async with open_index(database) as store:
        with pytest.raises(Corrupt) as caught:
            async with store.view() as view:
                await view.chunks(document_id="a.md")
        assert caught.value.remedy
        with pytest.raises(Corrupt):
            await publish(store, document("c", "Three."))


async def test_a_path_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(QuipuError) as caught:
        await _open(tmp_path / "nowhere" / "index.sqlite")
    assert "nowhere" in str(caught.value)


async def test_two_who_make_the_same_index_at_once_both_get_it(database: Path) -> None:
    async def add(name: str) -> None:
        async with open_index(database) as store:
            await publish(store, document(name, name))

    await asyncio.gather(*(add(name) for name in "abcd"))
    async with open_index(database) as store:
        async with store.view() as view:
            assert [each.id for each in await view.documents()] == list("abcd")
        assert await store.verify() == []


async def test_opening_again_writes_nothing(database: Path) -> None:
    await _open(database)
    before = _read(database)
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        await _open(database)
    assert _read(database) == before
