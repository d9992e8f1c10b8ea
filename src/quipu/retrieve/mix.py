"""mix: the graph evidence of `hybrid` and the passages of `naive`, merged in turns or by weight.

Source: query mode "mix" of LightRAG's code, built on Z. Guo et al., "LightRAG: Simple and Fast Retrieval-Augmented
Generation" (2024), section 3.2.

Entities and relations are found as in `hybrid`. Three rankings of passages are merged in turns: the nearest to the
question, those that mention the entities, and those that state the relations.

Differences from the code; the paper does not describe this mode:
- Those of `local` and of `global`.
- Rankings take turns → the passage at rank r of a ranking with weight w gets the position r / w, with the weights
  `entity_weight`, `relation_weight` and `vector_weight`, because equal weights take turns as well, and users can prefer
  a ranking.
"""

from dataclasses import dataclass, field

from quipu.errors import InvalidInput
from quipu.model.evidence import Evidence
from quipu.model.query import Options, Query, option
from quipu.ports.store import ReadView
from quipu.retrieve.steps.dual_level import GraphHits, LowLevelOptions, merge_levels, search_both_levels
from quipu.retrieve.steps.passages import SourceOptions, merge_passages, rank_source_passages
from quipu.retrieve.steps.seeds import NameOptions, find_nearest_passages
from quipu.retrieve.strategy import Strategy, Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class MixWeights(Options):
    """The weights of the three rankings that `mix` merges: through entities, through relations, and by vector.

    The passage at rank r of a ranking with weight w gets the position r / w. Equal weights therefore alternate the
    rankings, and a weight of 0 disables one. Only the ratios of the weights matter.
    """

    entity: float = option(
        1.0, "Weight of entities; 0 leaves them out.", between=(0.0, 1_000.0), setting="entity_weight"
    )
    relation: float = option(1.0, "Weight of relations.", between=(0.0, 1_000.0), setting="relation_weight")
    vector: float = option(
        1.0, "Weight of the nearest passages by vector.", between=(0.0, 1_000.0), setting="vector_weight"
    )

    def __post_init__(self) -> None:
        """Raise InvalidInput for a weight that is not allowed, and if all are 0."""
        Options.__post_init__(self)
        if not (self.entity or self.relation or self.vector):
            raise InvalidInput("All weights of mix are 0.", remedy="Give one of them more than 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MixOptions(Options):
    """The options of `mix`."""

    mix_weights: MixWeights = field(default_factory=MixWeights)


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the entities and relations of both levels, and the merged passages."""
    weights = query.options_of(MixOptions).mix_weights
    low, high, vector = await search_both_levels(query, view, tools)
    low, high = low if weights.entity else GraphHits(), high if weights.relation else GraphHits()
    by_vector, seed = await find_nearest_passages(query, vector, view, tools)
    unweighted = merge_levels(low, high)  # the weights order the rankings below, not what is in each of them
    by_entity, by_relation = await rank_source_passages(
        unweighted.entities, unweighted.relations, vector, query=query, view=view, tools=tools
    )
    graph = merge_levels(low, high, (weights.entity, weights.relation))
    graph = graph.with_seed(seed) if weights.vector else graph
    chunks = merge_passages(
        query, [by_vector, by_entity, by_relation], (weights.vector, weights.entity, weights.relation)
    )
    return graph.with_chunks(chunks).with_notes(_weights_note(weights))


def _weights_note(weights: MixWeights) -> tuple[str, ...]:
    """Return a note that states the weights, if they differ."""
    if weights.entity == weights.relation == weights.vector:
        return ()
    weight_by_ranking = {"entities": weights.entity, "relations": weights.relation, "vectors": weights.vector}
    listing = ", ".join(f"{ranking} {weight:g}" for ranking, weight in weight_by_ranking.items())
    return (f"rankings merged by rank / weight: {listing}",)


STRATEGY = Strategy(
    name="mix",
    retrieve=retrieve,
    options=(MixOptions, NameOptions, LowLevelOptions, SourceOptions),
    summary="hybrid, and the passages nearest to the question by vector",
    after="LightRAG (mix)",
    when="the answer needs entities and relations around the question, as LightRAG gives them",
    needs=("entity vectors", "relation vectors", "chunk vectors", "relations"),
    n_model_calls=1,
    wants_keywords=True,
)
