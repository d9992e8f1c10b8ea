"""Measure how entities are clustered into aggregates: similarity, balance, time, and the effect of one more entity.

    python benchmarks/hierarchy.py [--data DIR] [--set musique_train100] [--sizes 1000 4000 10000]

The entities come from a recorded extraction. Each is embedded with its first statements, by the embedder that needs no
download. If scikit-learn (k-means, Gaussian mixtures) and umap-learn are installed, they are measured too. `inside` is
the mean cosine between a member and the mean of its cluster, `pairs` the mean cosine of two members of a cluster.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quipu.algo.vector_clusters import CLUSTER_SIZE, gaussian_mixture, nearest_centres, to_grid
from quipu.derive.aggregation import Aggregation, EntityGraph, MentionCounts, WeightedRelations
from quipu.model.cluster import Cluster, Hierarchy, Partition
from quipu.providers.local import WordLlamaEmbedder
from quipu.text.names import entity_key

Ints = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float16]

DATA = Path(os.environ.get("QUIPU_DATA") or Path(__file__).resolve().parents[1] / "../shared/data")
MAX_STATEMENTS = 6
N_ADDED = 60  # entities, one at a time
MAX_UMAP = 4_000


def graph_of(n: int, sources: Ints, targets: Ints) -> EntityGraph:
    """Return a graph of n entities with clustered vectors [n, 256]; relations are pairs of numbers from 1."""
    chance = np.random.default_rng(6)
    places = chance.normal(size=(n // 15 + 1, 256)).astype(np.float32)
    vectors = places[chance.integers(0, len(places), n)] + 0.8 * chance.normal(size=(n, 256)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = np.minimum(sources, targets) - 1, np.maximum(sources, targets) - 1
    degrees = np.bincount(np.concatenate([first, second]), minlength=n)
    mentions = MentionCounts(
        entities=np.repeat(np.arange(n), 4),
        chunks=chance.integers(0, n, 4 * n),
        counts=np.ones(4 * n, dtype=np.int64),
        ids=tuple(f"c{i:07}" for i in range(n)),
    )
    return EntityGraph(
        revision=1,
        keys=tuple(f"e{i:07}" for i in range(n)),
        vectors=vectors.astype(np.float16),
        degrees=degrees.astype(np.int64),
        relations=WeightedRelations(first=first, second=second, weights=np.full(len(first), 1_000)),
        mentions=mentions,
    )


def aggregate_graph(graph: EntityGraph) -> tuple[Aggregation, int]:
    """Return the aggregation of a graph with all arrays computed, and the number of related pairs of aggregates."""
    aggregation = Aggregation(graph)
    _ = aggregation.top_entities, aggregation.chunks, aggregation.relations
    return aggregation, sum(1 for _ in aggregation.inter_cluster_relations())


def partition_of(aggregation: Aggregation, keys: Sequence[str]) -> Partition:
    """Return the clusters of an aggregation as a partition for the store; `keys` are the entity keys."""
    parents, n = aggregation.layers.parents.tolist(), aggregation.n_entities
    clusters = [
        Cluster(
            id=aggregation.ids[node],
            hierarchy=Hierarchy.AGGREGATES,
            level=int(aggregation.layers.levels[node]),
            parent=aggregation.ids[parents[node]] if parents[node] >= 0 else "",
            members=tuple(keys[child] for child in aggregation.children[node] if child < n),
        )
        for node in aggregation.aggregates
    ]
    return Partition(hierarchy=Hierarchy.AGGREGATES, clusters=clusters, revision=0)


async def entities_of(folder: Path) -> tuple[list[str], Vectors]:
    """Return the keys and vectors of the entities in the recorded extraction of a data set."""
    name_and_statements: dict[str, tuple[str, list[str]]] = {}
    for line in (folder / "extraction.jsonl").read_text("utf-8").splitlines():
        record: Mapping[str, Any] = json.loads(line)
        for triple in (triple for triple in record["triples"] if len(triple) == 3):
            for name in (triple[0], triple[2]):
                name_and_statements.setdefault(entity_key(name), (name, []))
            name_and_statements[entity_key(triple[0])][1].append(" ".join(triple))
        for name in record["entities"]:
            name_and_statements.setdefault(entity_key(name), (name, []))
    keys = sorted(key for key in name_and_statements if key)
    texts = [
        f"{name_and_statements[key][0]}\n{'; '.join(name_and_statements[key][1][:MAX_STATEMENTS])}" for key in keys
    ]
    return keys, (await WordLlamaEmbedder().embed(texts)).astype(np.float16)


def clusterings(keys: Sequence[str], vectors: Vectors) -> Iterator[tuple[str, Callable[[], Ints]]]:
    """Yield each installed clustering method, with a function that runs it."""
    grid, n_groups = to_grid(vectors), len(keys) // CLUSTER_SIZE
    yield "quipu, nearest centres", lambda: nearest_centres(keys, grid, 1)
    if find_spec("sklearn") is None:
        return
    unit = grid.astype(np.float64) / 4_000
    cluster, mixture = import_module("sklearn.cluster"), import_module("sklearn.mixture")
    yield "scikit-learn, k-means++", lambda: cluster.KMeans(n_groups, n_init=1, random_state=0).fit_predict(unit)
    for kind in ("spherical", "diag"):
        fit = mixture.GaussianMixture(n_groups, covariance_type=kind, random_state=0).fit_predict
        yield f"scikit-learn, Gaussian mixture, {kind}", lambda fit=fit: fit(unit)  # type: ignore[misc]
    if len(keys) <= 1_000:
        yield "quipu, gaussian_mixture with BIC", lambda: gaussian_mixture(keys, grid, 1)
    if find_spec("umap") is not None and len(keys) <= MAX_UMAP:
        flatten = import_module("umap").UMAP(n_neighbors=15, n_components=2, metric="cosine").fit_transform
        full = mixture.GaussianMixture(n_groups, random_state=0).fit_predict
        yield "LeanRAG: UMAP to 2, Gaussian mixture", lambda: full(flatten(unit))


def describe_clusters(vectors: Vectors, groups: Ints) -> str:
    """Return the similarity of the members of clusters, and the sizes of clusters."""
    unit = to_grid(vectors).astype(np.float64) / 4_000
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    sums = np.zeros((len(sizes), unit.shape[1]))
    np.add.at(sums, group, unit)
    norms = np.linalg.norm(sums, axis=1)
    inside = float((unit * (sums / norms[:, None])[group]).sum(axis=1).mean())
    several = sizes > 1
    pairs = (norms[several] ** 2 - sizes[several]) / (sizes[several] * (sizes[several] - 1))
    middle, large = np.percentile(sizes, [50, 90])
    spread = f"{len(sizes):>5} groups, median {middle:.0f}, 90 % {large:.0f}, most {sizes.max()}"
    return f"inside {inside:.3f}  pairs {np.average(pairs, weights=sizes[several]):.3f}  {spread}"


def describe_changes(keys: Sequence[str], vectors: Vectors, n: int) -> str:
    """Return how many aggregates of a hierarchy change when one entity is added."""
    order = np.random.default_rng(1).permutation(len(keys))
    n_added = min(N_ADDED, len(keys) - n)
    before = _ids(keys, vectors, np.sort(order[:n]))
    counts = [
        len(_ids(keys, vectors, np.sort(np.append(order[:n], added))) - before) for added in order[n : n + n_added]
    ]
    return (
        f"one more entity changes {np.mean(counts):.1f} of {len(before)} aggregates, median {np.median(counts):.0f}, "
        f"90 % {np.percentile(counts, 90):.0f}, most {max(counts)}; parents included"
    )


def _ids(keys: Sequence[str], vectors: Vectors, rows: Ints) -> set[str]:
    nothing = np.empty(0, dtype=np.int64)
    graph = EntityGraph(
        revision=1,
        keys=tuple(keys[row] for row in rows.tolist()),
        vectors=vectors[rows],
        degrees=np.zeros(len(rows), dtype=np.int64),
        relations=WeightedRelations(first=nothing, second=nothing, weights=nothing),
        mentions=MentionCounts(entities=nothing, chunks=nothing, counts=nothing, ids=()),
    )
    aggregation = Aggregation(graph)
    return {aggregation.ids[node] for node in aggregation.aggregates}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets (default: QUIPU_DATA)")
    parser.add_argument("--set", default="musique_train100", help="one with a recorded extraction")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 4_000, 10_000])
    options = parser.parse_args()
    if not (options.data / options.set / "extraction.jsonl").is_file():
        print(f"{options.set} with its extraction.jsonl is not in the folder of data sets: left out.")
        return
    keys, vectors = asyncio.run(entities_of(options.data / options.set))
    print(f"{options.set}: {len(keys):,} entities")
    for n in [size for size in options.sizes if size < len(keys)]:
        rows = np.sort(np.random.default_rng(0).choice(len(keys), n, replace=False))
        sample = [keys[row] for row in rows.tolist()]
        print(f"\n{n:,} of them")
        for method, run in clusterings(sample, vectors[rows]):
            start, cpu = time.perf_counter(), time.process_time()
            groups = run()
            took = f"{time.perf_counter() - start:>7.2f} s, cpu {time.process_time() - cpu:>7.2f} s"
            print(f"  {method:<40}{took}  {describe_clusters(vectors[rows], groups)}", flush=True)
        print(f"  {describe_changes(keys, vectors, n)}", flush=True)


if __name__ == "__main__":
    main()
