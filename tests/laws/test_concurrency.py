"""Law 3: readers see only whole snapshots while a writer works, and two writers lose no update."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection

from quipu.model.document import SourceDocument
from quipu.stores.relational.sqlite import SqliteBackend
from tests.laws.world import chunk_texts, document, engine, fresh_state, state

ROOT = Path(__file__).resolve().parents[2]


def writer(folder: Path, first: int, last: int, fault: str = "") -> subprocess.Popen[bytes]:
    """Start a process that adds the documents `own{first}` … and, over and over, three that all writers share."""
    command = [sys.executable, "-m", "tests.laws.child", "write", str(folder), str(first), str(last)]
    environment = {**os.environ, "LAWS_FAULT": fault}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL if fault else None)


def written(first: int, last: int) -> dict[str, SourceDocument]:
    """Return what such a writer leaves behind."""
    own = {f"own{number}.md": document(f"own{number}.md", number) for number in range(first, last)}
    return own | {f"shared{number % 3}.md": document(f"shared{number % 3}.md", 0) for number in range(first, last)}


async def test_readers_see_only_whole_snapshots_while_another_process_writes(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        process = writer(tmp_path / "kb", 0, 40)
        n_snapshots, sizes = 0, set[int]()
        while process.poll() is None or n_snapshots == 0:
            assert await kb.verify() == []
            documents = await kb.documents()
            for known in documents:
                report = await kb.document(known.id)
                texts = [chunk.text for chunk in report.chunks]
                whole = chunk_texts(written(0, 40)[known.id])
                assert texts in ([], whole)
            n_snapshots += 1
            sizes.add(len(documents))
        assert process.returncode == 0
        assert len(sizes) > 1, "the reader never saw the index grow"


async def sees_a_write(folder: Path) -> bool:
    """Say whether a view sees what another process writes while it is open."""
    async with engine(folder) as kb:
        await kb.add(document("before.md", 0))
        async with kb._store.view() as view:
            before = await view.documents()
            assert writer(folder, 0, 5).wait() == 0
            return await view.documents() != before


async def test_a_view_does_not_change_while_another_process_writes(tmp_path: Path) -> None:
    assert not await sees_a_write(tmp_path)


async def test_the_law_fails_where_a_view_is_no_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def reading(backend: SqliteBackend) -> Iterator[Connection]:
        with backend._engine.connect() as connection:
            yield connection

    monkeypatch.setattr(SqliteBackend, "viewing", reading)
    assert await sees_a_write(tmp_path)


async def differ_after_two_writers(folder: Path, fault: str = "") -> bool:
    """Say whether an index that two processes wrote to differs from one that was built alone."""
    async with engine(folder / "kb") as kb:
        processes = [writer(folder / "kb", 0, 15, fault), writer(folder / "kb", 15, 30, fault)]
        codes = [process.wait() for process in processes]
        if any(codes):
            return True
        await kb.resume()
        together = await kb.verify(), await state(kb)
    return together != ([], await fresh_state(folder / "fresh", list(written(0, 30).values())))


async def test_two_writers_lose_no_update(tmp_path: Path) -> None:
    assert not await differ_after_two_writers(tmp_path)


async def test_the_law_fails_where_writers_do_not_take_turns(tmp_path: Path) -> None:
    assert await differ_after_two_writers(tmp_path, fault="no write transaction")
