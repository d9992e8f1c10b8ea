"""lexical: the passages that share the most and the rarest words with the question (Okapi BM25).

Source: S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.

Every word of the question that occurs in a passage adds to the passage's score: more if the word is rare in the index,
more if it is frequent in the passage, less if the passage is long. The store's full-text index computes the scores.

Differences from the paper:
- k1 and b are tuned for each collection → those of SQLite's FTS5, because there is nothing to tune them with.
- A word in over half of the passages has a negative weight → one just above 0, because a shared word is never evidence
  against a passage.
- Any analyser → Quipu's own: Russian words by their stems, others as they are written, because English stems gained
  nothing on the whole.
- Every word of the question → no stop words, because together they would weigh more than one rare word.
"""

from quipu.model.evidence import Evidence, Hit, Seed
from quipu.model.query import Query
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` chunks with the highest BM25 scores for the words of the question."""
    matches = await view.search_text(NodeKind.CHUNK, query.text, query.chunk_top_k)
    chunks = tuple(
        Hit(id=match.id, score=match.score, reason=f"BM25 {match.score:.2f} for the question's words")
        for match in matches
    )
    return Evidence(chunks=chunks, seeds=(Seed(text=query.text, kind="full text", matches=tuple(matches)),))


STRATEGY = Strategy(
    name="lexical",
    retrieve=retrieve,
    summary="passages that share the question's rarest words (BM25)",
    after="Okapi BM25",
    when="the question uses the documents' own words: names, codes, dates, quotations",
    needs=("full text",),
)
