"""Measures the in-process vector index: query time, recall, catching up, opening, memory.

    python benchmarks/vectors.py [--million]
    python benchmarks/vectors.py --sizes 100000 --dimensions 384 --json FILE

Vectors are clustered, ten dimensions to a cluster, from fixed seeds; queries are held out. Where ../shared/data exists,
its sentences are measured too, embedded by the local embedder. Each index is opened in a process of its own, whose
store is a mapped array: what is measured is the index alone, after the last 100 vectors were held back.
"""

import argparse
import asyncio
import json
import multiprocessing
import re
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from quipu.ports.store import ReadView, VectorBlock, VectorSpace
from quipu.providers.local import WordLlamaEmbedder
from quipu.vectors.local import LocalVectors

Vectors = npt.NDArray[np.float16]

DATA = Path(__file__).resolve().parents[1] / "../shared/data"
N_QUERIES, N_ADDED, KS = 100, 100, (10, 60)
ROWS_PER_BLOCK = 50_000
REPEATS = 5  # of opening and growing, of which the median counts
_NO_QUERIES = np.empty((0, 1), dtype=np.float32)
COLUMNS = (
    "vectors|build s|open ms|query k=10 wall|cpu ms|recall@10|query k=60 wall|cpu ms|recall@60"
    "|add 100 seen ms|written ms|private MB|mapped MB"
)


