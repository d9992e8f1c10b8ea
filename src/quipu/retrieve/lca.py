"""lca: the entities nearest to a question, and the aggregates on the tree paths between them.

Source: Y. Zhang et al., "LeanRAG: Knowledge-Graph-Based Generation with Semantic Aggregation and Hierarchical
Retrieval" (2025), section 3.3.

1. Anchoring: the 10 entities nearest to the question are seeds; with `from_aggregates` also the 10 nearest aggregates.
2. LCA traversal: the tree paths between each two seeds, up to their lowest common ancestor among the aggregates.
3. Evidence: the seeds, the relations among them, the reports on the aggregates of the paths, the relations among these
   aggregates, and passages.

Quipu's own scores: an aggregate on a path gets the highest score of a seed below it, halved for each step up. A passage
gets the score of each seed it mentions, and for each aggregate on the paths a share of its score for each direct
member. Both are divided by the square root of the number of passages that mention the entity, so that frequent entities
do not decide.

Differences from the paper and its code:
- One subtree for all seeds in the paper, the path of each pair in the code → the path of each pair, because it shows
  what connects two seeds.
- Seeds are entities in the paper, aggregates in the code → entities; with `from_aggregates` both, because the paper
  does so.
- No minimum cosine → `min_similarity`, because a far entity is no evidence.
- Passages by the number of seeds in the code, of all retrieved entities in the paper, that they mention → by
  `lca_passages`: Quipu's own scores, times `DECAY` for each step up, or one of the two numbers, because frequent
  entities would decide. An aggregate counts for the passages of its direct members.
- A relation between aggregates needs more than τ relations between their members → more than `lca_crossings`, because
  the authors' code computes τ and does not use it.
- Relations among the nodes of each path → among all seeds, and among all aggregates of the paths, because two paths may
  be connected.
- A parent is found by its name → by its id, because an entity that is promoted unchanged would lose its ancestors.
- 5 passages → `chunk_top_k` passages, because one limit makes strategies comparable.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Literal

import numpy as np

from quipu.algo.lca import Forest
from quipu.model.cluster import Cluster, Hierarchy
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.ids import relation_id
from quipu.model.query import Options, Query, option
from quipu.ports.store import OccurrenceKind, ReadView, VectorSpace
from quipu.retrieve.steps.local_search import find_nearest_clusters
from quipu.retrieve.steps.passages import MAX_CHUNKS_PER_ENTITY
from quipu.retrieve.steps.seeds import Vector, embed, find_nearest, hits_by_cosine
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count

MAX_SEEDS = 10
DECAY = 0.5  # for each step from a seed up to an aggregate
_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class LcaOptions(Options):
    """The options of `lca`."""

    from_aggregates: bool = option(False, "Also use the aggregates nearest to the question as seeds.")
    lca_passages: Literal["scores", "seeds", "paths"] = option(
        "scores",
        "Order of passages: by scores, or by how many seeds, or seeds and aggregates on the paths, they mention.",
        faithful="paths",
    )
    lca_crossings: int = option(
        0, "Relations between members that a relation between aggregates must exceed (τ).", between=(0, 100_000)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePaths:
    """The aggregates on the tree paths between seeds, by id, and how far each is from the seeds below it.

    `steps[aggregate][seed]` is the number of layers from a seed up to an aggregate on its path: 1 for the parent of an
    entity. A seed that is an aggregate is on its own path, with 0 steps, even if it is the only seed.
    """

    clusters: Mapping[str, Cluster]
    steps: Mapping[str, Mapping[str, int]]


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the seeds, the aggregates that connect them, their relations, and the best passages."""
    vector = (await embed([query.text], tools.embedder))[query.text]
    k = min(query.top_k, MAX_SEEDS)
    seeds = await find_nearest(VectorSpace.ENTITY, vector, query=query, k=k, view=view, tools=tools)  # step 1
    options = query.options_of(LcaOptions)
    aggregates = await _find_aggregates(vector, k, query, view, tools) if options.from_aggregates else []
    score_by_seed = {seed.id: seed.score for seed in (*seeds, *aggregates)}
    paths = await find_tree_paths(list(score_by_seed), view)  # step 2
    aggregate_scores = {cluster: _aggregate_score(steps, score_by_seed) for cluster, steps in paths.steps.items()}
    available = {report.cluster for report in await view.cluster_reports(sorted(aggregate_scores))}
    reports = _rank_reports(paths, aggregate_scores, {seed.id for seed in aggregates})
    return Evidence(  # step 3
        chunks=await _rank_passages(seeds, paths, aggregate_scores, query, view),
        entities=hits_by_cosine(seeds),
        relations=await _rank_relations(seeds, aggregate_scores, options.lca_crossings, view),
        reports=tuple(hit for hit in reports if hit.id in available),
        seeds=tuple(
            Seed(text=query.text, kind="vector", matches=tuple(matches)) for matches in (seeds, aggregates) if matches
        ),
        notes=tuple(_notes(seeds, paths, n_unavailable=len(aggregate_scores) - len(available))),
    )


