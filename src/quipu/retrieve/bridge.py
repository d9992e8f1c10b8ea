"""bridge: the communities around a question, and the shortest paths between the key entities of these communities.

Source: H. Huang et al., "Retrieval-Augmented Generation with Hierarchical Knowledge" (HiRAG, 2025), section on
hierarchical retrieval; query mode "hi" of its code.

1. Local knowledge: the 20 entities nearest to the question, and the passages that mention them.
2. Global knowledge: the reports on the communities of most of these entities, at most 10.
3. Bridge knowledge: of each of these communities, the first 10 of the 200 nearest entities are key entities. The
   relations on the shortest paths from each key entity to the next connect the communities.

Differences from the paper and its code:
- Key entities are chained in the order of a Python set → in the order of similarity, because the same question must get
  the same bridge.
- All key entities are connected → the first `bridge_keys`, because each costs a search.
- Paths are the shortest → if `bridge_hub_lengths`, their length grows with the degrees of their nodes, because hubs
  connect everything.
- The whole graph is searched → the search for a path ends after `MAX_EDGES` edges, because the time must not grow with
  the index; the two are then unconnected.
- Relations on and beside the paths are ordered by degree → if `bridge_paths_first`, those on the paths come first;
  `bridge_relations` in all, because the others would fill the budget.
- Reports that fit 12,500 of 65,000 tokens → the same share, `REPORT_SHARE`, of `total_tokens`, of at most
  `bridge_communities` communities, because each adds key entities.
- As many passages as fit 20,000 tokens → `chunk_top_k`, because one limit makes strategies comparable.
- Entities made from Gaussian mixtures are searched, too → only the entities of the documents, because `lca` searches
  the hierarchy.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from quipu.algo.shortest_paths import ShortestPaths, ShortestPathSearch
from quipu.algo.similarity import n_fitting
from quipu.model.cluster import Cluster, ClusterReport, report_text
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.ids import relation_id
from quipu.model.query import Options, Query, option
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import OccurrenceKind, ReadView, VectorSpace
from quipu.ports.topology import EdgeWeight, Floats, Ints, Topology
from quipu.retrieve.steps.local_search import communities_of
from quipu.retrieve.steps.passages import MAX_CHUNKS_PER_ENTITY
from quipu.retrieve.steps.seeds import embed, find_nearest, hits_by_cosine
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count

MAX_ENTITIES, OVERSAMPLING = 20, 10
KEYS_PER_COMMUNITY = 10
REPORT_SHARE = 12_500 / 65_000  # of the context (HiRAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeOptions(Options):
    """The options of `bridge`. A budget of 8,000 tokens holds fewer than 400 relations."""

    bridge_communities: int = option(10, "Communities whose reports are read.", between=(0, 1_000), faithful=1_000)
    bridge_keys: int = option(30, "Key entities that paths connect.", between=(0, 10_000), faithful=10_000)
    bridge_relations: int = option(400, "Relations of the bridge.", between=(0, 100_000), faithful=100_000)
    bridge_hub_lengths: bool = option(True, "Lengthen paths through entities with many relations.", faithful=False)
    bridge_paths_first: bool = option(True, "Put relations on the paths before those beside them.", faithful=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityOfSeeds:
    """A community, how many of the nearest entities it contains, and its report if it is available."""

    cluster: str
    n_entities: int
    report: ClusterReport | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """The relations on and beside the paths, best first; `n_unconnected` key entities have no path to the next."""

    relations: tuple[Hit, ...]
    n_unconnected: int


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the nearest entities, the reports on their communities, the bridge between these, and passages."""
    vector = (await embed([query.text], tools.embedder))[query.text]
    n = min(query.top_k, MAX_ENTITIES)
    candidates = await find_nearest(VectorSpace.ENTITY, vector, query=query, k=OVERSAMPLING * n, view=view, tools=tools)
    seeds = candidates[:n]
    topology, options = await tools.topology.open(view), query.options_of(BridgeOptions)
    passages = await _rank_passages(seeds, topology, view)  # step 1, local knowledge
    communities_by_entity = await communities_of([entity.id for entity in candidates], view)
    ranked = await _rank_communities(seeds, communities_by_entity, query, view)  # step 2, global knowledge
    communities = ranked[: _n_fitting_reports(ranked, query, tools)][: options.bridge_communities]
    keys = _key_entities(candidates, communities, communities_by_entity)  # step 3, bridge knowledge
    bridge = await _find_bridge(keys[: options.bridge_keys], options, view, topology)
    return Evidence(
        chunks=passages[: query.chunk_top_k],
        entities=hits_by_cosine(seeds),
        relations=bridge.relations,
        reports=tuple(_report_hit(community) for community in communities if community.report),
        seeds=(Seed(text=query.text, kind="vector", matches=seeds),),
        notes=tuple(_notes(seeds, communities, bridge, len(keys), options.bridge_keys)),
    )


