"""Restoring an index from an archive: complete or not at all, and without confusing who has the earlier one open."""

import sqlite3
from pathlib import Path

import pytest

import quipu
from quipu import sync
from quipu.errors import Busy, Corrupt, InvalidInput, Mismatch, NotFound, Unavailable
from quipu.model.edit import EditKind, EditRequest
from quipu.model.event import Progress
from quipu.settings import Settings
from quipu.stores.relational.archive import RelationalArchive
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.wiring import open_engine, open_store
from quipu.wiring.restoring import check_archive, restore_index
from tests.postgres import PostgresIndexes

_TEXT = "Ada Lovelace wrote to Charles Babbage about the Analytical Engine."


@pytest.fixture
async def archive(tmp_path: Path) -> Path:
    """Return an archive of an index with one letter and one saved answer."""
    async with quipu.open(tmp_path / "first") as kb:
        await kb.add_text(_TEXT, id="a.md")
        await kb.conversations.ask("To whom did Ada Lovelace write?")
        await kb.backup(tmp_path / "kb.quipu")
    return tmp_path / "kb.quipu"


def _content(file: Path) -> bytes:
    return file.read_bytes()


def _write(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_an_index_is_restored_with_its_conversations_and_answers(tmp_path: Path, archive: Path) -> None:
    summary = await quipu.restore(archive, tmp_path / "second")
    assert (summary.n_documents, summary.n_bytes) == (1, len(_content(archive)))
    dumps = []
    for name in ("first", "second"):
        async with quipu.open(tmp_path / name) as kb:
            dumps.append([line async for line in kb.dump()])
            assert "Charles Babbage" in (await kb.query("To whom did Ada Lovelace write?")).text
            [saved] = (await kb.conversations.page()).conversations
            assert saved.n_exchanges == 1
            assert await kb.verify() == []
    assert dumps[0] == dumps[1]


async def test_a_restored_index_has_an_identity_of_its_own(tmp_path: Path, archive: Path) -> None:
    """A service that keeps vectors by it, as Qdrant, must not take one index for the other."""
    await quipu.restore(archive, tmp_path / "second")
    identities = set()
    for name in ("first", "second"):
        store = open_store(Settings(index=tmp_path / name))
        identities.add(await store.identity())
        await store.close()
    assert len(identities - {""}) == 2


async def test_earlier_versions_and_edits_are_restored(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "first", history=True) as kb:
        await kb.add_text(_TEXT, id="a.md")
        await kb.add_text("Ada Lovelace wrote to Mary Somerville.", id="a.md")
        await kb.edits.make(EditRequest(kind=EditKind.RETYPE, entities=("Ada Lovelace",), type="Mathematician"))
        versions, edits = await kb.earlier_versions(), await kb.edits.history()
        await kb.backup(tmp_path / "kb.quipu")
    await quipu.restore(tmp_path / "kb.quipu", tmp_path / "second")
    async with quipu.open(tmp_path / "second", history=True) as kb:
        assert await kb.earlier_versions() == versions
        assert len(versions) == 1
        assert await kb.edits.history() == edits
        assert await kb.verify() == []


async def test_an_existing_index_is_replaced_only_if_that_is_asked(tmp_path: Path, archive: Path) -> None:
    async with quipu.open(tmp_path / "second") as kb:
        await kb.add_text("Other.", id="other.md")
    before = _files(tmp_path / "second")
    with pytest.raises(InvalidInput, match="There is an index"):
        await quipu.restore(archive, tmp_path / "second")
    assert _files(tmp_path / "second") == before
    await quipu.restore(archive, tmp_path / "second", replace=True)
    async with quipu.open(tmp_path / "second") as kb:
        assert [document.id for document in await kb.documents()] == ["a.md"]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.9999])
async def test_a_truncated_archive_changes_nothing(tmp_path: Path, archive: Path, share: float) -> None:
    content = _content(archive)
    _write(archive, content[: int(len(content) * share)])
    with pytest.raises(Corrupt):
        await check_archive(archive)
    with pytest.raises(Corrupt):
        await quipu.restore(archive, tmp_path / "second")
    assert not (tmp_path / "second").exists()
    before = _files(tmp_path / "first")
    with pytest.raises(Corrupt):
        await quipu.restore(archive, tmp_path / "first", replace=True)
    assert _files(tmp_path / "first") == before


