"""Tests of migrations: an index that an old version left behind opens as if it had been made today."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from quipu.errors import Mismatch, Unavailable
from quipu.model.graph import MAX_DESCRIPTIONS
from quipu.stores.relational.migrations import MIGRATIONS, SCHEMA
from quipu.testing.contract.steps import DIMENSION, MODEL, dump, publish, remove, summary_targets
from quipu.testing.facts import document, entity, passage, source
from tests.unit.stores.opening import EXAMPLE, fill, open_index

_DATA = Path(__file__).resolve().parents[2] / "data"
_FILES = sorted(_DATA.glob("schema_*.sql"), key=lambda file: int(file.stem.rpartition("_")[2]))


def _restore(file: Path, database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(file.read_text(encoding="utf-8"))


def _schema_of(database: Path) -> dict[str, object]:
    """Return the columns of each table, in any order, and the statement that made each index and full-text table."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        made: dict[str, object] = {name: " ".join(sql.split()) for name, sql in rows}
        for name, sql in rows:
            if sql.startswith("CREATE TABLE"):
                columns = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?) ORDER BY name'
                made[name] = connection.execute(columns, [name]).fetchall()
        return made


def _number_in(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        (number,) = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    return int(number)


def test_every_older_schema_has_its_frozen_file() -> None:
    assert [file.stem for file in _FILES] == [f"schema_{number}" for number in range(1, SCHEMA)]


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
async def test_an_old_index_becomes_a_new_one(tmp_path: Path, file: Path) -> None:
    old, new = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
    _restore(file, old)
    assert _number_in(old) < SCHEMA
    async with open_index(new) as store:
        await fill(store)
        expected = await dump(store)
    async with open_index(old) as store:
        assert await dump(store) == expected
        assert await store.verify() == []
        assert await store.texts_without_vector(MODEL, 10) == {}
    assert _schema_of(old) == _schema_of(new)
    assert _number_in(old) == _number_in(new) == SCHEMA


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
async def test_work_goes_on_in_an_old_index(tmp_path: Path, file: Path) -> None:
    database = tmp_path / "index.sqlite"
    _restore(file, database)
    async with open_index(database) as store:
        await store.set_embedder(MODEL, DIMENSION)
        before = await dump(store)
        (job,) = await store.claim_jobs(10)
        assert job.source == source("c.md", "Waiting.", title="Later", metadata={"n": 1})
        assert await store.find_replies(["h" * 32]) == {"h" * 32: "{}"}
        async with store.view() as view:
            revision = view.revision
        said = document("c.md", passage("Geneva waits.", entity("Geneva")), job=job.id)
        assert (await publish(store, said)).revision == revision + 1
        assert await store.verify() == []
        await remove(store, "c.md")
        assert await dump(store) == before
        await remove(store, *(each.id for each in EXAMPLE))
        assert await dump(store) == []


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
async def test_a_migration_that_is_interrupted_leaves_the_old_index(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "index.sqlite"
    _restore(file, database)
    before, number = _schema_of(database), _number_in(database)

    def fail(_: object) -> None:
        raise RuntimeError("pulled the plug")

    with monkeypatch.context() as patched:
        patched.setattr("quipu.stores.relational.migrations.MIGRATIONS", (*MIGRATIONS, fail))
        with pytest.raises(RuntimeError):
            async with open_index(database):
                pass
    assert (_schema_of(database), _number_in(database)) == (before, number)
    async with open_index(database) as store:
        assert await store.verify() == []


_BACK_TO_3 = """
    DROP INDEX reply_revision; DROP INDEX entity_unsummarised; DROP INDEX relation_unsummarised;
    DROP TABLE reply_source; DROP TABLE summary; DROP TABLE usage;
    DROP TABLE claim_mention;
    ALTER TABLE reply DROP COLUMN lifetime; ALTER TABLE reply_document DROP COLUMN version;
    ALTER TABLE entity DROP COLUMN described_by; ALTER TABLE relation DROP COLUMN described_by;
    UPDATE meta SET value = '3' WHERE key = 'schema';
"""


async def test_what_has_more_descriptions_than_are_shown_waits_for_a_summary_in_an_old_index_too(
    tmp_path: Path,
) -> None:
    database = tmp_path / "index.sqlite"
    few = [passage(f"Few {n}.", entity("Few", description=f"Few {n}.")) for n in range(MAX_DESCRIPTIONS)]
    many = [passage(f"Many {n}.", entity("Many", description=f"Many {n}.")) for n in range(MAX_DESCRIPTIONS + 1)]
    long = [passage(f"Long {n}.", entity("Long", description=f"{n}" * 700)) for n in range(2)]
    async with open_index(database) as store:
        await publish(store, document("a", *few, *many, *long))
        waiting, state = await summary_targets(store), await dump(store)
    assert [owner.id for owner in waiting] == ["long", "many"]
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(_BACK_TO_3)
    async with open_index(database) as store:
        assert (await summary_targets(store), await dump(store), await store.verify()) == (waiting, state, [])


async def test_a_process_that_an_upgrade_overtakes_is_told_and_writes_nothing(tmp_path: Path) -> None:
    database = tmp_path / "index.sqlite"
    async with open_index(database) as store:
        await publish(store, *EXAMPLE)
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", [SCHEMA + 1])
        for call in (
            lambda: remove(store, "a.md"),
            lambda: dump(store),
            lambda: store.claim_jobs(1),
            lambda: store.record_call([]),
            store.purge,
        ):
            with pytest.raises(Mismatch, match=f"{SCHEMA + 1}") as caught:
                await call()
            assert "pip install -U" in caught.value.remedy
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", [SCHEMA])
        async with store.view() as view:
            assert (view.revision, len(await view.documents())) == (1, 2)


async def test_an_old_index_that_cannot_be_written_says_how_to_bring_it_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "index.sqlite"
    _restore(_FILES[-1], database)
    monkeypatch.setattr(os, "access", lambda *_: False)  # a test run as root could write anywhere
    with pytest.raises(Unavailable, match=f"has schema {SCHEMA - 1}.*attempt to write a readonly") as raised:
        async with open_index(database):
            pass
    assert "quipu status" in raised.value.remedy
    assert _number_in(database) == SCHEMA - 1


async def test_full_text_made_with_a_segmenter_is_not_replaced_by_one_without(tmp_path: Path) -> None:
    database = tmp_path / "index.sqlite"
    _restore(_FILES[-1], database)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE meta SET value = 'quipu-words/1+jieba/0.42' WHERE key = 'tokenizer'")
    with pytest.raises(Mismatch, match="jieba"):
        async with open_index(database):
            pass
