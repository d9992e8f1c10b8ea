"""global: the relations that a question is about, the entities they join, and the passages that state them.

Source: Z. Guo et al., "LightRAG: Simple and Fast Retrieval-Augmented Generation" (2024), section 3.2, high-level
retrieval; query mode "global" of its code.

High-level keywords are the themes of the question. They are joined and embedded; the nearest relations are the seeds.
The two ends of each relation are added. The passages that state the relations or mention their ends are ranked by their
similarity to the question.

Differences from the paper and its code:
- A model names the high-level keywords → without a model the question stands in for them, because no strategy needs a
  model.
- Those of `local` about passages.
"""

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.steps.dual_level import search_relations
from quipu.retrieve.steps.passages import SourceOptions, merge_passages, rank_source_passages
from quipu.retrieve.steps.seeds import embed, join_high_level_keywords
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the relations nearest to the question's themes, their ends, and the passages they come from."""
    themes = join_high_level_keywords(query)
    vectors = await embed([query.text, themes], tools.embedder)
    graph = await search_relations(themes, vectors[themes], query=query, view=view, tools=tools)
    rankings = await rank_source_passages(
        graph.entities, graph.relations, vectors[query.text], query=query, view=view, tools=tools
    )
    return graph.with_chunks(merge_passages(query, rankings))


STRATEGY = Strategy(
    name="global",
    retrieve=retrieve,
    options=(SourceOptions,),
    summary="relations nearest to the question, the entities they join, and passages that state them",
    after="LightRAG (global)",
    when="the question asks about a theme or a kind of connection and contains no name",
    needs=("relation vectors", "chunk vectors", "relations"),
    n_model_calls=1,
    wants_keywords=True,
)
