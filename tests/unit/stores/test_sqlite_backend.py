"""An index is recognised, open or closed, and nothing else is."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import bindparam, select
from sqlalchemy.engine.interfaces import CacheStats

from quipu.settings import Settings
from quipu.stores.relational import schema
from quipu.stores.sqlite.backend import SqliteBackend, is_index
from quipu.wiring import open_engine


async def test_an_index_is_one_while_it_is_open_and_afterwards_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "50% done? #1"
    async with await open_engine(Settings(index=folder)) as kb:
        assert is_index(folder / "index.sqlite"), "its tables may be in the log alone"
        await kb.add_text("Alice Kober taught.", id="kober")
        assert is_index(folder / "index.sqlite")
    before = sorted(folder.iterdir())
    assert is_index(folder / "index.sqlite")
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "statements",
    [
        [],
        ["CREATE TABLE mine (x)"],
        ["CREATE TABLE meta (name)"],
        ["CREATE TABLE meta (key, value)"],
        ["CREATE TABLE meta (key, value)", "INSERT INTO meta VALUES ('schema', '5'), ('owner', 'me')"],
    ],
)
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_another_database_is_none(statements: list[str], mode: str, tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        for statement in statements:
            connection.execute(statement)
        assert not is_index(file)
    assert not is_index(file)


def test_what_is_no_database_is_no_index(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    assert not is_index(file)
    assert list(tmp_path.iterdir()) == []
    for content in (b"", b"no database", b"SQLite format 3\x00", b"SQLite format 3\x00" + 5_000 * b"x"):
        file.write_bytes(content)
        assert not is_index(file)
    file.unlink()
    os.mkfifo(file)
    assert not is_index(file)
    file.unlink()
    file.mkdir()
    assert not is_index(file)


def test_a_statement_compiled_for_one_database_serves_another(tmp_path: Path) -> None:
    statement = select(schema.meta.c.value).where(schema.meta.c.key == bindparam("a name that no other statement has"))
    hits = []
    for name in ("first", "second"):
        backend = SqliteBackend(tmp_path / name, busy_timeout_s=1.0)
        with backend.writing() as connection:
            backend.create_tables(connection, schema.metadata)
        for transaction in (backend.reading(), backend.viewing()):
            with transaction as connection:
                result = connection.execute(statement, {"a name that no other statement has": "schema"})
                hits.append(result.context.cache_hit is CacheStats.CACHE_HIT)
        backend.close()
    assert hits == [False, True, True, True]
