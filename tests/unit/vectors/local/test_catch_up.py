"""What is kept on disk: it saves reading the store, and never matters for what is found."""

import asyncio
import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest

from quipu.ports.store import VectorSpace
from quipu.vectors.local import LocalVectors
from quipu.vectors.local.segment_files import Manifest, SpaceFiles, try_lock_exclusively
from tests.unit.vectors.local.ledger import Ledger, LedgerView, Matrix, clustered, named

DIMENSION = 70
DATA = clustered(2_000, DIMENSION)
QUERIES = clustered(10, DIMENSION, seed=1)


def opened(folder: Path, *, exact_below: int = 50, max_unsaved: int = 100) -> LocalVectors:
    return LocalVectors(folder, exact_below=exact_below, max_unsaved=max_unsaved)


async def answers(index: LocalVectors, view: LedgerView) -> list[list[str]]:
    results = await index.nearest(view.port(), VectorSpace.CHUNK, QUERIES, k=10)
    return [[s.id for s in result] for result in results]


async def expected(view: LedgerView, folder: Path) -> list[list[str]]:
    """Return what an index that reads everything from the store finds."""
    return await answers(opened(folder / "nothing here"), view)


def on_disk(folder: Path) -> Manifest:
    manifest = SpaceFiles(folder, "chunk").manifest()
    assert manifest is not None
    return manifest


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def saved(folder: Path, data: Matrix = DATA) -> Ledger:
    ledger = Ledger()
    ledger.add(named(data))
    await opened(folder).catch_up(ledger.view().port())
    return ledger


async def test_a_small_space_keeps_no_file(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.add(named(DATA[:50]))
    await opened(tmp_path).catch_up(ledger.view().port())
    assert names(tmp_path) == []


async def test_an_opened_index_reads_one_row_of_the_store(tmp_path: Path) -> None:
    ledger = await saved(tmp_path)
    view = ledger.view()
    assert await answers(opened(tmp_path), view) == await expected(ledger.view(), tmp_path)
    assert view.n_read == 1


async def test_catching_up_with_no_news_reads_nothing(tmp_path: Path) -> None:
    ledger, index = await saved(tmp_path), opened(tmp_path)
    await index.catch_up(ledger.view().port())
    view = ledger.view()
    await index.catch_up(view.port())
    assert view.n_read == 0


async def test_an_index_behind_the_store_reads_what_is_new(tmp_path: Path) -> None:
    ledger = await saved(tmp_path, DATA[:1_900])
    ledger.remove([f"c{i:05d}" for i in range(0, 1_900, 7)])
    ledger.add(named(DATA[1_900:], "d"))
    view = ledger.view()
    assert await answers(opened(tmp_path), view) == await expected(ledger.view(), tmp_path)
    assert view.n_read == 101


async def test_little_news_is_not_written(tmp_path: Path) -> None:
    ledger = await saved(tmp_path, DATA[:1_900])
    before = names(tmp_path)
    ledger.add(named(DATA[1_900:], "d"))
    await opened(tmp_path).catch_up(ledger.view().port())
    assert names(tmp_path) == before
    assert on_disk(tmp_path).revision == 1


async def test_much_news_is_written_as_a_segment_of_its_own(tmp_path: Path) -> None:
    ledger = await saved(tmp_path, DATA[:1_800])
    (first,) = on_disk(tmp_path).segments
    ledger.add(named(DATA[1_800:], "d"))
    await opened(tmp_path).catch_up(ledger.view().port())
    assert on_disk(tmp_path).segments[0] == first
    assert [segment.n_rows for segment in on_disk(tmp_path).segments] == [1_800, 200]
    view = ledger.view()
    assert await answers(opened(tmp_path), view) == await expected(ledger.view(), tmp_path)
    assert view.n_read == 1


async def test_segments_are_joined_so_that_there_are_few(tmp_path: Path) -> None:
    ledger, index = Ledger(), opened(tmp_path)
    for start in range(0, 2_000, 125):
        ledger.add(named(DATA[start : start + 125], f"{start:04d}-"))
        await index.catch_up(ledger.view().port())
        sizes = [segment.n_rows for segment in on_disk(tmp_path).segments]
        assert sum(sizes) == start + 125
        assert all(left >= 2 * right for left, right in itertools.pairwise(sizes))
        assert len(names(tmp_path)) == len(sizes) + 2  # the manifest and the lock
    assert await answers(opened(tmp_path), ledger.view()) == await expected(ledger.view(), tmp_path)


async def test_many_deletions_are_written_without_their_rows_being_moved(tmp_path: Path) -> None:
    ledger = await saved(tmp_path)
    segments = on_disk(tmp_path).segments
    ledger.remove([f"c{i:05d}" for i in range(0, 2_000, 10)])
    await opened(tmp_path).catch_up(ledger.view().port())
    assert on_disk(tmp_path).segments == segments
    assert len(on_disk(tmp_path).deleted) == 200
    ledger.forget()
    view = ledger.view()
    assert await answers(opened(tmp_path), view) == await expected(ledger.view(), tmp_path)
    assert view.n_read == 1


async def test_when_a_fifth_is_deleted_the_rest_is_written_anew(tmp_path: Path) -> None:
    ledger = await saved(tmp_path)
    index = opened(tmp_path)
    ledger.remove([f"c{i:05d}" for i in range(0, 2_000, 4)])
    await index.catch_up(ledger.view().port())
    assert [segment.n_rows for segment in on_disk(tmp_path).segments] == [1_500]
    assert on_disk(tmp_path).deleted == ()
    assert await answers(index, ledger.view()) == await expected(ledger.view(), tmp_path)
    assert await answers(opened(tmp_path), ledger.view()) == await expected(ledger.view(), tmp_path)


async def test_a_view_from_before_a_rewrite_is_still_answered(tmp_path: Path) -> None:
    ledger, index = await saved(tmp_path), opened(tmp_path)
    old = ledger.view()
    before = await answers(index, old)
    ledger.remove([f"c{i:05d}" for i in range(0, 2_000, 4)])
    await index.catch_up(ledger.view().port())
    assert await answers(index, old) == before


async def test_a_space_that_shrinks_loses_its_files(tmp_path: Path) -> None:
    ledger, index = await saved(tmp_path), opened(tmp_path)
    ledger.remove([f"c{i:05d}" for i in range(40, 2_000)])
    await index.catch_up(ledger.view().port())
    assert names(tmp_path) == ["lock"]
    assert await answers(index, ledger.view()) == await expected(ledger.view(), tmp_path)


async def test_deletions_the_store_forgot_make_the_index_read_everything(tmp_path: Path) -> None:
    ledger = await saved(tmp_path)
    ledger.remove([f"c{i:05d}" for i in range(0, 2_000, 10)])
    ledger.forget()
    index, view = opened(tmp_path), ledger.view()
    assert await answers(index, view) == await expected(ledger.view(), tmp_path)
    assert view.n_read == 1_801  # the last known one to compare, then all
    await index.catch_up(view.port())
    assert on_disk(tmp_path).n_rows == 1_800


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[20_000] ^= 1
    path.write_bytes(content)


def fill_with_noise(path: Path) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(path.stat().st_size))


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [truncate, flip_a_bit, fill_with_noise, empty, Path.unlink])
async def test_a_damaged_segment_is_ignored_and_replaced(tmp_path: Path, harm: object) -> None:
    ledger = await saved(tmp_path)
    assert callable(harm)
    harm(tmp_path / on_disk(tmp_path).segments[0].name)
    assert SpaceFiles(tmp_path, "chunk").load(on_disk(tmp_path)) is None
    index = opened(tmp_path)
    assert await answers(index, ledger.view()) == await expected(ledger.view(), tmp_path)
    await index.catch_up(ledger.view().port())
    view = ledger.view()
    assert await answers(opened(tmp_path), view) == await expected(ledger.view(), tmp_path)
    assert view.n_read == 1


