"""local: the entities that a question names or resembles, their relations, and the passages that mention them.

Source: Z. Guo et al., "LightRAG: Simple and Fast Retrieval-Augmented Generation" (2024), section 3.2, low-level
retrieval; query mode "local" of its code.

Low-level keywords are the names in the question. They are joined and embedded; the nearest entities are the seeds. The
relations of the seeds are added, those with the best connected ends first. The passages that mention the seeds are
ranked by their similarity to the question.

Differences from the paper and its code:
- A model names the low-level keywords → the entity names in the question do, and a model adds to them, because a model
  may omit a name, or there may be none.
- Entities by cosine → named entities first if `match_names`, then by cosine, because a name is surer than a cosine.
- Every name counts → a name in more than the share `max_name_share` of the chunks, and in more than `chunk_top_k` of
  them, is dropped if a rarer one remains, because it does not narrow the search.
- All relations of the entities → for each entity `relations_per_entity` on average, those with the best connected ends,
  because a context holds fewer.
- Chunks by similarity (VECTOR, the default) or by frequency (WEIGHT) → `chunk_choice`, because it is an option there,
  too.
- If a vector is missing, all chunks are chosen by WEIGHT → that chunk counts as cosine 0, because the others need not
  change.
- Chunks of the entities and relations that fit their token budgets → of the first `top_k` of each, because packing
  comes later.
- Chunks of entities are removed from those of relations → they stay, unless `separate_chunks`, because removal lowered
  recall at 5 by 3 to 14 points on four sets.
- 200 source chunks of an entity are stored → all are stored, and `MAX_CHUNKS_PER_ENTITY` are read, because counts must
  stay right when documents are removed.
"""

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.steps.dual_level import LowLevelOptions, search_entities
from quipu.retrieve.steps.passages import SourceOptions, merge_passages, rank_source_passages
from quipu.retrieve.steps.seeds import NameOptions, embed, find_low_level_keywords
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the entities of the question, their relations, and the passages that mention or state them."""
    keywords = await find_low_level_keywords(query, view)
    vectors = await embed([query.text, keywords.text], tools.embedder)
    graph = await search_entities(keywords, vectors[keywords.text], query=query, view=view, tools=tools)
    rankings = await rank_source_passages(
        graph.entities, graph.relations, vectors[query.text], query=query, view=view, tools=tools
    )
    return graph.with_chunks(merge_passages(query, rankings))


STRATEGY = Strategy(
    name="local",
    retrieve=retrieve,
    options=(NameOptions, LowLevelOptions, SourceOptions),
    summary="entities of the question, their relations, and passages that mention them",
    after="LightRAG (local)",
    when="the question names the things it is about",
    needs=("entity vectors", "chunk vectors", "relations"),
    n_model_calls=1,
    wants_keywords=True,
)