async def _rank_passages(seeds: Sequence[Scored], topology: Topology, view: ReadView) -> tuple[Hit, ...]:
    """Return the passages that mention the seeds, in the order of seeds; then those with most of its neighbours."""
    keys = [seed.id for seed in seeds]
    chunks_by_key = await view.occurrences(OccurrenceKind.ENTITY, keys, MAX_CHUNKS_PER_ENTITY) if keys else {}
    numbers = await view.numbers(NodeKind.ENTITY, keys)
    all_chunks = sorted({chunk for chunks in chunks_by_key.values() for chunk in chunks})
    number_by_chunk = await view.numbers(NodeKind.CHUNK, all_chunks)
    relations, mentions = topology.relations(EdgeWeight.ONE), topology.occurrences_by_chunk()
    hits: dict[str, Hit] = {}
    for seed in seeds:
        chunks = sorted(chunk for chunk in chunks_by_key.get(seed.id, ()) if chunk in number_by_chunk)
        if seed.id not in numbers or not chunks:
            continue
        neighbours = relations.neighbours(np.array([numbers[seed.id]], dtype=np.int64)).columns
        mentioned = mentions.neighbours(np.array([number_by_chunk[chunk] for chunk in chunks], dtype=np.int64))
        is_neighbour = np.isin(mentioned.columns, neighbours)
        n_neighbours = np.bincount(mentioned.positions[is_neighbour], minlength=len(chunks))
        for negative, chunk in sorted(zip((-n_neighbours).tolist(), chunks, strict=True)):
            related = f" and {format_count(-negative, 'entity')} related to it" if negative else ""
            hits.setdefault(chunk, Hit(id=chunk, score=seed.score, reason=f"mentions {seed.id}{related}"))
    return tuple(hits.values())


async def _rank_communities(
    seeds: Sequence[Scored], communities_by_entity: Mapping[str, Sequence[Cluster]], query: Query, view: ReadView
) -> list[CommunityOfSeeds]:
    """Return the seeds' communities that are not finer than the query's level, by number of seeds, then by rating."""
    counts = Counter(
        cluster.id
        for seed in seeds
        for cluster in communities_by_entity.get(seed.id, ())
        if cluster.level <= query.community_level
    )
    reports = {report.cluster: report for report in await view.cluster_reports(sorted(counts))} if counts else {}
    ratings = {cluster: reports[cluster].rating if cluster in reports else 0.0 for cluster in counts}
    ranked = sorted(counts, key=lambda cluster: (-counts[cluster], -ratings[cluster], cluster))
    return [CommunityOfSeeds(cluster=c, n_entities=counts[c], report=reports.get(c)) for c in ranked]


def _n_fitting_reports(communities: Sequence[CommunityOfSeeds], query: Query, tools: Tools) -> int:
    """Return how many communities, from the first, have reports that fit their share; no report costs nothing."""
    costs = (tools.tokenizer.count(report_text(c.report)) if c.report else 0 for c in communities)
    return n_fitting(costs, int(REPORT_SHARE * query.budget.total))


def _key_entities(
    candidates: Sequence[Scored],
    communities: Sequence[CommunityOfSeeds],
    communities_by_entity: Mapping[str, Sequence[Cluster]],
) -> list[str]:
    """Return the key entities of the communities, most similar first; if there are none, the most similar entities."""
    keys: set[str] = set()
    for community in communities:
        members = [
            entity.id
            for entity in candidates
            if any(cluster.id == community.cluster for cluster in communities_by_entity.get(entity.id, ()))
        ]
        keys.update(members[:KEYS_PER_COMMUNITY])
    return [e.id for e in candidates if e.id in keys] or [e.id for e in candidates[:KEYS_PER_COMMUNITY]]