@pytest.mark.parametrize("text", ["", "no manifest", "12345\n{}\n", "\ud800"])
async def test_a_damaged_manifest_is_ignored_and_replaced(tmp_path: Path, text: str) -> None:
    ledger = await saved(tmp_path)
    (tmp_path / "chunk.json").write_text(text, "utf-8", "surrogatepass")
    index = opened(tmp_path)
    assert await answers(index, ledger.view()) == await expected(ledger.view(), tmp_path)
    await index.catch_up(ledger.view().port())
    assert on_disk(tmp_path).n_rows == 2_000
    assert len(names(tmp_path)) == 3


async def test_files_lost_while_open_are_written_again(tmp_path: Path) -> None:
    ledger, index = await saved(tmp_path), opened(tmp_path)
    await answers(index, ledger.view())
    shutil.rmtree(tmp_path)
    await index.catch_up(ledger.view().port())
    assert on_disk(tmp_path).n_rows == 2_000
    assert await answers(opened(tmp_path), ledger.view()) == await expected(ledger.view(), tmp_path)


async def test_files_of_other_vectors_are_ignored_and_replaced(tmp_path: Path) -> None:
    await saved(tmp_path)
    other = Ledger()
    other.add(named(clustered(2_000, DIMENSION, seed=5), "other"))
    index = opened(tmp_path)
    assert await answers(index, other.view()) == await expected(other.view(), tmp_path)
    await index.catch_up(other.view().port())
    view = other.view()
    assert await answers(opened(tmp_path), view) == await expected(other.view(), tmp_path)
    assert view.n_read == 1


