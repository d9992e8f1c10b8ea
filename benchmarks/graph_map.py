"""Measures the map of a graph of 10⁵ entities: its layout, each level, its transfer, and the export.

    python benchmarks/graph_map.py [--entities N]

The graph is random, from a fixed seed: groups of about 40 entities, two thirds of the relations inside of groups, with
a power law of who is related. A figure is CPU time of this process; the first map includes the communities and the
layout. Bytes are those of the binary layout, and after gzip.
"""

import argparse
import asyncio
import gzip
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

import quipu
from quipu.algo.edge_list import EdgeList
from quipu.algo.graph_layout import lay_out
from quipu.engine import Quipu
from quipu.engine.graph_map import MAX_ON_MAP, MapLevel, MapQuery
from quipu.server.graph import map_bytes

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that it runs as a file, too

from benchmarks.graph import World, open_store

_RELATIONS_PER_ENTITY = 4
_GROUP = 40


def planted_world(n: int, folder: Path) -> World:
    """Return a graph of groups, in which some entities of each group have most of its relations."""
    chance = np.random.default_rng(0)
    group = np.sort(chance.integers(0, max(n // _GROUP, 1), n))
    starts, ends = np.searchsorted(group, group), np.searchsorted(group, group, side="right")
    first = chance.integers(0, n, _RELATIONS_PER_ENTITY * n)
    inside = starts[first] + (chance.random(len(first)) ** 2 * (ends - starts)[first]).astype(np.int64)
    anywhere = (chance.random(len(first)) ** 2 * n).astype(np.int64)
    second = np.where(chance.random(len(first)) < 2 / 3, inside, anywhere)
    numbers = 1 + chance.permutation(n)
    ends_of_pairs = np.stack([numbers[first], numbers[second]], axis=1)[first != second]
    pairs = np.unique(np.sort(ends_of_pairs, axis=1), axis=0)
    return World(n, pairs[:, 0], pairs[:, 1], folder)


@asynccontextmanager
async def open_planted(n: int) -> AsyncIterator[Quipu]:
    """Open an index of such a graph."""
    with tempfile.TemporaryDirectory() as folder:
        world = planted_world(n, Path(folder))
        async with open_store(world):
            pass
        index = await asyncio.to_thread(lambda: next(Path(folder).iterdir()))
        async with quipu.open(index) as kb:
            yield kb


async def measure(n: int) -> None:
    """Print all figures."""
    async with open_planted(n) as kb:
        hub = (await kb.entities(k=1)).entities[0]
        start = time.process_time()
        whole = await kb.graph_map()
        print(f"{whole.n_entities:,} entities, {whole.n_relations:,} relations, {len(whole.communities):,} communities")
        _show("first map, with communities and layout", start)
        _layout(kb)
        for query in (
            MapQuery(),
            MapQuery(level=MapLevel.MIDDLE),
            MapQuery(level=MapLevel.MIDDLE, box=_middle_ninth(whole.bounds)),
            MapQuery(level=MapLevel.NEAR, names=[hub.name], max_nodes=200),
        ):
            start = time.process_time()
            drawn = await kb.graph_map(query)
            content = map_bytes(drawn)
            sizes = f"{len(drawn.ids):,} nodes, {len(drawn.edges['weight']):,} edges"
            assert len(drawn.ids) <= MAX_ON_MAP[query.level][0]
            assert len(drawn.edges["weight"]) <= MAX_ON_MAP[query.level][1]
            packed = len(gzip.compress(content, 1))
            name = f"{query.level}{', a ninth' if query.box else ''}: {sizes}"
            _show(name, start, f"{len(content):,} bytes, {packed:,} after gzip")
        for name in ("graphml", "json"):  # the texts of this index are empty, so a page would have no quotes
            start, n_bytes, largest = time.process_time(), 0, 0
            async for piece in kb.export_graph(name):
                n_bytes, largest = n_bytes + len(piece), max(largest, len(piece))
            _show(f"export as {name}", start, f"{n_bytes:,} bytes, the largest piece {largest:,}")


def _layout(kb: Quipu) -> None:
    """Print the cost of the layout alone."""
    graph = kb._mapped
    assert graph is not None
    sources, targets, weights = graph.ranked.relations
    edges = EdgeList(len(graph.keys), sources, targets, weights.astype(np.float64))
    start = time.process_time()
    layout = lay_out(edges, graph.tree)
    _show("layout alone", start)
    pairs = np.random.default_rng(1).integers(0, edges.n, (2, 100_000))
    length: Callable[[np.ndarray, np.ndarray], float] = lambda one, other: float(  # noqa: E731
        np.hypot(*(layout.nodes[one] - layout.nodes[other]).T).mean()
    )
    print(f"  mean length of relations against random pairs: {length(sources, targets) / length(*pairs):.3f}")


def _middle_ninth(bounds: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    x0, y0, x1, y1 = bounds
    return (x0 + (x1 - x0) / 3, y0 + (y1 - y0) / 3, x1 - (x1 - x0) / 3, y1 - (y1 - y0) / 3)


def _show(name: str, start: float, note: str = "") -> None:
    print(f"  {name:<56}{time.process_time() - start:>8.3f} s CPU  {note}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=100_000)
    asyncio.run(measure(parser.parse_args().entities))


if __name__ == "__main__":
    main()
