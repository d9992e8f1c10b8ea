"""lca: what a question is near to, joined by the paths through the aggregates above, up to where they meet.

Source: Y. Zhang et al., LeanRAG: Knowledge-Graph-Based Generation with Semantic Aggregation and Hierarchical Retrieval
(2025), section 3.3. Ids are walked instead of names. A passage counts for each seed in it, as much as the seed is near
to the question, and for its share of what is directly in each aggregate on the paths, half as much for each step up;
each entity by the root of how many passages name it, of 200 at most, so that those that stand everywhere do not decide.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import sqrt

from quipu.model.cluster import Hierarchy
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.ids import relation_id
from quipu.model.query import Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.steps.ancestry import TreePaths, paths_between
from quipu.retrieve.steps.communities import nearest_reports_that
from quipu.retrieve.steps.passages import MAX_CHUNKS_PER_ENTITY
from quipu.retrieve.steps.search import Vector, embed, near_hits, nearest
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count

MAX_SEEDS = 10
DECAY = 0.5  # for each step from a seed up to an aggregate
_DECIMALS = 6


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the entities nearest to the question, what joins them, and the passages that name most of it."""
    vectors = await embed([query.text], tools.embedder)
    k = min(query.top_k, MAX_SEEDS)
    near = await nearest(VectorSpace.ENTITY, vectors[query.text], query=query, k=k, view=view, tools=tools)
    groups = await _nearest_aggregates(vectors[query.text], k, query, view, tools) if query.from_aggregates else []
    paths = await paths_between([seed.id for seed in (*near, *groups)], view)
    scores = {seed.id: seed.score for seed in (*near, *groups)}
    weights = {name: _weight(steps, scores) for name, steps in paths.steps.items()}
    shown = {report.cluster for report in await view.cluster_reports(sorted(weights))}
    return Evidence(
        chunks=await _passages(near, paths, weights, query.chunk_top_k, view),
        entities=near_hits(near),
        relations=tuple(await _relations(near, weights, view)),
        reports=tuple(hit for hit in _reports(paths, weights, groups) if hit.id in shown),
        seeds=tuple(Seed(text=query.text, kind="vector", matches=tuple(found)) for found in (near, groups) if found),
        notes=tuple(_notes(near, paths, len(weights) - len(shown))),
    )


async def _nearest_aggregates(vector: Vector, k: int, query: Query, view: ReadView, tools: Tools) -> list[Scored]:
    """Return the k aggregates nearest to the question; reports on communities are passed over."""

    async def are_aggregates(ids: Sequence[str]) -> set[str]:
        return {each.id for each in await view.clusters(Hierarchy.AGGREGATES, ids, with_members=False)}

    near = await nearest_reports_that(are_aggregates, vector, k, view, tools)
    return [each for each in near if each.score >= query.min_similarity]


def _weight(steps: Mapping[str, int], scores: Mapping[str, float]) -> float:
    """Return what an aggregate on the paths is worth: that of the seed below it for which it is worth most."""
    return round(max(scores[start] * DECAY**n for start, n in steps.items()), _DECIMALS)


async def _passages(
    seeds: Sequence[Scored], paths: TreePaths, weights: Mapping[str, float], k: int, view: ReadView
) -> tuple[Hit, ...]:
    """Return the k chunks that name most of the seeds and of what is in the aggregates on the paths."""
    keys = {seed.id for seed in seeds}
    members = {name: [m for m in each.members if m not in keys] for name, each in paths.clusters.items()}
    wanted = sorted(keys.union(*members.values()))
    named = await view.chunks_of_entities(wanted, MAX_CHUNKS_PER_ENTITY)
    scores, naming = defaultdict[str, float](float), defaultdict[str, list[str]](list)
    for seed in seeds:
        for chunk in named.get(seed.id, ()):
            scores[chunk] += seed.score / sqrt(len(named[seed.id]))
            naming[chunk].append(seed.id)
    for name, inside in sorted(members.items()):
        for key in inside:
            for chunk in named.get(key, ()):
                scores[chunk] += weights[name] / len(inside) / sqrt(len(named[key]))
    ranked = sorted((-round(score, _DECIMALS), chunk) for chunk, score in scores.items())[:k]
    return tuple(Hit(id=chunk, score=-score, reason=_why(naming.get(chunk, ()))) for score, chunk in ranked)


def _why(names: Sequence[str]) -> str:
    return f"names {', '.join(names)}" if names else "names what is in an aggregate on the paths"


async def _relations(seeds: Sequence[Scored], weights: Mapping[str, float], view: ReadView) -> list[Hit]:
    """Return the relations among the seeds, then those among the aggregates, by what their ends are worth together."""
    pairs = combinations([seed.id for seed in seeds], 2)
    among_seeds = await view.relations(sorted(relation_id(first, second) for first, second in pairs))
    among_aggregates = await view.cluster_relations(sorted(weights))
    worth = {**weights, **{seed.id: seed.score for seed in seeds}}
    found = [(r.id, r.source, r.target, "between two of the entities") for r in among_seeds]
    found += [
        (
            relation_id(r.source, r.target),
            r.source,
            r.target,
            f"{format_count(r.n_relations, 'relation')} between two aggregates on the paths",
        )
        for r in among_aggregates
    ]
    hits = [Hit(id=i, score=round(worth[a] + worth[b], _DECIMALS), reason=reason) for i, a, b, reason in found]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def _reports(paths: TreePaths, weights: Mapping[str, float], groups: Sequence[Scored]) -> tuple[Hit, ...]:
    """Return the aggregates on the paths and those searched for, those worth most first."""
    near = {seed.id for seed in groups}

    def reason(name: str) -> str:
        if name in near:
            return f"cosine {weights[name]:.3f} to the question"
        return f"joins {len(paths.steps[name])} of the seeds; layer {paths.clusters[name].level}"

    ordered = sorted(weights, key=lambda name: (-weights[name], name))
    return tuple(Hit(id=name, score=weights[name], reason=reason(name)) for name in ordered)


def _notes(seeds: Sequence[Scored], paths: TreePaths, n_hidden: int) -> list[str]:
    notes = [] if seeds else ["no entity is near to the question"]
    if len(seeds) > 1 and not paths.clusters:
        notes.append("no aggregate joins what was found")
    return (
        [*notes, f"{format_count(n_hidden, 'aggregate')} on the paths without a report that may be shown"]
        if n_hidden
        else notes
    )


STRATEGY = Strategy(
    name="lca",
    retrieve=retrieve,
    summary="entities nearest to the question, and the aggregates that join them, up to where their paths meet",
    after="LeanRAG",
    when="the question joins things that are alike, or asks what they have in common",
    needs=("entity vectors", "relations", "hierarchy"),
)