async def test_files_newer_than_the_view_are_left_alone(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.add(named(DATA[:1_000]))
    old = ledger.view()
    ledger.add(named(DATA[1_000:], "d"))
    await opened(tmp_path).catch_up(ledger.view().port())
    index = opened(tmp_path)
    assert await answers(index, old) == await expected(old, tmp_path)
    await index.catch_up(old.port())
    assert on_disk(tmp_path).revision == 2


async def test_deletions_newer_than_the_view_do_not_count(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.add(named(DATA))
    old = ledger.view()
    ledger.remove([i for results in await expected(old, tmp_path) for i in results])
    await opened(tmp_path).catch_up(ledger.view().port())
    assert await answers(opened(tmp_path), old) == await expected(old, tmp_path)


async def test_what_a_killed_writer_left_is_ignored_and_removed(tmp_path: Path) -> None:
    ledger = await saved(tmp_path, DATA[:1_500])
    for leftover in ("chunk-00000002.segment.unfinished", "chunk-00000003.segment", "chunk.json.unfinished"):
        (tmp_path / leftover).write_bytes(b"unfinished")
    index = opened(tmp_path)
    assert await answers(index, ledger.view()) == await expected(ledger.view(), tmp_path)
    ledger.add(named(DATA[1_500:], "d"))
    await index.catch_up(ledger.view().port())
    referenced = [segment.name for segment in on_disk(tmp_path).segments]
    assert names(tmp_path) == sorted(["chunk.json", "lock", *referenced])
    assert await answers(opened(tmp_path), ledger.view()) == await expected(ledger.view(), tmp_path)


async def test_nothing_is_written_while_another_process_writes(tmp_path: Path) -> None:
    ledger, index = Ledger(), opened(tmp_path)
    ledger.add(named(DATA))
    with try_lock_exclusively(tmp_path / "lock") as is_held:
        assert is_held
        await index.catch_up(ledger.view().port())
        assert names(tmp_path) == ["lock"]
        assert await answers(index, ledger.view()) == await expected(ledger.view(), tmp_path)
    await index.catch_up(ledger.view().port())
    assert on_disk(tmp_path).n_rows == 2_000


async def test_searches_go_on_while_the_index_is_written(tmp_path: Path) -> None:
    ledger, index = Ledger(), opened(tmp_path)
    ledger.add(named(DATA[:1_000]))
    first = ledger.view()
    ledger.add(named(DATA[1_000:], "d"))
    second = ledger.view()
    _, _, *results = await asyncio.gather(
        index.catch_up(first.port()),
        index.catch_up(second.port()),
        *(answers(index, view) for view in (first, second) * 5),
    )
    assert results == [await expected(view, tmp_path) for view in (first, second)] * 5
    await index.catch_up(second.port())
    assert on_disk(tmp_path).n_rows == 2_000


async def test_what_another_process_wrote_is_adopted(tmp_path: Path) -> None:
    ledger, writer, reader = Ledger(), opened(tmp_path), opened(tmp_path)
    ledger.add(named(DATA[:1_000]))
    await answers(reader, ledger.view())
    await writer.catch_up(ledger.view().port())
    ledger.add(named(DATA[1_000:], "d"))
    await writer.catch_up(ledger.view().port())
    before = on_disk(tmp_path)
    await reader.catch_up(ledger.view().port())
    assert on_disk(tmp_path) == before
    assert await answers(reader, ledger.view()) == await expected(ledger.view(), tmp_path)


@pytest.mark.parametrize("seed", range(10))
async def test_any_history_is_answered_like_a_search_of_everything(tmp_path: Path, seed: int) -> None:
    """At most 25 × 16 = 400 rows, the least number of candidates: here sketches lose nothing."""
    random = np.random.default_rng(seed)
    exact_below = int(random.choice([0, 60]))
    ledger, views = Ledger(), []
    index = opened(tmp_path, exact_below=exact_below, max_unsaved=10)
    for step in range(25):
        live = [row.owners[0] for row in ledger.view().live().values()]
        if live and random.random() < 0.4:
            ledger.remove(random.choice(live, size=min(len(live), int(random.integers(1, 17))), replace=False).tolist())
        else:
            first = int(random.integers(0, 1_900))
            ledger.add(named(DATA[first : first + int(random.integers(1, 17))], f"s{step:02d}-"))
        if random.random() < 0.05:
            ledger.forget()
        views.append(ledger.view())
        if random.random() < 0.3:
            index = opened(tmp_path, exact_below=exact_below, max_unsaved=10)
        if random.random() < 0.5:
            await index.catch_up(ledger.view().port())
        for view in (views[-1], views[int(random.integers(0, len(views)))]):
            if view.revision >= ledger.gone_since:
                assert await answers(index, view) == [[s.id for s in view.nearest(query, 10)] for query in QUERIES]
