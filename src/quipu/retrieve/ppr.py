"""ppr: personalised PageRank over the graph of relations, restarted at what the question names and resembles.

Source: Fast GraphRAG (Circlemind, 2024), whose only publication is its code. It builds on B. J. Gutiérrez et al.,
"HippoRAG" (2024), section 2.3.

1. Seeds: each named entity of the question selects the entity of that name, or the nearest one with a cosine of at
   least 0.4. Each generic entity (theme), and the question itself, select up to 20 entities by vector. The matches of
   one text share a reset mass of 1; an entity keeps its largest share.
2. Walk: these shares are the reset vector of a personalised PageRank over related entities. Entities that score at
   least 0.005 are kept, at most 128.
3. Relations: a relation scores the sum of the scores of its two ends; the best 64 are kept.
4. Passages: a passage scores the sum of the scores of the relations it states.

Differences from the code, and its article:
- A named entity is searched by vector → if `match_names`, the entities of that name or alias are taken with a cosine of
  1, and the nearest from `MIN_NAMED_COSINE` or `min_similarity` only if there is none, because a name is certain.
- Every name counts → a name in more than the share `max_name_share` of the chunks, and in more than `chunk_top_k` of
  them, is dropped if a rarer one remains, because it does not narrow the search.
- Damping from 0.85 to 0.95 in the article, 0.85 in the code → `ppr_damping`, because it is the value of the code.
- Parallel edges add up → a pair of related entities weighs `PAIR_WEIGHT`, or with `ppr_parallel_edges` as much as the
  relation has mentions, because what is often repeated would decide the walk.
- Of the best 64 edges parallel ones count each → a pair counts once, because it is one relation of the index.
- Identity edges compare type, name and description and weigh 1 → they compare names and weigh their cosine, or 1 with
  `ppr_identity_edges`, if the derivation `synonyms` exists, because names do not change with the documents.
- The passages of an entity without relations are unreachable; below the rank threshold nothing is found; if nothing
  matches there is no answer → if `ppr_fallback`, such an entity passes its rank to them, the threshold is ignored if no
  entity reaches it, and the passages nearest to the question are returned, because they may contain the answer.
- 8 passages → `chunk_top_k` passages, because one limit makes strategies comparable.
- 4,000 tokens of entities, 3,000 of relations, 9,000 of passages; each may use what others leave → `entity_tokens` and
  `relation_tokens`, and passages what remains of `total_tokens`, because budgets are the same for all strategies.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quipu.model.derivation import SYNONYMS
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.ids import relation_id
from quipu.model.query import Options, Query, option
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import OccurrenceKind, ReadView, VectorSpace
from quipu.ports.topology import EdgeWeight, Floats, Topology
from quipu.retrieve.steps.graph_walk import (
    WalkWeights,
    build_walk_graph,
    missing_synonyms_note,
    rank_nodes,
    round_scores,
    top_entities,
)
from quipu.retrieve.steps.passages import MAX_CHUNKS_PER_ENTITY
from quipu.retrieve.steps.seeds import NameOptions, Vector, embed, find_low_level_keywords, find_nearest_passages
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.names import entity_key

MIN_NAMED_COSINE, MIN_GENERIC_COSINE = 0.4, 0.0  # of the entities that names, and that themes, select
MAX_PER_GENERIC = 20
MAX_ENTITIES, MAX_RELATIONS = 128, 64
PAIR_WEIGHT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PprOptions(Options):
    """The options of `ppr`."""

    ppr_damping: float = option(0.85, "Probability that the walk goes on at each step.", between=(0.0, 0.99))
    ppr_min_rank: float = option(0.005, "Minimum PageRank of an entity.", between=(0.0, 1.0))
    ppr_parallel_edges: bool = option(
        False, "Weigh a pair of entities by the mentions of its relation instead of 1.", faithful=True
    )
    ppr_identity_edges: bool = option(
        False, "Weigh a pair of synonyms 1 instead of the cosine of the names.", faithful=True
    )
    ppr_fallback: bool = option(
        True,
        "Find passages also by entities without relations, below ppr_min_rank, and by vector if nothing matches.",
        faithful=False,
    )

    def weights(self) -> WalkWeights:
        """Return the weights of the edges of the walk."""
        return WalkWeights(
            pairs=0.0 if self.ppr_parallel_edges else PAIR_WEIGHT,
            facts=PAIR_WEIGHT if self.ppr_parallel_edges else 0.0,
            synonyms=0.0 if self.ppr_identity_edges else 1.0,
            identities=1.0 if self.ppr_identity_edges else 0.0,
        )


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the entities, relations and passages with the highest scores; without seeds, the nearest passages."""
    options = query.options_of(PprOptions)
    seeds, vector, notes = await _find_seeds(query, view, tools)  # step 1
    topology = await tools.topology.open(view)
    reset = await _reset_vector(seeds, topology, view)
    if not reset.any():
        if not options.ppr_fallback:
            return Evidence(notes=(*notes, "no entity matches the question"))
        chunks, seed = await find_nearest_passages(query, vector, view, tools)
        note = "no entity matches the question: the passages nearest to it are used instead"
        return Evidence(chunks=chunks, seeds=(seed,), notes=(*notes, note))
    ranks = await rank_nodes(build_walk_graph(topology, options.weights()), reset, options.ppr_damping)  # step 2
    is_ranked, rank_notes = _is_ranked(ranks, options)
    entities = await top_entities(np.where(is_ranked, ranks, 0.0), MAX_ENTITIES, view)
    relations, isolated = await score_relations(entities, ranks, MAX_RELATIONS, topology=topology, view=view)  # step 3
    isolated = isolated if options.ppr_fallback else []
    return Evidence(
        chunks=await score_passages(relations, isolated, query.chunk_top_k, view),  # step 4
        entities=tuple(_entity_hit(entity, seeds) for entity in entities),
        relations=relations,
        seeds=seeds,
        notes=(*notes, *rank_notes, *await missing_synonyms_note(view)),
    )


