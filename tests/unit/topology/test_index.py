"""Local topology index: when it reads the whole graph, when it follows changes, and which files it uses."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from quipu.model.delta import Delta, DocumentFacts
from quipu.model.query import Filter
from quipu.ports.derivation_view import ChangeSet, GraphRows
from quipu.ports.store import ReadView
from quipu.stores.relational import change_log
from quipu.stores.relational.store import RelationalStore
from quipu.testing.facts import document, entity, passage, relation
from quipu.topology import LocalTopologyIndex, index
from tests.unit.stores.opening import open_index
from tests.unit.topology.reference import read, told

KEYS = ["ada", "london", "turin", "paris"]


def about(document_id: str, *names: str) -> DocumentFacts:
    said = [entity(name) for name in names] + [relation(*pair) for pair in pairwise(names)]
    return document(document_id, passage(", ".join(names), *said))


FIRST, SECOND, THIRD = about("a", "Ada", "London"), about("b", "London", "Turin"), about("c", "Turin", "Paris")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[RelationalStore]:
    async with open_index(tmp_path / "index.sqlite") as opened:
        await opened.commit(Delta(publish=[FIRST]))
        yield opened


def topologies(folder: Path, **options: int) -> LocalTopologyIndex:
    return LocalTopologyIndex(folder / "topology", **{"min_chunks": 0, "max_unsaved": 0, **options})


@asynccontextmanager
async def watched(store: RelationalStore, allowed: Filter | None = None) -> AsyncIterator[tuple[ReadView, list[str]]]:
    """Open a view that notes how much of the graph is read from it."""
    reads: list[str] = []
    async with store.view(allowed) as view:
        graph_rows: Any = view.graph_rows

        async def noted(changed: ChangeSet | None = None) -> GraphRows:
            n = "all" if changed is None else f"{len(changed.chunks)} chunks"
            reads.append(n)
            rows: GraphRows = await graph_rows(changed)
            return rows

        view.graph_rows = noted  # type: ignore[method-assign]
        yield view, reads


async def check(found: LocalTopologyIndex, store: RelationalStore) -> list[str]:
    """Check that the topology is right, and return what was read for it."""
    async with watched(store) as (view, reads):
        topology = await found.open(view)
        reads_of_topology = list(reads)  # the store's own answer reads the graph too
        assert await read(topology, view) == await told(view, KEYS)
    return reads_of_topology


async def save(found: LocalTopologyIndex, store: RelationalStore) -> list[str]:
    async with watched(store) as (view, reads):
        await found.catch_up(view)
    return reads


async def test_after_one_document_one_chunk_is_read(store: RelationalStore, tmp_path: Path) -> None:
    found = topologies(tmp_path)
    assert await check(found, store) == ["all"]
    await store.commit(Delta(publish=[SECOND]))
    assert await check(found, store) == ["1 chunks"]
    assert await check(found, store) == []


@pytest.mark.parametrize("allowed", [None, Filter(documents=("a",))], ids=["all", "filtered"])
async def test_an_index_with_another_history_and_an_equal_revision_has_its_own_graph(
    allowed: Filter | None, store: RelationalStore, tmp_path: Path
) -> None:
    topology_index = topologies(tmp_path)
    async with store.view(allowed) as view:
        assert await read(await topology_index.open(view), view) == await told(view, KEYS)
    async with open_index(tmp_path / "restored.sqlite") as restored:
        await restored.commit(Delta(publish=[about("a", "Paris", "Turin", "Ada")]))
        async with restored.view(allowed) as other:
            assert other.revision == view.revision
            assert await read(await topology_index.open(other), other) == await told(other, KEYS)


async def test_another_process_begins_with_the_file(store: RelationalStore, tmp_path: Path) -> None:
    assert await save(topologies(tmp_path), store) == ["all"]
    assert await check(topologies(tmp_path), store) == []
    await store.commit(Delta(publish=[SECOND]))
    assert await check(topologies(tmp_path), store) == ["1 chunks"]


async def test_a_file_that_is_up_to_date_is_not_written_again(store: RelationalStore, tmp_path: Path) -> None:
    await save(topologies(tmp_path), store)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "topology").iterdir()}
    assert await save(topologies(tmp_path), store) == []
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "topology").iterdir()} == before


@pytest.mark.parametrize("step", ["save_graph", "is_intact"])
async def test_no_question_waits_while_a_file_is_written_or_looked_over(
    step: str, store: RelationalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, end = threading.Event(), threading.Event()
    original = getattr(index, step)

    def held(*arguments: Any) -> Any:
        begun.set()
        end.wait(60)
        return original(*arguments)

    await save(topologies(tmp_path), store)
    await store.commit(Delta(publish=[SECOND]))
    monkeypatch.setattr(index, step, held)
    found = topologies(tmp_path)
    writing = asyncio.create_task(save(found, store))
    try:
        assert await asyncio.to_thread(begun.wait, 60)
        assert await asyncio.wait_for(check(found, store), 30) is not None
        assert not writing.done()
    finally:
        end.set()
        await writing
    assert await check(topologies(tmp_path), store) == []


async def test_a_file_stays_until_enough_has_changed(store: RelationalStore, tmp_path: Path) -> None:
    found = topologies(tmp_path, max_unsaved=3)
    await save(found, store)
    await store.commit(Delta(publish=[SECOND]))  # a chunk, and Turin
    await save(found, store)
    assert [path.name for path in (tmp_path / "topology").iterdir()] == ["graph-000000000001.arrays"]
    await store.commit(Delta(publish=[THIRD], remove=["b"]))
    await save(found, store)
    assert [path.name for path in (tmp_path / "topology").iterdir()] == ["graph-000000000003.arrays"]
    assert await check(topologies(tmp_path), store) == []


async def test_a_small_index_has_no_file(store: RelationalStore, tmp_path: Path) -> None:
    await save(topologies(tmp_path), store)
    await save(topologies(tmp_path, min_chunks=2), store)
    assert list((tmp_path / "topology").iterdir()) == []
    assert await check(topologies(tmp_path, min_chunks=2), store) == ["all"]


async def test_a_file_of_another_history_is_not_believed(tmp_path: Path) -> None:
    path, backup = tmp_path / "index.sqlite", tmp_path / "backup.sqlite"
    async with open_index(path) as store:
        await store.commit(Delta(publish=[FIRST]))
    shutil.copy(path, backup)
    async with open_index(path) as store:
        await store.commit(Delta(publish=[SECOND]))
        await save(topologies(tmp_path), store)
    shutil.copy(backup, path)
    async with open_index(path) as store:
        await store.commit(Delta(publish=[THIRD]))  # revision 2 again, and row numbers the file has seen
        assert await check(topologies(tmp_path), store) == ["all"]
        await save(topologies(tmp_path), store)
        assert await check(topologies(tmp_path), store) == []


async def test_a_backup_older_than_the_file_is_read_anew(tmp_path: Path) -> None:
    path, backup = tmp_path / "index.sqlite", tmp_path / "backup.sqlite"
    async with open_index(path) as store:
        await store.commit(Delta(publish=[FIRST]))
    shutil.copy(path, backup)
    async with open_index(path) as store:
        await store.commit(Delta(publish=[SECOND]))
        await save(topologies(tmp_path), store)
    shutil.copy(backup, path)
    async with open_index(path) as store:
        assert await check(topologies(tmp_path), store) == ["all"]


@pytest.mark.parametrize("is_purge", [True, False])
async def test_where_the_log_is_forgotten_all_is_read(store: RelationalStore, tmp_path: Path, is_purge: bool) -> None:
    found = topologies(tmp_path)
    await check(found, store)
    await store.commit(Delta(publish=[SECOND]))
    await (store.purge() if is_purge else store.commit(Delta(rebuild_text=True)))
    assert await check(found, store) == ["all"]
    await store.commit(Delta(publish=[THIRD]))
    assert await check(found, store) == ["1 chunks"]


async def test_a_view_older_than_what_is_known_is_answered_as_of_its_revision(
    store: RelationalStore, tmp_path: Path
) -> None:
    found = topologies(tmp_path)
    async with watched(store) as (old, reads):
        expected = await told(old, KEYS)
        reads.clear()  # the store's own answer reads the graph too
        await store.commit(Delta(publish=[SECOND]))
        await store.commit(Delta(remove=["a"]))
        await save(found, store)
        assert await read(await found.open(old), old) == expected
        assert reads == ["all"]
    assert await check(found, store) == []


async def test_a_damaged_file_is_written_again(
    store: RelationalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_MAX_CHECKED_BYTES", 0)  # as if it were large
    await save(topologies(tmp_path), store)
    (path,) = (tmp_path / "topology").iterdir()
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert await save(topologies(tmp_path), store) == ["all"]
    assert await check(topologies(tmp_path), store) == []


async def test_two_processes_may_write_at_once(store: RelationalStore, tmp_path: Path) -> None:
    first, second = topologies(tmp_path), topologies(tmp_path)
    await save(first, store)
    await store.commit(Delta(publish=[SECOND]))
    await save(second, store)  # takes away the file that the first has mapped
    assert await check(first, store) == ["1 chunks"]
    await store.commit(Delta(publish=[THIRD]))
    await save(first, store)
    assert await check(second, store) == ["1 chunks"]


async def test_a_writer_whose_work_was_cleared_away_goes_on(
    store: RelationalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def cleared(self: Path, target: Path) -> Path:
        self.unlink()
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", cleared)  # as another process does that begins to write
    found = topologies(tmp_path)
    await save(found, store)
    assert list((tmp_path / "topology").iterdir()) == []
    assert await check(found, store) == []


async def test_when_most_has_changed_all_is_read(
    store: RelationalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.topology.index._THREAD_ROWS", 0)  # else there is too little here to be much
    found = topologies(tmp_path)
    await check(found, store)
    await store.commit(Delta(publish=[SECOND, THIRD]))
    assert await check(found, store) == ["all"]


async def test_a_commit_that_changes_nothing_of_the_graph_reads_nothing(store: RelationalStore, tmp_path: Path) -> None:
    found = topologies(tmp_path)
    await check(found, store)
    await store.commit(Delta())
    assert await check(found, store) == []


async def test_the_log_is_bounded(store: RelationalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "MAX_ROWS", 10)
    monkeypatch.setattr(change_log, "_REVISIONS_BETWEEN_CHECKS", 4)
    found = topologies(tmp_path)
    await check(found, store)
    for n in range(10):
        await store.commit(Delta(publish=[about(f"d{n}", "Ada", "Paris")]))
    async with store.view() as view:
        assert await view.changes_since(1) is None
        recent = await view.changes_since(view.revision - 1)
        assert recent is not None
        assert len(recent.chunks) == 1
    assert await check(found, store) == ["all"]


async def test_what_is_allowed_is_worked_out_once_a_filter(store: RelationalStore, tmp_path: Path) -> None:
    await store.commit(Delta(publish=[SECOND]))
    found, only = topologies(tmp_path), Filter(documents=("b",))
    async with store.view(only) as view, store.view(only) as again:
        assert await found.open(view) is await found.open(again)
        assert await read(await found.open(view), view) == await told(view, KEYS)
    async with store.view(only) as view, store.view(Filter(documents=("b", "unknown"))) as equal:
        assert await found.open(equal) is await found.open(view)
    async with store.view(Filter(documents=("a",))) as other:
        assert await read(await found.open(other), other) == await told(other, KEYS)