@dataclass(frozen=True, slots=True)
class View:
    """The vector methods of a ReadView over an array; row i belongs to the id "i"."""

    data: Vectors
    revision: int

    def port(self) -> ReadView:
        return cast(ReadView, self)

    async def vectors(self, space: VectorSpace, after: int = -1, *, since: int | None = None) -> VectorBlock:
        data = self.data[after + 1 :] if space is VectorSpace.CHUNK else self.data[:0]
        rows = np.arange(after + 1, after + 1 + len(data))
        return VectorBlock(rows=rows, vectors=data, deleted=np.empty(0, dtype=np.int64))

    async def allowed_numbers(self, space: VectorSpace) -> None:
        return None

    async def vector_owners(self, space: VectorSpace, rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
        return {row: (str(row),) for row in rows}


def clustered(n: int, dimension: int) -> Iterator[Vectors]:
    """Yield `n` unit vectors and then the queries, in blocks."""
    shape = np.random.default_rng(7)
    centres, spread = shape.standard_normal((200, dimension)), shape.standard_normal((10, dimension))
    for start in range(0, n + N_QUERIES, ROWS_PER_BLOCK):
        random = np.random.default_rng(start)
        size = min(ROWS_PER_BLOCK, n + N_QUERIES - start)
        vectors = centres[random.integers(0, 200, size)] + random.standard_normal((size, 10)) @ spread
        vectors += 0.1 * random.standard_normal((size, dimension))
        yield (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)


def sentences() -> Iterator[Vectors]:
    """Yield the vectors of the development corpora's sentences, then of questions about them."""
    texts = [json.loads(line)["text"] for path in sorted(DATA.glob("*/corpus.jsonl")) for line in _lines(path)]
    found = sorted({one for text in texts for one in re.split(r"(?<=[.!?])\s+", text) if len(one) > 25})
    asked = [json.loads(line)["question"] for path in sorted(DATA.glob("*/queries.jsonl")) for line in _lines(path)]
    step = len(asked) // N_QUERIES
    yield asyncio.run(WordLlamaEmbedder().embed([*found, *asked[::step][:N_QUERIES]])).astype(np.float16)


def nearest(data: Vectors, queries: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Return the rows nearest to each query by comparing it with every row, [queries, max(KS)]."""
    best_rows = np.empty((len(queries), 0), dtype=np.int64)
    best = np.empty((len(queries), 0), dtype=np.float32)
    for start in range(0, len(data), ROWS_PER_BLOCK):
        scores = queries @ data[start : start + ROWS_PER_BLOCK].astype(np.float32).T
        rows = np.broadcast_to(np.arange(start, start + scores.shape[1]), scores.shape)
        best, best_rows = np.hstack([best, scores]), np.hstack([best_rows, rows])
        order = np.argsort(-best, axis=1)[:, : max(KS)]
        best, best_rows = np.take_along_axis(best, order, axis=1), np.take_along_axis(best_rows, order, axis=1)
    return best_rows


async def build(folder: Path) -> float:
    """Write the index of all but the held-back vectors; return seconds."""
    data = np.load(folder / "vectors.npy", mmap_mode="r")
    view = View(data[: -N_QUERIES - N_ADDED], 1)
    return await _timed(lambda: LocalVectors(folder / "index").catch_up(view.port())) / 1_000


async def measure(folder: Path) -> list[float]:
    """Return the figures of one index in the order of the columns, from `open ms` on."""
    data, truth = np.load(folder / "vectors.npy", mmap_mode="r"), np.load(folder / "truth.npy")
    queries = data[-N_QUERIES:].astype(np.float32)
    view, grown = View(data[: -N_QUERIES - N_ADDED], 1), View(data[:-N_QUERIES], 2)
    before, index = _memory_mb(), LocalVectors(folder / "index")
    await index.nearest(view.port(), VectorSpace.CHUNK, _NO_QUERIES, k=10)
    figures = [median([await _opening_ms(folder, view) for _ in range(REPEATS)])]
    for k in KS:
        walls, cpus, n_hits = [], [], 0
        for query, expected in zip(queries, truth, strict=True):
            cpu = time.process_time()
            start = time.perf_counter()
            (found,) = await index.nearest(view.port(), VectorSpace.CHUNK, query[None], k=k)
            walls.append((time.perf_counter() - start) * 1_000)
            cpus.append((time.process_time() - cpu) * 1_000)
            n_hits += len({int(one.id) for one in found} & set(expected[:k].tolist()))
        figures += [median(walls), median(cpus), n_hits / (k * len(queries))]
    memory = _memory_mb()
    growing = [await _growing_ms(folder, view, grown) for _ in range(REPEATS)]
    figures += [median(each) for each in zip(*growing, strict=True)]
    return [*figures, *(after - earlier for earlier, after in zip(before, memory, strict=True))]


async def _opening_ms(folder: Path, view: View) -> float:
    index = LocalVectors(folder / "index")
    return await _timed(lambda: index.nearest(view.port(), VectorSpace.CHUNK, _NO_QUERIES, k=10))


async def _growing_ms(folder: Path, view: View, grown: View) -> tuple[float, float]:
    """Return the time until the added vectors are searched, and that until they are on disk; in a copy of the index."""
    copied = folder / "copy"
    await asyncio.to_thread(shutil.copytree, folder / "index", copied)
    index = LocalVectors(copied, max_unsaved=0)
    await index.nearest(view.port(), VectorSpace.CHUNK, _NO_QUERIES, k=10)
    seen_ms = await _timed(lambda: index.nearest(grown.port(), VectorSpace.CHUNK, _NO_QUERIES, k=10))
    written_ms = await _timed(lambda: index.catch_up(grown.port()))
    await asyncio.to_thread(shutil.rmtree, copied)
    return seen_ms, written_ms


def report(name: str, blocks: Iterator[Vectors]) -> list[float]:
    """Build and measure one index, print its row, and return the figures in the order of the columns."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _save(folder / "vectors.npy", blocks)
        data = np.load(folder / "vectors.npy", mmap_mode="r")
        np.save(folder / "truth.npy", nearest(data[: -N_QUERIES - N_ADDED], data[-N_QUERIES:].astype(np.float32)))
        (folder / "index").mkdir()  # stays empty where search is exact
        build_s = _in_own_process(_run_build, folder)
        figures = [build_s, *_in_own_process(_run_measure, folder)]
    shown = (f"{figure:.4f}" if i in (4, 7) else f"{figure:.2f}" for i, figure in enumerate(figures))
    print("|".join([name, *shown]), flush=True)
    return figures


def main() -> None:
    """Print a table of all sizes."""
    options = _options()
    sizes = options.sizes or ((10_000, 100_000, 1_000_000) if options.million else (10_000, 100_000))
    print(COLUMNS)
    found = []
    for n in sizes:
        for dimension in options.dimensions:
            figures = report(f"{n:,} × {dimension}", clustered(n + N_ADDED, dimension))
            found.append({"n": n, "dimension": dimension, "figures": figures})
    if DATA.exists() and not options.sizes:
        report("sentences × 256", sentences())
    if options.json:
        options.json.write_text(json.dumps(found), "utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the in-process vector index.")
    parser.add_argument("--million", action="store_true", help="also measure 1,000,000 vectors (needs 2 GB of disk)")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="these numbers of vectors, and no sentences")
    parser.add_argument("--dimensions", type=int, nargs="+", default=[256, 384], metavar="D", help="default: 256 384")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    return parser.parse_args()


def _run_build(folder: Path) -> float:
    return asyncio.run(build(folder))


def _run_measure(folder: Path) -> list[float]:
    return asyncio.run(measure(folder))


def _in_own_process(work: Callable[[Path], Any], folder: Path) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, [folder])


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await work()
    return (time.perf_counter() - start) * 1_000


def _save(path: Path, blocks: Iterator[Vectors]) -> None:
    """Write blocks of vectors as one array, holding one block at a time."""
    raw = path.with_suffix(".raw")
    n, dimension = 0, 0
    with raw.open("wb") as file:
        for block in blocks:
            file.write(block.tobytes())
            n, dimension = n + len(block), block.shape[1]
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(n, dimension))
    source = np.memmap(raw, dtype=np.float16, mode="r", shape=(n, dimension))
    for start in range(0, n, ROWS_PER_BLOCK):
        mapped[start : start + ROWS_PER_BLOCK] = source[start : start + ROWS_PER_BLOCK]
    raw.unlink()


def _memory_mb() -> tuple[float, float]:
    """Return this process's private and mapped resident memory, zeros where the system does not say."""
    status = Path("/proc/self/status")
    fields = dict(line.split(":", 1) for line in _lines(status)) if status.exists() else {}
    anonymous, mapped = (int(fields.get(name, "0 kB").split()[0]) / 1_024 for name in ("RssAnon", "RssFile"))
    return anonymous, mapped


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


if __name__ == "__main__":
    main()