async def _find_aggregates(vector: Vector, k: int, query: Query, view: ReadView, tools: Tools) -> list[Scored]:
    """Return the k aggregates nearest to the question."""

    async def are_aggregates(ids: Sequence[str]) -> set[str]:
        return {cluster.id for cluster in await view.clusters(Hierarchy.AGGREGATES, ids, with_members=False)}

    nearest = await find_nearest_clusters(are_aggregates, vector, k, view, tools)
    return [scored for scored in nearest if scored.score >= query.min_similarity]


async def find_tree_paths(seeds: Sequence[str], view: ReadView) -> TreePaths:
    """Return the tree paths between each two seeds, which are entities or aggregates, through their LCA.

    Entities added after the hierarchy was built are on no path.
    """
    parent_by_id, clusters = await _read_ancestors(seeds, view)
    in_tree = [seed for seed in seeds if seed in parent_by_id or seed in clusters]
    nodes = list(dict.fromkeys([*in_tree, *sorted(clusters)]))
    number_by_node = {node: number for number, node in enumerate(nodes)}
    parents = [number_by_node.get(parent_by_id.get(node, ""), -1) for node in nodes]
    numbers = [number_by_node[seed] for seed in dict.fromkeys(seeds) if seed in number_by_node]
    pairs = np.array(list(combinations(numbers, 2)), dtype=np.int64).reshape(-1, 2)
    ancestors = Forest(np.array(parents, dtype=np.int64)).lca(pairs[:, 0], pairs[:, 1])
    steps: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for (first, second), ancestor in zip(pairs.tolist(), ancestors.tolist(), strict=True):
        for seed in (first, second) if ancestor >= 0 else ():
            for n_steps, number in enumerate(_path_up(seed, ancestor, parents)):
                if nodes[number] in clusters:
                    steps[nodes[number]][nodes[seed]] = n_steps
    for number in numbers:
        if nodes[number] in clusters:
            steps[nodes[number]][nodes[number]] = 0
    return TreePaths(clusters={node: clusters[node] for node in steps}, steps=steps)


async def _read_ancestors(seeds: Sequence[str], view: ReadView) -> tuple[dict[str, str], dict[str, Cluster]]:
    """Return the parent of each seed and of each of its ancestors, and these aggregates by id; one read per layer."""
    finest = await view.clusters(Hierarchy.AGGREGATES, entities=seeds)
    parent_by_id = {key: cluster.id for cluster in finest for key in cluster.members}
    cluster_by_id: dict[str, Cluster] = {}
    ids = set(parent_by_id.values()) | {seed for seed in seeds if seed not in parent_by_id}
    while ids:
        clusters = await view.clusters(Hierarchy.AGGREGATES, sorted(ids))
        cluster_by_id |= {cluster.id: cluster for cluster in clusters}
        parent_by_id |= {cluster.id: cluster.parent for cluster in clusters if cluster.parent}
        ids = {cluster.parent for cluster in clusters if cluster.parent} - cluster_by_id.keys()
    return parent_by_id, cluster_by_id


def _path_up(start: int, ancestor: int, parents: Sequence[int]) -> Iterator[int]:
    """Yield the nodes from `start` up to `ancestor`, both included."""
    while start != ancestor:
        yield start
        start = parents[start]
    yield ancestor


def _aggregate_score(steps: Mapping[str, int], score_by_seed: Mapping[str, float]) -> float:
    """Return the score of an aggregate: the highest score of a seed below it, after decay for each step."""
    return round(max(score_by_seed[seed] * DECAY**n for seed, n in steps.items()), _DECIMALS)


