"""lexical: the passages that share the question's rarest words, by BM25."""

from quipu.model.evidence import Evidence, Hit, Seed
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` chunks that match the words of the question best (Robertson and Zaragoza 2009)."""
    found = await view.full_text(query.text, query.chunk_top_k)
    chunks = tuple(
        Hit(id=scored.id, score=scored.score, reason=f"BM25 {scored.score:.2f} for the question's words")
        for scored in found
    )
    return Evidence(chunks=chunks, seeds=(Seed(text=query.text, kind="full text", matches=tuple(found)),))


STRATEGY = Strategy(
    name="lexical",
    retrieve=retrieve,
    summary="passages that share the question's rarest words (BM25)",
    after="Okapi BM25",
    when="the question uses the documents' own words: names, codes, dates, quotations",
    needs=("full text",),
)
