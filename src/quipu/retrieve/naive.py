"""naive: the passages whose vectors are most similar to the question's.

Source: P. Lewis et al., "Retrieval-Augmented Generation for Knowledge-Intensive NLP Tasks" (2020), section 2.2. It is
the baseline that papers on graph retrieval compare with, under this name.

The question and all passages are embedded; the passages with the highest cosine to the question are the evidence.

Differences from the paper:
- A retriever trained with the generator → the user's embedder, because users rarely have data to train one.
- No minimum cosine → `min_similarity`, because a far passage is no evidence.
- 5 or 10 passages → `chunk_top_k` passages, because one limit makes strategies comparable.
"""

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.steps.seeds import embed, find_nearest_passages
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` chunks nearest to the question by cosine."""
    vectors = await embed([query.text], tools.embedder)
    chunks, seed = await find_nearest_passages(query, vectors[query.text], view, tools)
    return Evidence(chunks=chunks, seeds=(seed,))


STRATEGY = Strategy(
    name="naive",
    retrieve=retrieve,
    faithful={"chunk_top_k": 10, "min_similarity": -1.0},
    summary="passages nearest to the question by vector",
    after="vector RAG",
    when="one passage holds the answer, perhaps in other words than the question",
    needs=("chunk vectors",),
)
