"""Tests of copying an index between databases: the same bytes, the same answers, and nothing half-done."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from quipu.errors import InvalidInput, Mismatch, NotFound
from quipu.model.document import SourceDocument
from quipu.model.query import Query
from quipu.settings import Settings
from quipu.stores.relational import archive
from quipu.wiring import open_engine
from quipu.wiring.restoring import copy_index, has_index
from tests.postgres import PostgresIndexes

_DATA = Path(__file__).resolve().parents[2] / "data"
_QUESTIONS = ("Who met Kublai Khan?", "Что нашли в Новгороде?")


@asynccontextmanager
async def _told(settings: Settings) -> AsyncIterator[tuple[list[str], list[object]]]:
    """Give the dump of an index, and what it answers; it must be sound."""
    async with await open_engine(settings, create=False) as kb:
        assert await kb.verify() == []
        evidence = [(await kb.retrieve(Query(text=text))).chunks for text in _QUESTIONS]
        yield [line async for line in kb.dump()], list(evidence)


async def _fill(settings: Settings) -> None:
    async with await open_engine(settings) as kb:
        await kb.add_text("Marco Polo met Kublai Khan (KK) in Shangdu. KK ruled.", id="a", metadata={"year": 1275})
        await kb.add_text("В Новгороде нашли берестяные грамоты.", id="b", title="Новгород")
        await kb.refresh(["names", "synonyms", "sentences", "communities"])
        await kb.enqueue(SourceDocument(id="waits.txt", content=b"Cai Lun made paper.", media_type="text/plain"))


def _settings(postgres: PostgresIndexes, tmp_path: Path, name: str) -> Settings:
    return Settings(index=postgres.server.address(name), cache=tmp_path / "cache")


async def test_an_index_goes_to_postgresql_and_back_with_the_same_bytes_and_answers(
    postgres: PostgresIndexes, tmp_path: Path
) -> None:
    first, back = (Settings(index=tmp_path / name) for name in ("first", "back"))
    there = _settings(postgres, tmp_path, "copied")
    await _fill(first)
    assert await copy_index(first, there) == await copy_index(there, back) > 20
    async with _told(first) as expected, _told(there) as in_postgres, _told(back) as in_folder:
        assert in_postgres == expected
        assert in_folder == expected
    async with await open_engine(back) as kb:
        assert (await kb.resume()).n_resumed == 1  # what waited was copied, too
        assert await kb.verify() == []
    with pytest.raises(InvalidInput, match="There is an index in"):
        await copy_index(first, there)


async def test_there_must_be_something_to_copy(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no index in"):
        await copy_index(Settings(index=tmp_path / "none"), Settings(index=tmp_path / "new"))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("is_folder", [True, False])
async def test_a_copy_that_fails_leaves_no_index(
    is_folder: bool, postgres: PostgresIndexes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, there = Settings(index=tmp_path / "first"), _settings(postgres, tmp_path, "halfway")
    there = Settings(index=tmp_path / "second") if is_folder else there
    await _fill(first)

    copy_rows = archive.copy_rows

    def fail_at_the_end(*arguments: Any) -> int:
        copy_rows(*arguments)
        raise RuntimeError("killed")

    monkeypatch.setattr(archive, "copy_rows", fail_at_the_end)
    with pytest.raises(RuntimeError, match="killed"):
        await copy_index(first, there)
    assert not await has_index(there)
    monkeypatch.undo()
    assert await copy_index(first, there) > 20


async def test_an_index_of_an_older_version_is_not_changed_by_a_copy(tmp_path: Path) -> None:
    old, new = (Settings(index=tmp_path / name) for name in ("old", "new"))
    (tmp_path / "old").mkdir()
    database = tmp_path / "old" / "index.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")  # as every index has it
        connection.executescript((_DATA / "schema_12.sql").read_text(encoding="utf-8"))
    before = database.read_bytes()
    with pytest.raises(Mismatch, match="has schema 12") as caught:
        await copy_index(old, new)
    assert "quipu --index" in caught.value.remedy
    assert database.read_bytes() == before
    assert not await has_index(new)
    async with await open_engine(old):
        pass
    assert await copy_index(old, new) > 20