async def _rank_passages(
    seeds: Sequence[Scored], paths: TreePaths, aggregate_scores: Mapping[str, float], query: Query, view: ReadView
) -> tuple[Hit, ...]:
    """Return the passages with the highest scores for the seeds, and for the members of aggregates, they mention."""
    order = query.options_of(LcaOptions).lca_passages
    keys = {seed.id for seed in seeds}
    members = {id_: [key for key in cluster.members if key not in keys] for id_, cluster in paths.clusters.items()}
    chunks_by_key = await view.occurrences(
        OccurrenceKind.ENTITY, sorted(keys.union(*members.values())), MAX_CHUNKS_PER_ENTITY
    )
    score_by_chunk, mentioned = defaultdict[str, float](float), defaultdict[str, list[str]](list)
    for seed in seeds:
        for chunk in chunks_by_key.get(seed.id, ()):
            score_by_chunk[chunk] += seed.score / sqrt(len(chunks_by_key[seed.id])) if order == "scores" else 1
            mentioned[chunk].append(seed.id)
    for cluster, member_keys in sorted(members.items()) if order == "scores" else ():
        for key in member_keys:
            for chunk in chunks_by_key.get(key, ()):
                share = aggregate_scores[cluster] / len(member_keys)
                score_by_chunk[chunk] += share / sqrt(len(chunks_by_key[key]))
    for aggregate in paths.clusters.values() if order == "paths" else ():
        for chunk in {chunk for key in aggregate.members for chunk in chunks_by_key.get(key, ())}:
            score_by_chunk[chunk] += 1
    ranked = sorted((-round(score, _DECIMALS), chunk) for chunk, score in score_by_chunk.items())[: query.chunk_top_k]
    return tuple(Hit(id=chunk, score=-negative, reason=_mentions(mentioned[chunk])) for negative, chunk in ranked)


def _mentions(entities: Sequence[str]) -> str:
    return f"mentions {', '.join(entities)}" if entities else "mentions a member of an aggregate on the paths"


async def _rank_relations(
    seeds: Sequence[Scored], aggregate_scores: Mapping[str, float], max_ignored: int, view: ReadView
) -> tuple[Hit, ...]:
    """Return the relations among the seeds and those among the aggregates, by the sum of the scores of their ends.

    A relation between aggregates with at most `max_ignored` relations between their members is left out.
    """
    pairs = combinations([seed.id for seed in seeds], 2)
    among_entities = await view.relations(sorted(relation_id(first, second) for first, second in pairs))
    among_aggregates = await view.cluster_relations(sorted(aggregate_scores))
    score_by_end = {**aggregate_scores, **{seed.id: seed.score for seed in seeds}}

    def hit(relation: str, source: str, target: str, reason: str) -> Hit:
        score = round(score_by_end[source] + score_by_end[target], _DECIMALS)
        return Hit(id=relation, score=score, reason=reason)

    hits = [hit(r.id, r.source, r.target, "between two of the entities") for r in among_entities]
    for r in (relation for relation in among_aggregates if relation.n_relations > max_ignored):
        reason = f"{format_count(r.n_relations, 'relation')} between two aggregates on the paths"
        hits.append(hit(relation_id(r.source, r.target), r.source, r.target, reason))
    return tuple(sorted(hits, key=lambda ranked: (-ranked.score, ranked.id)))


def _rank_reports(paths: TreePaths, aggregate_scores: Mapping[str, float], seed_ids: set[str]) -> list[Hit]:
    """Return the aggregates on the paths, highest score first; `seed_ids` are those found by vector."""
    hits = []
    for cluster in sorted(aggregate_scores, key=lambda cluster: (-aggregate_scores[cluster], cluster)):
        if cluster in seed_ids:
            reason = f"cosine {aggregate_scores[cluster]:.3f} to the question"
        else:
            reason = f"connects {len(paths.steps[cluster])} of the seeds; layer {paths.clusters[cluster].level}"
        hits.append(Hit(id=cluster, score=aggregate_scores[cluster], reason=reason))
    return hits


def _notes(seeds: Sequence[Scored], paths: TreePaths, *, n_unavailable: int) -> Iterator[str]:
    if not seeds:
        yield "no entity is near to the question"
    if len(seeds) > 1 and not paths.clusters:
        yield "no aggregate connects the entities"
    if n_unavailable:
        yield f"{format_count(n_unavailable, 'aggregate')} on the paths without an available report"


STRATEGY = Strategy(
    name="lca",
    retrieve=retrieve,
    options=(LcaOptions,),
    faithful={"chunk_top_k": 5, "min_similarity": -1.0},
    summary="entities nearest to the question, and the aggregates that connect them, up to their common ancestor",
    after="LeanRAG",
    when="the question connects similar things, or asks what they have in common",
    needs=("entity vectors", "relations", "hierarchy"),
)
