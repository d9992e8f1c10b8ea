"""Reranking: a model that reads question and passage together puts the passages of any strategy in order."""

from collections.abc import Sequence
from dataclasses import replace

from quipu.errors import QuipuError
from quipu.model.evidence import Evidence, Hit
from quipu.model.graph import Chunk, chunk_text
from quipu.model.query import Query
from quipu.ports.providers import Reranker

WIDER = 3  # times as many passages are searched as are kept


def widened(query: Query) -> Query:
    """Return the query with more passages, for a reranker to choose from."""
    return replace(query, chunk_top_k=query.chunk_top_k * WIDER)


async def rerank(query: Query, evidence: Evidence, chunks: Sequence[Chunk], reranker: Reranker) -> Evidence:
    """Return the evidence with the `chunk_top_k` passages that score highest, equal scores in the order they had.

    `chunks` are its passages. Where the reranker cannot be had, the passages stay as they are and a note says why.
    """
    text_by_id = {chunk.id: chunk_text(chunk.title, chunk.header, chunk.text) for chunk in chunks}
    hits = [hit for hit in evidence.chunks if hit.id in text_by_id]
    if not hits:
        return evidence
    try:
        scores = await reranker.score(query.search_text or query.text, [text_by_id[hit.id] for hit in hits])
    except QuipuError as error:
        note = f"not reranked: {error.message}"
        return replace(evidence, chunks=tuple(hits[: query.chunk_top_k]), notes=(*evidence.notes, note))
    ranked = sorted(range(len(hits)), key=lambda place: (-scores[place], place))[: query.chunk_top_k]
    return replace(
        evidence,
        chunks=tuple(_scored(hits[place], scores[place], place + 1, reranker.identity) for place in ranked),
    )


def _scored(hit: Hit, score: float, rank: int, reranker: str) -> Hit:
    return Hit(id=hit.id, score=score, reason=f"{hit.reason}; {reranker} scores it {score:.3f}, it was rank {rank}")
