"""Measuring Quipu end to end, on twenty chunks; and what a meter counts."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.speed import ours, process, workload
from benchmarks.speed.ours import Bench, open_index
from benchmarks.speed.process import MARK, Given, Meter

N_CHUNKS = 20


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Twenty chunks in two documents, and an index that holds nothing yet."""
    bench = Bench(folder=tmp_path / "texts", index=tmp_path / "index", n_chunks=N_CHUNKS, n_questions=3)
    bench.index.mkdir()
    texts = workload.Texts()
    workload.write(bench.documents(), workload.CHUNKS_PER_DOCUMENT, texts)
    for n_chunks in (1, workload.CHUNKS_PER_DOCUMENT):
        workload.write(workload.addition_paths(bench.folder, workload.N_ADDED, n_chunks), n_chunks, texts)
    return bench


def measured(output: str) -> dict[str, dict[str, float]]:
    """Return the values that were reported, by step."""
    said = [json.loads(line.removeprefix(MARK)) for line in output.splitlines() if line.startswith(MARK)]
    return {one["step"]: one["values"] for one in said if "step" in one}


async def test_twenty_chunks_are_ingested_grown_asked_and_removed(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (ours.ingest, ours.grow, ours.ask, ours.remove):
        await step(bench)
    values = measured(capsys.readouterr().out)
    assert list(values) == ["ingest", "add1", "add10", "open", "ask", "again", "answer", "remove"]
    assert values["ingest"]["n_chunks"] == N_CHUNKS
    assert 100 < values["ingest"]["n_entities"] <= N_CHUNKS * workload.ENTITIES_PER_CHUNK
    assert values["ingest"]["n_relations"] > 100
    assert all(one["cpu_s"] > 0 for one in values.values())
    assert values["ingest"]["given_s"] > 0
    assert values["remove"]["is_same"] == 1.0


async def test_the_store_alone_makes_the_index_that_add_makes(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await ours.store(bench)
    assert measured(capsys.readouterr().out)["store"]["cpu_s"] > 0
    async with open_index(bench.index, Given()) as (kb, _):
        by_store = [line async for line in kb.dump()]
    shutil.rmtree(bench.index)
    bench.index.mkdir()
    async with open_index(bench.index, Given()) as (kb, _):
        await kb.add(*bench.documents(), root=bench.folder)
        assert by_store == [line async for line in kb.dump()]


async def test_what_is_left_after_a_removal_is_a_fresh_index_of_the_rest(bench: Bench, tmp_path: Path) -> None:
    first, second = bench.documents()
    async with open_index(bench.index, Given()) as (kb, _):
        await kb.add(first, second, root=tmp_path)
        await kb.remove(["texts/documents/00000000.txt"])
        left = [line async for line in kb.dump()]
    shutil.rmtree(bench.index)
    bench.index.mkdir()
    async with open_index(bench.index, Given()) as (kb, _):
        await kb.add(second, root=tmp_path)
        fresh = [line async for line in kb.dump()]
    assert left == fresh
    assert any('"kind":"relation"' in line for line in left)


async def test_chunks_are_the_windows_of_the_peer(bench: Bench) -> None:
    text = bench.documents()[0].read_text("utf-8")
    tokens = workload.tokens(text)
    async with open_index(bench.index, Given()) as (kb, _):
        await kb.add(bench.documents()[0])
        (document,) = await kb.documents()
        chunks = (await kb.document(document.id)).chunks
    starts = range(0, len(tokens), workload.STRIDE)
    assert [chunk.text for chunk in chunks] == ["".join(tokens[s : s + workload.WINDOW]).strip() for s in starts]


async def test_a_removal_that_changed_the_others_would_be_seen(bench: Bench) -> None:
    async with open_index(bench.index, Given()) as (kb, _):
        await kb.add(*bench.documents())
        ids = [document.id for document in await kb.documents()]
        before = await ours.facts_of_others(kb, frozenset(ids[:1]))
        assert await ours.facts_of_others(kb, frozenset(ids[1:])) != before
        await kb.remove(ids)
        assert await ours.facts_of_others(kb, frozenset(ids[:1])) != before


def test_what_was_given_is_taken_off_and_told() -> None:
    given = Given()
    meter = Meter(given)
    with meter.running(), given.clock():
        sum(range(2_000_000))
    assert given.cpu_s == meter.given_s > 0
    assert meter.cpu_s < meter.given_s


def test_bytes_handed_to_write_calls_and_memory_are_counted(tmp_path: Path) -> None:
    if not Path("/proc/self/io").exists():
        pytest.skip("this system does not count them")
    meter = Meter(Given())
    with meter.running():
        (tmp_path / "file").write_bytes(b"x" * 1_000_000)
    assert 1_000_000 <= meter.values()["handed_bytes"] < 1_100_000
    assert process.peak_memory()["peak_bytes"] > 10_000_000
    assert process.bytes_on_disk(tmp_path) == 1_000_000


def test_a_percentile_is_one_of_the_values() -> None:
    assert process.percentile([5.0, 1.0, 3.0], 0.5) == 3.0
    assert process.percentile([float(n) for n in range(100)], 0.95) == 95.0


def test_words_are_counted_by_what_stands_between_them() -> None:
    assert ours.WordTokenizer().count("") == 0
    assert ours.WordTokenizer().count("two words") == 2
    assert ours.WordTokenizer().count("two words\n\nand three more") == 5