def _is_ranked(ranks: Floats, options: PprOptions) -> tuple[npt.NDArray[np.bool_], tuple[str, ...]]:
    """Return which entities have the minimum rank, [n_entities], and notes for the trace."""
    min_rank, highest = options.ppr_min_rank, float(ranks.max())
    if highest >= min_rank:
        return ranks >= min_rank, ()
    note = f"no entity scored {min_rank:g} or more (highest: {highest:.4g})"
    if options.ppr_fallback:
        return ranks > 0, (f"{note}, so the threshold was ignored",)
    return np.zeros(len(ranks), dtype=bool), (note,)


async def _find_seeds(query: Query, view: ReadView, tools: Tools) -> tuple[tuple[Seed, ...], Vector, tuple[str, ...]]:
    """Return the entities that the question names or resembles, the question's vector, and notes for the trace."""
    low_level = await find_low_level_keywords(query, view)
    keywords = query.low_level_keywords or query.model_keywords.low_level
    themes = query.high_level_keywords or query.model_keywords.high_level
    keys_by_name = await view.keys_by_name(sorted({key for key in map(entity_key, keywords) if key}))
    unknown_names = [name for name in keywords if not keys_by_name.get(entity_key(name))]
    if not query.options_of(NameOptions).match_names:
        unknown_names = list(low_level.keywords)
    generic = [*themes, query.text]
    vectors = await embed([*unknown_names, *generic], tools.embedder)
    min_cosine, k = max(MIN_NAMED_COSINE, query.min_similarity), min(query.top_k, MAX_PER_GENERIC)
    named = await _match_by_vector([(name, vectors[name]) for name in unknown_names], 1, min_cosine, view, tools)
    others = await _match_by_vector([(text, vectors[text]) for text in generic], k, MIN_GENERIC_COSINE, view, tools)
    notes = low_level.notes if low_level.names else ()
    if tools.model is None and not (keywords or themes):
        notes += ("no language model: names and themes are taken from the words of the question",)
    return (*low_level.names, *named, *others), vectors[query.text], notes


async def _match_by_vector(
    texts: Sequence[tuple[str, Vector]], k: int, min_cosine: float, view: ReadView, tools: Tools
) -> tuple[Seed, ...]:
    """Return the k entities nearest to each text."""
    if not texts:
        return ()
    rows = np.stack([vector for _, vector in texts])
    nearest = await tools.vectors.nearest(view, VectorSpace.ENTITY, rows, k=k, min_score=min_cosine)
    return tuple(
        Seed(text=text, kind="vector", matches=matches) for (text, _), matches in zip(texts, nearest, strict=True)
    )


async def _reset_vector(seeds: Sequence[Seed], topology: Topology, view: ReadView) -> Floats:
    """Return the reset weight of each entity, [n_entities]: its largest share of the matches of one text."""
    numbers = await view.numbers(NodeKind.ENTITY, sorted({match.id for seed in seeds for match in seed.matches}))
    reset = np.zeros(topology.n_entities)
    for seed in seeds:
        weights = {match.id: (1 + match.score) / 2 for match in seed.matches}
        total = sum(weights.values())
        for key, weight in weights.items():
            reset[numbers[key]] = max(reset[numbers[key]], weight / total)
    return reset


