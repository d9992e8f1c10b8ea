"""local: the entities that a question names or resembles, their relations, and the passages that mention them.

Source: Z. Guo et al., "LightRAG: Simple and Fast Retrieval-Augmented Generation" (2024), section 3.2, low-level
retrieval; query mode "local" of its code.

Low-level keywords are the names in the question. They are joined and embedded; the nearest entities are the seeds. The
relations of the seeds are added, those with the best connected ends first. The passages that mention the seeds are
ranked by their similarity to the question.

Differences from the paper:
- Without a language model, low-level keywords are the entity names that occur in the question. With one, its keywords
  are added to these names.
- Entities that the question names come before entities found by vector.
- A name in more than 20 % of the chunks is dropped if a rarer one remains.
- At most 10 relations for each entity are read, on average; LightRAG reads all.
- Passages are chosen by their cosine to the question (VECTOR in LightRAG's code), not by its other method (WEIGHT).
- Passages that state the relations are ranked too, without removing those of the entities: see `steps/passages.py`.
"""

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.steps.dual_level import search_entities
from quipu.retrieve.steps.keywords import find_low_level_keywords
from quipu.retrieve.steps.passages import merge_passages, rank_source_passages
from quipu.retrieve.steps.vector_search import embed
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
    summary="entities of the question, their relations, and passages that mention them",
    after="LightRAG (local)",
    when="the question names the things it is about",
    needs=("entity vectors", "chunk vectors", "relations"),
    n_model_calls=1,
    wants_keywords=True,
)
