"""Graph walk: personalised PageRank over entities and passages, and the paths by which it reaches passages."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from quipu.algo.pagerank import GraphBlock, WeightedGraph, personalised_pagerank
from quipu.model.derivation import SYNONYMS
from quipu.model.evidence import Hit, Scored
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import EdgeWeight, Floats, Ints, Topology

N_DIGITS = 7  # significant digits of a score; below these, sums of floats depend on the order of their terms
MAX_DECIMALS = 12  # smaller differences are noise
MAX_STEPS = 6  # of a path that is described
_POWERS = np.array([float(f"1e{n}") for n in range(MAX_DECIMALS + 1)])
# Rounding may change a rank by this fraction of it, and a small rank by half of the last decimal.
_MAX_RELATIVE_ERROR, _MIN_ERROR = 0.5 * 10.0 ** (1 - N_DIGITS), 0.5 * 10.0**-MAX_DECIMALS


class MentionWeight(StrEnum):
    """The weight of the edge between an entity and a passage that mentions it."""

    ONE = "one"  # 1, whatever the number of mentions (HippoRAG)
    SHARE = "share"  # the entity's share of all mentions in the passage (LinearRAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkWeights:
    """The weights of the edges of a walk; 0 or None leaves a kind of edge out.

    A pair of related entities gets the weight `pairs`, plus `facts` for each mention of the relation. Synonyms get
    `synonyms` times their cosine, and `identities` whatever their cosine.
    """

    facts: float = 0.0
    pairs: float = 0.0
    mentions: MentionWeight | None = None
    synonyms: float = 0.0
    identities: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkResult:
    """A graph, the reset weights (of any sum) and the ranks of a walk on it, both [n_nodes], and its damping."""

    graph: WeightedGraph
    reset: Floats
    ranks: Floats
    damping: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SubgraphWalk:
    """The entities and chunks of a subgraph (ascending numbers), their ranks in this order, and related positions."""

    entities: Ints
    chunks: Ints
    ranks: Floats
    related: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageSubgraph:
    """Some entities and chunks (ascending numbers), and the positions in these of mentions and of related entities.

    A mention connects entity `mention_rows[i]` with chunk `mention_columns[i]`. Both directions of each relation are
    listed, as `relation_rows`, `relation_columns` and the number of its mentions, `relation_weights`.
    """

    entities: Ints
    chunks: Ints
    mention_rows: Ints
    mention_columns: Ints
    relation_rows: Ints
    relation_columns: Ints
    relation_weights: Floats

    def walk(self, mention_weights: Floats, reset: Floats, *, damping: float, n_steps: int) -> SubgraphWalk:
        """Return personalised PageRank after `n_steps` of power iteration from `reset`, [n_entities + n_chunks].

        It is made of a few thousand edges, which are summed as a list: that takes less time than to order them by row.
        """
        columns = self.mention_columns + len(self.entities)
        sources = np.concatenate([self.relation_rows, self.mention_rows, columns])
        targets = np.concatenate([self.relation_columns, columns, self.mention_rows])
        weights = np.concatenate([self.relation_weights, mention_weights, mention_weights])
        weights /= np.bincount(sources, weights, minlength=len(reset))[sources]  # shares of what leaves a node
        start = (1 - damping) * reset / reset.sum()
        ranks = start / (1 - damping)
        for _ in range(n_steps):
            ranks = damping * np.bincount(targets, weights * ranks[sources], minlength=len(reset)) + start
        related = np.stack([self.relation_rows, self.relation_columns], axis=1)
        return SubgraphWalk(entities=self.entities, chunks=self.chunks, ranks=round_scores(ranks), related=related)


def read_subgraph(topology: Topology, chunks: Ints, seeds: Ints) -> PassageSubgraph:
    """Return the subgraph of these chunks (ascending numbers), of all entities that they name, and of the seeds."""
    mentions = topology.occurrences_by_chunk().neighbours(chunks)
    entities = np.union1d(mentions.columns, seeds)
    relations = topology.relations(EdgeWeight.MENTIONS).neighbours(entities)
    is_inside = np.isin(relations.columns, entities)
    return PassageSubgraph(
        entities=entities,
        chunks=chunks,
        mention_rows=np.searchsorted(entities, mentions.columns),
        mention_columns=mentions.positions,
        relation_rows=relations.positions[is_inside],
        relation_columns=np.searchsorted(entities, relations.columns[is_inside]),
        relation_weights=relations.weights[is_inside],
    )


def build_walk_graph(topology: Topology, weights: WalkWeights) -> WeightedGraph:
    """Return the graph of entities and chunks with these edge weights; without chunks if mentions have no weight."""
    first_chunk = topology.n_entities
    blocks: list[GraphBlock] = []
    if weights.facts:
        blocks.append(GraphBlock(matrix=topology.relations(EdgeWeight.MENTIONS), weight=weights.facts))
    if weights.pairs:
        blocks.append(GraphBlock(matrix=topology.relations(EdgeWeight.ONE), weight=weights.pairs))
    if weights.synonyms:
        blocks.append(GraphBlock(matrix=topology.synonyms(), weight=weights.synonyms))
    if weights.identities:
        blocks.append(GraphBlock(matrix=topology.synonyms().unweighted(), weight=weights.identities))
    if weights.mentions is not None:
        blocks += _mention_blocks(topology, weights.mentions, first_chunk)
    n_chunks = topology.n_chunks if weights.mentions is not None else 0
    return WeightedGraph(blocks=blocks, n_entities=first_chunk, n_chunks=n_chunks)


async def rank_nodes(graph: WeightedGraph, reset: Floats, damping: float) -> Floats:
    """Return the personalised PageRank of each node, [n_nodes], rounded; zeros if the reset is zero everywhere.

    `reset` [n_nodes] may have any sum. The computation runs in another thread, because a large graph takes long.
    """
    total = float(reset.sum())
    if not total:
        return np.zeros(len(reset))
    return await asyncio.to_thread(lambda: round_scores(personalised_pagerank(graph, reset / total, damping=damping)))


async def walk_to_passages(
    graph: WeightedGraph, reset: Floats, damping: float, *, k: int, view: ReadView
) -> tuple[Hit, ...]:
    """Return the k passages with the highest PageRank, each with the path by which most of its rank arrives."""
    ranks = await rank_nodes(graph, reset, damping)
    passages = await top_chunks(ranks[graph.n_entities :], k, view)
    result = WalkResult(graph=graph, reset=reset, ranks=ranks, damping=damping)
    paths = await describe_paths(passages, result, view)
    return tuple(Hit(id=p.id, score=p.score, reason=f"PageRank {p.score:.4g}, {paths[p.id]}") for p in passages)


def round_scores(scores: Floats) -> Floats:
    """Return scores of any shape, at least 0, rounded to `N_DIGITS` significant digits and `MAX_DECIMALS` decimals.

    A fixed number of decimals alone would make small scores equal.
    """
    n_before = np.floor(np.log10(np.maximum(scores, 1 / _POWERS[-1]))) + 1
    power = _POWERS.take((N_DIGITS - n_before).astype(np.int64), mode="clip")
    nearest: Floats = np.rint(scores * power) / power
    return nearest


async def missing_synonyms_note(view: ReadView) -> tuple[str, ...]:
    """Return a note for the trace if synonyms have not been derived."""
    if SYNONYMS in await view.derivations():
        return ()
    return (f"different spellings of a name are not connected: run `quipu refresh {SYNONYMS}` to connect them",)


async def top_chunks(scores: Floats, k: int, view: ReadView) -> tuple[Scored, ...]:
    """Return the k chunks with the highest scores above 0 ([n_chunks]), best first, equal ones by id."""
    numbers = _top_numbers(scores, k)
    return _ordered(await view.ids(NodeKind.CHUNK, numbers.tolist()), scores, k)


async def top_entities(scores: Floats, k: int, view: ReadView) -> tuple[Scored, ...]:
    """Return the k entities with the highest scores above 0 ([n_entities]), best first, equal ones by key."""
    numbers = _top_numbers(scores, k)
    return _ordered(await view.ids(NodeKind.ENTITY, numbers.tolist()), scores, k)


async def describe_paths(chunks: Sequence[Scored], result: WalkResult, view: ReadView) -> dict[str, str]:
    """Return, for each chunk, the path by which most of its rank arrives from a seed entity, in words.

    The path is followed backwards: at each node to the neighbour that contributes most, of equal ones to the first by
    id. If no seed entity is reached within `MAX_STEPS`, only the last step is described.
    """
    first_chunk = result.graph.n_entities
    numbers = await view.numbers(NodeKind.CHUNK, [chunk.id for chunk in chunks])
    names = {number + first_chunk: chunk for chunk, number in numbers.items()}
    paths = {chunk: [number + first_chunk] for chunk, number in numbers.items()}
    open_paths = list(paths.values())
    for _ in range(MAX_STEPS):
        sources = _main_sources(open_paths, result)
        new_nodes = {node for nodes in sources for node in nodes} - names.keys()
        names |= await _node_names(new_nodes, first_chunk, view)
        for path, nodes in zip(open_paths, sources, strict=True):
            named = [node for node in nodes if node in names]
            path.extend([min(named, key=names.__getitem__)] if named else [])
        open_paths = [
            path for path, nodes in zip(open_paths, sources, strict=True) if nodes and not _is_seed(path[-1], result)
        ]
    return {chunk: _path_text(path, names, result) for chunk, path in paths.items()}


def _mention_blocks(topology: Topology, weight: MentionWeight, first_chunk: int) -> list[GraphBlock]:
    by_entity, by_chunk = topology.occurrences(), topology.occurrences_by_chunk()
    scale: Floats | None = None
    if weight is MentionWeight.ONE:
        by_entity, by_chunk = by_entity.unweighted(), by_chunk.unweighted()
    if weight is MentionWeight.SHARE:
        sums = by_chunk.row_sums()
        scale = np.divide(1.0, sums, out=np.zeros(len(sums)), where=sums > 0)
    return [
        GraphBlock(matrix=by_entity, columns=first_chunk, column_scale=scale),
        GraphBlock(matrix=by_chunk, rows=first_chunk, row_scale=scale),
    ]


def _top_numbers(scores: Floats, k: int) -> Ints:
    """Return the positions of the k highest scores above 0, and of all scores equal to the last of these."""
    positive = np.flatnonzero(scores > 0)
    if k <= 0 or len(positive) <= k:
        return positive[: max(k, 0)]
    candidates = scores[positive]
    lowest = np.partition(candidates, len(candidates) - k)[len(candidates) - k]
    return np.flatnonzero(scores >= max(lowest, np.finfo(float).tiny))


def _ordered(id_by_number: Mapping[int, str], scores: Floats, k: int) -> tuple[Scored, ...]:
    ranking = sorted((-float(scores[number]), identifier) for number, identifier in id_by_number.items())
    return tuple(Scored(id=identifier, score=-negative) for negative, identifier in ranking[:k])


def _main_sources(paths: Sequence[Sequence[int]], result: WalkResult) -> list[list[int]]:
    """Return, for each path, the nodes not on it that may contribute most to its end, given that ranks are rounded."""
    ends: Ints = np.array([path[-1] for path in paths], dtype=np.int64)
    edges = result.graph.neighbours(ends)
    shares, ranks = edges.weights / result.graph.degrees[edges.columns], result.ranks[edges.columns]
    flows, errors = ranks * shares, np.maximum(ranks * _MAX_RELATIVE_ERROR, _MIN_ERROR) * shares
    sources: list[list[int]] = []
    for position, path in enumerate(paths):
        is_candidate = (edges.positions == position) & ~np.isin(edges.columns, path) & (flows > 0)
        threshold = (flows - errors)[is_candidate].max(initial=0.0)
        sources.append(np.unique(edges.columns[is_candidate & (flows + errors >= threshold)]).tolist())
    return sources


async def _node_names(nodes: Iterable[int], first_chunk: int, view: ReadView) -> Mapping[int, str]:
    entities = sorted(node for node in nodes if node < first_chunk)
    chunks = sorted(node - first_chunk for node in nodes if node >= first_chunk)
    keys = await view.ids(NodeKind.ENTITY, entities) if entities else {}
    ids = await view.ids(NodeKind.CHUNK, chunks) if chunks else {}
    return {**keys, **{number + first_chunk: chunk for number, chunk in ids.items()}}


def _is_seed(node: int, result: WalkResult) -> bool:
    return node < result.graph.n_entities and result.reset[node] > 0


def _path_text(path: Sequence[int], names: Mapping[int, str], result: WalkResult) -> str:
    chunk, *rest = path
    own_rank = (1 - result.damping) * result.reset[chunk] / result.reset.sum()
    if not rest or 2 * own_rank > result.ranks[chunk]:
        return "mostly because it is similar to the question"
    words = [names[node] if node < result.graph.n_entities else f"passage {names[node]}" for node in reversed(rest)]
    return f"reached by {' → '.join(words)}" if _is_seed(rest[-1], result) else f"reached by … → {words[-1]}"
