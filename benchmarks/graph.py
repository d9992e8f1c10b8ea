"""Measures the graph: walks over it, opening its arrays, catching up after a document, a filter.

    python benchmarks/graph.py [--full] [--json FILE]

The graph is random, from a fixed seed: of the two ends of a relation one is drawn by a power law, so that some entities
have thousands. At 10⁵ entities and 4·10⁵ relations, with --full at 10⁶ and 4·10⁶ too. The store is written row by
row, as commits would, but for full text; the document that is then added goes through a commit. A figure is the median
of `REPEATS` runs, by the clock and of the process's own time, which tells more where others compute beside it.
networkx, igraph and scikit-network are measured in the same run where they are installed. As they come, networkx stops
when ranks change by less than 1e-6 times the number of entities, scikit-network after ten steps: they are told to go on
until the error is as small as ours. What is in the note is the sum of absolute errors that was found.

To measure more, write a function that yields `Figure`s of a `World` and name it in CASES.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Table

from quipu.algo.edge_list import EdgeList, edge_list, modularity
from quipu.algo.graph_communities import find_communities
from quipu.algo.lca import Forest
from quipu.algo.pagerank import TOLERANCE, GraphBlock, WeightedGraph, personalised_pagerank
from quipu.algo.relation_paths import PathGraph, best_paths, pair_codes
from quipu.algo.shortest_paths import ShortestPathSearch
from quipu.algo.sparse_matrix import SparseMatrix, sparse_matrix
from quipu.model.delta import Delta
from quipu.model.query import Filter
from quipu.ports.topology import EdgeWeight, Floats, Ints
from quipu.retrieve.lca import find_tree_paths
from quipu.stores.relational import schema as s
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.facts import document, entity, passage, relation
from quipu.topology import LocalTopologyIndex

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that it runs as a file, too

from benchmarks.hierarchy import aggregate_graph, graph_of, partition_of

T = TypeVar("T")

SIZES = ((100_000, 400_000), (1_000_000, 4_000_000))
REPEATS = 5
N_SEEDS = 21  # a name and twenty near entities, as `ppr` starts from
DAMPINGS = (0.5, 0.85)
CHUNKS_PER_DOCUMENT = 10
ROWS_PER_INSERT = 50_000
CASE_WIDTH, WHO_WIDTH = 48, 20  # as they are printed
N_NEW = 4  # entities of a document that is added before communities are found again


@dataclass(frozen=True, slots=True)
class Taken:
    """Milliseconds by the clock, and of the process's own time."""

    ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, of whom, how long it took and how much of the processor; `note` tells what else to know."""

    case: str
    who: str
    took: Taken
    note: str = ""


@dataclass(frozen=True)
class World:
    """A random graph: relations as pairs of entity numbers, each stated once, by the chunk at its place."""

    n_entities: int
    sources: Ints
    targets: Ints
    folder: Path

    @property
    def n_chunks(self) -> int:
        return self.n_entities

    @property
    def n_relations(self) -> int:
        return len(self.sources)

    @cached_property
    def stated_in(self) -> Ints:
        """The chunk that states each relation, [n_relations]; numbers begin at 1, as in a store."""
        return 1 + np.random.default_rng(1).integers(0, self.n_chunks, self.n_relations)

    @cached_property
    def matrix(self) -> SparseMatrix:
        """The relations from both sides."""
        rows, columns = np.concatenate([self.sources, self.targets]), np.concatenate([self.targets, self.sources])
        return sparse_matrix(rows, columns, None, (self.n_entities + 1, self.n_entities + 1))

    @cached_property
    def sparse_reset(self) -> Floats:
        """A reset at a few entities."""
        reset = np.zeros(self.n_entities + 1)
        reset[1 + np.random.default_rng(2).choice(self.n_entities, N_SEEDS, replace=False)] = 1 / N_SEEDS
        return reset

    @cached_property
    def dense_reset(self) -> Floats:
        """A reset at every entity, as that of walks that start at every passage."""
        reset: Floats = np.random.default_rng(3).random(self.n_entities + 1)
        reset /= reset.sum()
        return reset


def world(n_entities: int, n_relations: int, folder: Path) -> World:
    """Return a random graph; pairs drawn twice count once, so that there are a few less."""
    chance = np.random.default_rng(0)
    numbers = 1 + chance.permutation(n_entities)
    by_rank = np.minimum((n_entities * chance.random(n_relations) ** 3).astype(np.int64), n_entities - 1)
    one, other = numbers[by_rank], numbers[chance.integers(0, n_entities, n_relations)]
    pairs = np.unique(np.sort(np.stack([one, other], axis=1)[one != other], axis=1), axis=0)
    return World(n_entities, pairs[:, 0], pairs[:, 1], folder)


async def walks(world: World) -> AsyncIterator[Figure]:
    """Personalised PageRank over relations."""
    for damping in DAMPINGS:
        for kind, reset in (("seeds everywhere", world.dense_reset), ("a few seeds", world.sparse_reset)):
            case = f"ppr, damping {damping}, {kind}"
            exact = personalised_pagerank(_walk(world), reset, damping=damping, tolerance=1e-13)
            took = _median(lambda: personalised_pagerank(_walk(world), reset, damping=damping))  # noqa: B023
            yield Figure(
                case, "quipu", took, _error(personalised_pagerank(_walk(world), reset, damping=damping), exact)
            )
        for who, run in _peers(world, damping):
            took, ranks = _once(run)
            yield Figure(case, who, took, _error(ranks, exact))


async def topologies(world: World) -> AsyncIterator[Figure]:
    """Opening, following and filtering the arrays of a store."""
    async with open_store(world) as store:
        folder = world.folder / "topology"
        took = await _taken(lambda: _catch_up(LocalTopologyIndex(folder), store))
        n_bytes = sum(path.stat().st_size for path in folder.iterdir())
        yield Figure("topology, read from the store and written", "quipu", took, f"{n_bytes / 1e6:,.0f} MB")
        opened = [await _taken(lambda: _opened(LocalTopologyIndex(folder), store)) for _ in range(REPEATS)]
        yield Figure("topology, opened", "quipu", _middle(opened))
        topologies = LocalTopologyIndex(folder)
        await _opened(topologies, store)
        yield Figure(
            "ppr, damping 0.85, the first after opening", "quipu", await _taken(lambda: _asked(topologies, store))
        )
        commits, followed, questions = [], [], []
        for n in range(REPEATS):
            page = _page(world, n)
            commits.append(await _taken(lambda: store.commit(Delta(publish=[page]))))  # noqa: B023
            followed.append(await _taken(lambda: _opened(topologies, store)))
            questions.append(await _taken(lambda: _asked(topologies, store)))
        yield Figure("a document is committed", "quipu", _middle(commits), "5 entities, 4 relations")
        yield Figure("topology, caught up after it", "quipu", _middle(followed))
        yield Figure("ppr, damping 0.85, after that", "quipu", _middle(questions))
        some = Filter(documents=tuple(f"d{n}" for n in range(0, world.n_chunks // CHUNKS_PER_DOCUMENT, 10)))
        took = await _taken(lambda: _opened(topologies, store, some))
        yield Figure("topology, a tenth of the documents allowed", "quipu", took, "opening the view included")


async def communities(world: World) -> AsyncIterator[Figure]:
    """Communities, and how many stay after one more document; on the random graph, and on one that has groups."""
    random = edge_list(world.n_entities + 1, world.sources, world.targets, np.ones(world.n_relations))
    for kind, graph in (("random", random), ("with groups", _planted(world.n_entities, world.n_relations))):
        marks = np.random.default_rng(5).integers(0, 1 << 32, graph.n + N_NEW, dtype=np.uint64)
        took, found = _once(lambda: find_communities(graph, marks[: graph.n]))  # noqa: B023
        labels = np.zeros(graph.n, dtype=np.int64)
        for number, community in enumerate(found):
            if community.level == 0:
                labels[community.nodes] = number
        before = {community.nodes.tobytes() for community in found}
        after = [find_communities(_with_document(graph, seed), marks) for seed in range(REPEATS)]
        shares = [sum(community.nodes.tobytes() in before for community in each) / len(before) for each in after]
        note = f"Q {modularity(graph, labels):.4f}, {len(found):,}, unchanged by a document {median(shares):.2%}"
        yield Figure(f"communities, {kind}", "quipu", took, note)
        if find_spec("graspologic_native"):
            took, labels = _once(lambda: _leiden(graph))  # noqa: B023
            yield Figure(f"level 0 alone, {kind}", "graspologic-native", took, f"Q {modularity(graph, labels):.4f}")


async def hierarchies(world: World) -> AsyncIterator[Figure]:
    """Aggregates over entities in groups of about fifteen, and the paths between ten of them."""
    graph = graph_of(world.n_entities, world.sources, world.targets)
    took, (aggregation, n_related) = _once(lambda: aggregate_graph(graph))
    n = len(aggregation.aggregates)
    yield Figure("hierarchy, shape and what is in it", "quipu", took, f"{n:,} aggregates, {n_related:,} pairs related")
    took = _median(lambda: Forest(aggregation.layers.parents))
    yield Figure("hierarchy, ancestors of all", "quipu", took)
    forest, first = Forest(aggregation.layers.parents), np.arange(45) * (world.n_entities // 45)
    yield Figure("hierarchy, 45 lowest common ancestors", "quipu", _median(lambda: forest.lca(first, first[::-1])))
    async with open_store(world) as store:
        await store.commit(Delta(partition=partition_of(aggregation, [f"e{n + 1}" for n in range(world.n_entities)])))
        questions = [await _taken(lambda: _walked(store, n)) for n in range(REPEATS)]  # noqa: B023
    yield Figure("lca, paths between ten entities in a store", "quipu", _middle(questions))


async def ways(world: World) -> AsyncIterator[Figure]:
    """Shortest ways between two entities, and the best paths of two links from many."""
    chance = np.random.default_rng(6)
    degrees = np.diff(world.matrix.starts).astype(np.float64)
    routes = ShortestPathSearch(world.matrix.neighbours, degrees)
    pairs = 1 + chance.integers(0, world.n_entities, (100, 2))
    took = _median(lambda: [routes.between(int(a), int(b)) for a, b in pairs])
    yield Figure("way between two entities, a hundred pairs", "quipu", took, f"{took.ms / len(pairs):.2f} ms each")
    n = world.n_entities + 1
    marked = np.unique(pair_codes(world.sources[:200], world.targets[:200], n))
    ground = PathGraph(
        relations=world.matrix,
        order=np.arange(n),
        is_answer=chance.random(n) < 0.2,
        key_relations=marked,
        key_weights=np.ones(len(marked), dtype=np.int64),
    )
    for kind, starts in (
        ("40 entities", 1 + chance.choice(world.n_entities, 40, replace=False)),
        ("the 200 best connected", np.argsort(-degrees, kind="stable")[:200]),
    ):
        worth = np.ones(len(starts))
        took = _median(lambda: best_paths(starts, worth, ground, n=30, max_edges=32))  # noqa: B023
        yield Figure(f"paths of two links from {kind}", "quipu", took)


CASES: tuple[Callable[[World], AsyncIterator[Figure]], ...] = (walks, ways, topologies, communities, hierarchies)


def _with_document(graph: EdgeList, seed: int) -> EdgeList:
    """Return the graph with new nodes, and links between them, some neighbours of one node, and two others."""
    chance = np.random.default_rng(1_000 + seed)
    node = chance.integers(0, graph.n)
    near = np.concatenate([graph.targets[graph.sources == node], graph.sources[graph.targets == node]])[:5]
    pool = np.concatenate([[node], near, chance.integers(0, graph.n, 2), np.arange(graph.n, graph.n + N_NEW)])
    first, second = chance.choice(pool, 4 * N_NEW), chance.choice(pool, 4 * N_NEW)
    ends = np.concatenate([graph.sources, first]), np.concatenate([graph.targets, second])
    return edge_list(graph.n + N_NEW, *ends, np.concatenate([graph.weights, np.ones(4 * N_NEW)]))


def _leiden(graph: EdgeList) -> Ints:
    """Return the labels of Leiden (graspologic-native), which an earlier version used, after three rounds."""
    ends = (map(str, side.tolist()) for side in (graph.sources, graph.targets))
    _, community_by_name = import_module("graspologic_native").leiden(
        edges=list(zip(*ends, graph.weights.tolist(), strict=True)),
        starting_communities=None,
        resolution=1.0,
        randomness=0.001,
        iterations=3,
        use_modularity=True,
        seed=20260521,
        trials=1,
    )
    labels = np.arange(graph.n) + len(community_by_name)
    labels[list(map(int, community_by_name))] = list(community_by_name.values())
    return labels


def _planted(n: int, n_links: int) -> EdgeList:
    """Return a graph of groups of about fifty, with every seventh link between any two nodes."""
    chance = np.random.default_rng(4)
    group = chance.integers(0, max(n // 50, 1), n)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(group.max() + 2))
    first = chance.integers(0, n, n_links)
    size = starts[group[first] + 1] - starts[group[first]]
    near = order[starts[group[first]] + (chance.random(n_links) * size).astype(np.int64)]
    second = np.where(chance.random(n_links) < 1 / 7, chance.integers(0, n, n_links), near)
    return edge_list(n, first, second, np.ones(n_links))


def _walk(world: World) -> WeightedGraph:
    return WeightedGraph(blocks=[GraphBlock(matrix=world.matrix)], n_entities=world.n_entities + 1)


def _error(ranks: Floats, exact: Floats) -> str:
    return f"error {np.abs(ranks - exact).sum():.0e}"


def _peers(world: World, damping: float) -> Iterator[tuple[str, Callable[[], Floats]]]:
    """Yield what other libraries do for the same graph and reset, where they are installed."""
    n, reset = world.n_entities + 1, world.sparse_reset
    pairs = np.stack([world.sources, world.targets], axis=1)
    change = TOLERANCE * (1 - damping) / damping  # of ranks in a step of power iteration: the error is no more then
    if find_spec("igraph"):
        graph, starts = import_module("igraph").Graph(n=n, edges=pairs), reset.tolist()
        options = {"damping": damping, "reset": starts, "directed": False}
        yield "igraph (PRPACK)", lambda: np.array(graph.personalized_pagerank(**options))
    if find_spec("networkx") and find_spec("scipy") and n < 500_000:
        networkx = import_module("networkx")
        other = networkx.Graph()
        other.add_nodes_from(range(n))
        other.add_edges_from(pairs.tolist())
        seeds = {int(i): float(reset[i]) for i in np.flatnonzero(reset)}
        kept = {"alpha": damping, "personalization": seeds, "tol": change / n, "max_iter": 1_000}
        yield "networkx", lambda: np.array(list(networkx.pagerank(other, **kept).values()))
    if find_spec("sknetwork"):
        matrix = import_module("scipy.sparse").csr_matrix(
            (np.ones(world.matrix.n_entries), world.matrix.columns, world.matrix.starts), shape=(n, n)
        )
        ranking = import_module("sknetwork.ranking").PageRank(damping, n_iter=1_000, tol=change)
        yield "scikit-network", lambda: ranking.fit_predict(matrix, weights=reset)


@asynccontextmanager
async def open_store(world: World) -> AsyncIterator[RelationalStore]:
    folder = Path(tempfile.mkdtemp(dir=world.folder))  # a store of its own for each case
    backend = SqliteBackend(folder / "index.sqlite", busy_timeout_s=30)
    store = RelationalStore(backend, lease_s=600)
    try:
        await store.prepare()
        await store.commit(Delta())
        _fill(backend, world)
        yield store
    finally:
        await store.close()


def _fill(backend: SqliteBackend, world: World) -> None:
    """Write the rows of all tables the graph is read from."""
    n_documents = -(-world.n_chunks // CHUNKS_PER_DOCUMENT)
    ends = np.concatenate([world.sources, world.targets])
    named_in = np.concatenate([world.stated_in, world.stated_in])
    appearances = np.unique(np.stack([named_in, ends], axis=1), axis=0)
    first = np.concatenate([[True], np.diff(appearances[:, 0]) != 0])
    ordinals = np.arange(len(appearances)) - np.maximum.accumulate(np.where(first, np.arange(len(appearances)), 0))
    rows: Mapping[Table, Iterator[dict[str, Any]]] = {
        s.document: ({"rid": n + 1, "id": f"d{n}"} for n in range(n_documents)),
        s.chunk: (
            {
                "rid": n + 1,
                "id": f"c{n}",
                "document": n // CHUNKS_PER_DOCUMENT + 1,
                "ordinal": n % CHUNKS_PER_DOCUMENT,
            }
            for n in range(world.n_chunks)
        ),
        s.entity: ({"rid": n, "key": f"e{n}", "name": f"e{n}"} for n in range(1, world.n_entities + 1)),
        s.name: ({"rid": n, "key": f"e{n}", "anchor": f"e{n}"} for n in range(1, world.n_entities + 1)),
        s.relation: (
            {"rid": n + 1, "source": int(a), "target": int(b), "keywords": "[]"}
            for n, (a, b) in enumerate(zip(world.sources, world.targets, strict=True))
        ),
        s.relation_mention: (
            {"chunk": int(chunk), "ordinal": n, "relation": n + 1, "weight": 1000}
            for n, chunk in enumerate(world.stated_in)
        ),
        s.entity_mention: (
            {"chunk": int(chunk), "ordinal": int(ordinal), "entity": int(number)}
            for (chunk, number), ordinal in zip(appearances, ordinals, strict=True)
        ),
        s.link: ({"name": int(number), "chunk": int(chunk), "n": 1} for chunk, number in appearances),
    }
    with backend.writing() as connection:
        for table, made in rows.items():
            blank = {c.name: _blank(c) for c in table.c if not c.nullable}
            while block := [{**blank, **row} for row, _ in zip(made, range(ROWS_PER_INSERT), strict=False)]:
                connection.execute(table.insert(), block)


def _blank(column: Any) -> object:
    return "" if column.type.python_type is str else 0


def _page(world: World, n: int) -> Any:
    chance = np.random.default_rng(n)
    names = [f"e{number}" for number in 1 + chance.integers(0, world.n_entities, 4)] + [f"new thing {n}"]
    related = [relation(*pair) for pair in pairwise(names)]
    return document(f"new{n}", passage(" and ".join(names), *map(entity, names), *related))


async def _catch_up(topologies: LocalTopologyIndex, store: RelationalStore) -> None:
    async with store.view() as view:
        await topologies.catch_up(view)


async def _opened(topologies: LocalTopologyIndex, store: RelationalStore, allowed: Filter | None = None) -> None:
    async with store.view(allowed) as view:
        await topologies.open(view)


async def _asked(topologies: LocalTopologyIndex, store: RelationalStore) -> None:
    async with store.view() as view:
        topology = await topologies.open(view)
    reset = np.zeros(topology.n_entities)
    reset[1 : 1 + N_SEEDS] = 1 / N_SEEDS
    personalised_pagerank(
        WeightedGraph(blocks=[GraphBlock(matrix=topology.relations(EdgeWeight.ONE))], n_entities=len(reset)),
        reset,
        damping=0.85,
    )


async def _walked(store: RelationalStore, turn: int) -> None:
    async with store.view() as view:
        paths = await find_tree_paths([f"e{turn + 1 + 1_000 * n}" for n in range(10)], view)
        await view.cluster_relations(sorted(paths.clusters))
        await view.cluster_reports(sorted(paths.clusters))


async def _taken(work: Callable[[], Awaitable[object]]) -> Taken:
    start, cpu = time.perf_counter(), time.process_time()
    await work()
    return Taken((time.perf_counter() - start) * 1e3, (time.process_time() - cpu) * 1e3)


def _once(work: Callable[[], T]) -> tuple[Taken, T]:
    start, cpu = time.perf_counter(), time.process_time()
    made = work()
    return Taken((time.perf_counter() - start) * 1e3, (time.process_time() - cpu) * 1e3), made


def _median(work: Callable[[], object], repeats: int = REPEATS) -> Taken:
    return _middle([_once(work)[0] for _ in range(repeats)])


def _middle(taken: Sequence[Taken]) -> Taken:
    return Taken(median(each.ms for each in taken), median(each.cpu_ms for each in taken))


async def _measure(full: bool) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for n_entities, n_relations in SIZES if full else SIZES[:1]:
        with tempfile.TemporaryDirectory() as folder:
            made = world(n_entities, n_relations, Path(folder))
            print(f"\n{made.n_entities:,} entities, {made.n_relations:,} relations")
            for case in CASES:
                async for figure in case(made):
                    took = f"{figure.took.ms:>10,.1f} ms, cpu {figure.took.cpu_ms:>8,.1f} ms"
                    print(f"  {figure.case:<{CASE_WIDTH}}{figure.who:<{WHO_WIDTH}}{took}  {figure.note}", flush=True)
                    rows.append({"n_entities": made.n_entities, "n_relations": made.n_relations, **asdict(figure)})
    return rows


def main() -> None:
    """Measure, print, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="also at 10⁶ entities and 4·10⁶ relations")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    given = parser.parse_args()
    rows = asyncio.run(_measure(given.full))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