async def test_a_process_with_the_replaced_index_open_must_open_it_again(tmp_path: Path, archive: Path) -> None:
    async with quipu.open(tmp_path / "first") as kb:
        await kb.add_text("Grace Hopper wrote a compiler.", id="b.md")
        await quipu.restore(archive, tmp_path / "first", replace=True)
        with pytest.raises(Unavailable, match="replaced"):
            await kb.query("Who wrote a compiler?")
        with pytest.raises(Unavailable, match="replaced"):
            await kb.add_text("Lost.", id="c.md")
    async with quipu.open(tmp_path / "first") as kb:
        assert [document.id for document in await kb.documents()] == ["a.md"]
        assert await kb.verify() == []


async def test_an_index_in_use_is_not_replaced(tmp_path: Path, archive: Path) -> None:
    database = tmp_path / "first" / "index.sqlite"
    holder = sqlite3.connect(database, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(Busy):
            await restore_index(archive, Settings(index=tmp_path / "first", busy_timeout_s=0.1), replace=True)
    finally:
        holder.close()
    assert sorted(path.name for path in (tmp_path / "first").iterdir() if "restoring" in path.name) == []


async def test_derived_files_of_the_replaced_index_go(tmp_path: Path, archive: Path) -> None:
    (tmp_path / "first" / "vectors").mkdir(exist_ok=True)
    (tmp_path / "first" / "vectors" / "old").write_bytes(b"of a lost history")
    await quipu.restore(archive, tmp_path / "first", replace=True)
    assert not (tmp_path / "first" / "vectors").exists()


async def test_an_archive_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "newer") as kb:
        await kb.add_text(_TEXT, id="a.md")
    with sqlite3.connect(tmp_path / "newer" / "index.sqlite") as connection:
        connection.execute("UPDATE meta SET value = '999' WHERE key = 'schema'")
    backend = SqliteBackend(tmp_path / "newer" / "index.sqlite", busy_timeout_s=5)
    await RelationalArchive(backend).write(tmp_path / "newer.quipu", "now", lambda *_: None)
    backend.close()
    with pytest.raises(Mismatch, match="999"):
        await quipu.restore(tmp_path / "newer.quipu", tmp_path / "second")
    assert not (tmp_path / "second").exists()


async def test_a_file_that_is_no_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"kb\.quipu"):
        await quipu.restore(tmp_path / "kb.quipu", tmp_path / "second")
    (tmp_path / "kb.quipu").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(Corrupt, match="not an archive"):
        await check_archive(tmp_path / "kb.quipu")


async def test_a_database_with_programs_in_it_is_refused(tmp_path: Path) -> None:
    """Whoever made such an archive would decide what later writes do; an index has no triggers and no views."""
    async with quipu.open(tmp_path / "first") as kb:
        await kb.add_text(_TEXT, id="a.md")
        with sqlite3.connect(tmp_path / "first" / "index.sqlite") as connection:
            connection.execute("CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM chunk; END")
        await kb.backup(tmp_path / "kb.quipu")
    with pytest.raises(Corrupt, match="not one of Quipu"):
        await quipu.restore(tmp_path / "kb.quipu", tmp_path / "second")
    assert not (tmp_path / "second").exists()


async def test_an_index_in_postgresql_is_backed_up_and_restored_into_a_folder(
    tmp_path: Path, postgres: PostgresIndexes
) -> None:
    there = Settings(index=postgres.server.address("kept"), cache=tmp_path / "cache", history=True)
    async with await open_engine(there) as kb:
        await kb.add_text(_TEXT, id="a.md", metadata={"year": 1843})
        await kb.add_text("Ada Lovelace wrote to Mary Somerville.", id="a.md")
        await kb.backup(tmp_path / "kb.quipu")
        expected = [line async for line in kb.dump()]
    await quipu.restore(tmp_path / "kb.quipu", tmp_path / "second")
    async with quipu.open(tmp_path / "second", history=True) as kb:
        assert [line async for line in kb.dump()] == expected
        assert len(await kb.earlier_versions()) == 1
        assert await kb.verify() == []


async def test_progress_ends_with_all_bytes(tmp_path: Path, archive: Path) -> None:
    events: list[Progress] = []
    summary = await restore_index(
        archive,
        Settings(index=tmp_path / "second"),
        on_event=events.append,  # type: ignore[arg-type]
    )
    assert {event.stage for event in events} == {"restore"}
    assert events[-1].n_done == events[-1].n_total == -(-summary.n_bytes // 1_000_000)


def test_an_index_is_backed_up_and_restored_without_async(tmp_path: Path) -> None:
    with sync.open(tmp_path / "kb") as kb:
        kb.add_text(_TEXT, id="a.md")
        summary = kb.backup(tmp_path / "kb.quipu")
    assert _content(tmp_path / "kb.quipu").endswith(b"QUIPU ARCHIVE 2\n")
    assert sync.restore(tmp_path / "kb.quipu", tmp_path / "again").n_bytes == summary.n_bytes