async def score_relations(
    entities: Sequence[Scored], ranks: Floats, k: int, *, topology: Topology, view: ReadView
) -> tuple[tuple[Hit, ...], list[Scored]]:
    """Return the k relations with the highest sum of ranks at their ends, and the entities that have no relations.

    Of `ranks` ([n_entities]) only those of `entities` count. Relations with equal sums are ordered by the ranks of all
    their ends, then by id.
    """
    number_by_key = await view.numbers(NodeKind.ENTITY, [entity.id for entity in entities])
    numbers = np.array([number_by_key[entity.id] for entity in entities], dtype=np.int64)
    selected_ranks = np.zeros(len(ranks))
    selected_ranks[numbers] = ranks[numbers]
    edges = topology.relations(EdgeWeight.ONE).neighbours(numbers)
    ends = np.sort(np.stack([numbers[edges.positions], edges.columns], axis=1), axis=1)
    ends = np.unique(ends, axis=0) if len(ends) else ends
    sums, sums_of_all = (round_scores(values[ends].sum(axis=1)) for values in (selected_ranks, ranks))
    order = np.lexsort((-sums_of_all, -sums))
    if len(order) > k:  # keep every relation that equals the last one; ids decide between them below
        last = order[k - 1]
        is_equal = (sums[order] == sums[last]) & (sums_of_all[order] >= sums_of_all[last])
        order = order[(sums[order] > sums[last]) | is_equal]
    keys = await view.ids(NodeKind.ENTITY, np.unique(ends[order]).tolist())
    hits = []
    for (a, b), score, total in zip(
        ends[order].tolist(), sums[order].tolist(), sums_of_all[order].tolist(), strict=True
    ):
        reason = f"the ranks of its ends sum to {total:.4g}"
        hits.append((-total, Hit(id=relation_id(keys[a], keys[b]), score=score, reason=reason)))
    best = sorted(hits, key=lambda pair: (-pair[1].score, pair[0], pair[1].id))[:k]
    isolated = np.setdiff1d(np.arange(len(entities)), edges.positions)
    return tuple(hit for _, hit in best), [entities[position] for position in isolated.tolist()]


async def score_passages(
    relations: Sequence[Hit], isolated: Sequence[Scored], k: int, view: ReadView
) -> tuple[Hit, ...]:
    """Return the k chunks with the highest sum of the relations they state and the isolated entities they mention."""
    stating = await view.occurrences(OccurrenceKind.RELATION, [relation.id for relation in relations])
    mentioning = await view.occurrences(
        OccurrenceKind.ENTITY, [entity.id for entity in isolated], MAX_CHUNKS_PER_ENTITY
    )
    scores: defaultdict[str, float] = defaultdict(float)
    reasons: defaultdict[str, list[str]] = defaultdict(list)

    def add(score: float, reason: str, chunks: Iterable[str]) -> None:
        for chunk in chunks:
            scores[chunk] += score
            reasons[chunk].append(reason)

    for relation in relations:
        add(relation.score, f"states {relation.id}", stating.get(relation.id, ()))
    for entity in isolated:
        add(entity.score, f"mentions {entity.id}", mentioning.get(entity.id, ()))
    sums = dict(zip(scores, round_scores(np.array(list(scores.values()))).tolist(), strict=True))
    best = sorted(sums, key=lambda chunk: (-sums[chunk], chunk))[:k]
    return tuple(Hit(id=chunk, score=sums[chunk], reason=_passage_reason(reasons[chunk])) for chunk in best)


def _passage_reason(reasons: Sequence[str]) -> str:
    return reasons[0] if len(reasons) == 1 else f"{reasons[0]}; and {len(reasons) - 1} more"


def _entity_hit(entity: Scored, seeds: Sequence[Seed]) -> Hit:
    texts = [seed.text for seed in seeds if any(match.id == entity.id for match in seed.matches)]
    origin = f"a seed, matches '{texts[0]}'" if texts else "reached from the seeds"
    return Hit(id=entity.id, score=entity.score, reason=f"PageRank {entity.score:.4g}, {origin}")


STRATEGY = Strategy(
    name="ppr",
    retrieve=retrieve,
    options=(PprOptions, NameOptions),
    faithful={
        "chunk_top_k": 8,
        "entity_tokens": 4_000,
        "relation_tokens": 3_000,
        "total_tokens": 16_000,
        "min_passage_share": 9 / 16,
    },
    summary="PageRank over relations from what the question names, and the passages that state the best relations",
    after="Fast GraphRAG",
    when="the answer lies some relations away from what the question names",
    needs=("entity vectors", "relations", "topology"),
    better_with=(SYNONYMS,),
    n_model_calls=1,
    wants_keywords=True,
)
