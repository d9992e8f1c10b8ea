"""naive: the passages most similar to the question, the vector search every graph method is measured against."""

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.steps.search import embed, nearest_passages
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` chunks nearest to the question by cosine, at least `min_similarity`."""
    vectors = await embed([query.text], tools.embedder)
    chunks, seed = await nearest_passages(query, vectors[query.text], view, tools)
    return Evidence(chunks=chunks, seeds=(seed,))


STRATEGY = Strategy(
    name="naive",
    retrieve=retrieve,
    summary="passages nearest to the question by vector",
    after="vector RAG",
    when="one passage holds the answer, perhaps in other words than the question's",
    needs=("chunk vectors",),
)