async def _find_bridge(keys: Sequence[str], options: BridgeOptions, view: ReadView, topology: Topology) -> Bridge:
    """Return the relations on the shortest paths from each entity to the next, and those beside the paths."""
    numbers = await view.numbers(NodeKind.ENTITY, keys)
    chain = [numbers[key] for key in keys if key in numbers]
    routes, degrees = await asyncio.to_thread(_shortest_paths, chain, topology, options.bridge_hub_lengths)
    nodes = sorted({number for route in routes if route for number in route.nodes()})
    names = await view.ids(NodeKind.ENTITY, nodes)
    paths = [route.first_path(names.__getitem__) for route in routes if route and route.nodes() <= names.keys()]
    reasons: dict[str, str] = {}
    for path in paths:
        for source, target in pairwise(path):
            reason = f"on the path from {names[path[0]]} to {names[path[-1]]}"
            reasons.setdefault(relation_id(names[source], names[target]), reason)
    among = _relations_among({node for path in paths for node in path}, names, degrees, topology)
    for relation, degree_sum in among:
        reasons.setdefault(relation, f"between two entities of the paths; its ends have {degree_sum:g} relations")
    if not options.bridge_paths_first:
        reasons = {relation: reasons[relation] for relation, _ in among}
    hits = tuple(
        Hit(id=relation, score=round(1 / rank, 6), reason=reason)
        for rank, (relation, reason) in enumerate(islice(reasons.items(), options.bridge_relations), 1)
    )
    return Bridge(relations=hits, n_unconnected=routes.count(None))


def _shortest_paths(
    chain: Sequence[int], topology: Topology, has_hub_lengths: bool
) -> tuple[list[ShortestPaths | None], Floats]:
    """Return the shortest paths from each entity of a chain to the next, and the degree of every entity."""
    links = topology.relations(EdgeWeight.ONE)
    degrees = links.row_sums()
    search = ShortestPathSearch(links.neighbours, degrees if has_hub_lengths else np.ones(len(degrees)))
    return [search.between(source, target) for source, target in pairwise(chain)], degrees


def _relations_among(
    nodes: set[int], names: Mapping[int, str], degrees: Floats, topology: Topology
) -> list[tuple[str, float]]:
    """Return the relations among the nodes with the degrees of their ends, highest first, then by weight."""
    numbers: Ints = np.array(sorted(nodes), dtype=np.int64)
    links = topology.relations(EdgeWeight.WEIGHT).neighbours(numbers)
    sources = numbers[links.positions]
    is_inside = np.isin(links.columns, numbers) & (sources < links.columns)
    ends = zip(sources[is_inside].tolist(), links.columns[is_inside].tolist(), strict=True)
    ranked = sorted(
        (-float(degrees[source] + degrees[target]), -round(weight, 6), relation_id(names[source], names[target]))
        for (source, target), weight in zip(ends, links.weights[is_inside].tolist(), strict=True)
    )
    return [(relation, -negative) for negative, _, relation in ranked]


def _report_hit(community: CommunityOfSeeds) -> Hit:
    reason = f"on a community of {community.n_entities} of the entities"
    return Hit(id=community.cluster, score=float(community.n_entities), reason=reason)


def _notes(
    seeds: Sequence[Scored], communities: Sequence[CommunityOfSeeds], bridge: Bridge, n_keys: int, max_keys: int
) -> Iterator[str]:
    if not seeds:
        yield "no entity is near to the question"
        return
    if not any(community.report for community in communities):
        yield "no report on their communities is available"
    if n_keys > max_keys:
        yield f"only the first {max_keys} of {n_keys} key entities are connected"
    if bridge.n_unconnected:
        yield f"{format_count(bridge.n_unconnected, 'key entity')} without a path to the next"


STRATEGY = Strategy(
    name="bridge",
    retrieve=retrieve,
    options=(BridgeOptions,),
    faithful={
        "chunk_top_k": 1_000,
        "entity_tokens": 20_000,
        "relation_tokens": 12_500,
        "report_tokens": 12_500,
        "total_tokens": 65_000,
        "min_passage_share": 20 / 65,
    },
    summary="reports on the communities of the nearest entities, and the paths that connect their key entities",
    after="HiRAG (hi)",
    when="the question asks how distant things are connected",
    needs=("topology", "communities", "reports", "entity vectors"),
)
