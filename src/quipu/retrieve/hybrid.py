"""hybrid: the evidence of `local` and of `global`, merged in turns.

Source: Z. Guo et al., "LightRAG: Simple and Fast Retrieval-Augmented Generation" (2024), section 3.2, dual-level
retrieval; query mode "hybrid" of its code.

Low-level keywords lead to entities and their relations, high-level keywords to relations and their ends. The two lists
of entities are merged in turns, low level first, and so are the two lists of relations. The passages they come from are
ranked by their similarity to the question.

Differences from the paper:
- Those of `local` and of `global`.
"""

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.steps.dual_level import LowLevelOptions, merge_levels, search_both_levels
from quipu.retrieve.steps.passages import SourceOptions, merge_passages, rank_source_passages
from quipu.retrieve.steps.seeds import NameOptions
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the entities and relations of both levels, and the passages they come from."""
    low, high, vector = await search_both_levels(query, view, tools)
    graph = merge_levels(low, high)
    rankings = await rank_source_passages(graph.entities, graph.relations, vector, query=query, view=view, tools=tools)
    return graph.with_chunks(merge_passages(query, rankings))


STRATEGY = Strategy(
    name="hybrid",
    retrieve=retrieve,
    options=(NameOptions, LowLevelOptions, SourceOptions),
    summary="local and global, merged in turns",
    after="LightRAG (hybrid)",
    when="the question names things and asks how they are connected",
    needs=("entity vectors", "relation vectors", "chunk vectors", "relations"),
    n_model_calls=1,
    wants_keywords=True,
)
