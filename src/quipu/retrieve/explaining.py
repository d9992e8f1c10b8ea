"""Explaining: why a chunk is among the evidence, told from the evidence and the graph alone, whatever the strategy."""

from collections.abc import Awaitable, Callable

from quipu.errors import InvalidInput, NotFound
from quipu.model.evidence import Evidence, ExplainedChunk, Explanation, Hit, Timing
from quipu.model.graph import Chunk
from quipu.model.query import Filter, Query
from quipu.ports.store import ReadView
from quipu.retrieve.chains import chains
from quipu.retrieve.grounds import Known, found_beside, grounds, read_known

FIRST = 3  # chunks that are explained where none is named
Explain = Callable[[Evidence, Timing, ReadView], Awaitable[Explanation]]


def explaining(query: Query, *, chunk: str = "", rank: int | None = None) -> Explain:
    """Return what explains the evidence for a query: the chunk with this id or rank, else the first three.

    Raises InvalidInput where both are given; what is returned raises NotFound for a chunk or a rank there is none of.
    """
    if chunk and rank is not None:
        raise InvalidInput("A chunk is named by its id or by its rank, not by both.", remedy="Give one of them.")

    async def explain(evidence: Evidence, _timing: Timing, view: ReadView) -> Explanation:
        chosen = _chosen(evidence, query.strategy, chunk, rank)
        known = await read_known(evidence, view)
        chunks = {each.id: each for each in await view.chunks([hit.id for _, hit in chosen])}
        if chunk and chunk not in chunks:
            raise NotFound(
                f"There is no chunk {chunk!r}{' that the filter leaves' if query.filter != Filter() else ''}.",
                remedy="`quipu show document ID` lists chunk ids.",
            )
        return Explanation(
            question=query.text,
            strategy=query.strategy,
            revision=view.revision,
            n_chunks=len(evidence.chunks),
            n_claims=len(evidence.claims),
            n_reports=len(evidence.reports),
            n_points=len(evidence.points),
            ranks_passages=evidence.ranks_passages,
            looks_up=evidence.looks_up,
            seeds=evidence.seeds,
            chunks=tuple(_explained(place, hit, chunks[hit.id], known) for place, hit in chosen if hit.id in chunks),
            beside=() if evidence.ranks_passages or chunk else tuple(found_beside(known)),
            names=tuple(sorted(known.names.items())),
            notes=evidence.notes,
        )

    return explain


def _chosen(evidence: Evidence, strategy: str, chunk: str, rank: int | None) -> list[tuple[int, Hit]]:
    """Return the hits to explain with their ranks; a chunk that was not found has rank 0."""
    ranked = list(enumerate(evidence.chunks, 1))
    if chunk:
        absent = Hit(id=chunk, score=0.0, reason="not among the evidence")
        return [each for each in ranked if each[1].id == chunk] or [(0, absent)]
    if rank is None:
        return ranked[:FIRST]
    if not 1 <= rank <= len(ranked):
        raise _no_rank(evidence, strategy, rank)
    return ranked[rank - 1 : rank]


def _no_rank(evidence: Evidence, strategy: str, rank: int) -> NotFound:
    if not evidence.looks_up:
        return NotFound(
            f"The strategy '{strategy}' looks nothing up, so there is no passage of rank {rank}.",
            remedy="Choose another strategy; `quipu strategies` lists them.",
        )
    if not evidence.ranks_passages:
        return NotFound(
            f"The strategy '{strategy}' ranks no passages.", remedy="Leave out the rank to see what it found instead."
        )
    if evidence.chunks:
        remedy = f"It ends with rank {len(evidence.chunks)}."
        return NotFound(f"The evidence has no passage of rank {rank}.", remedy=remedy)
    return NotFound(
        f"The evidence has no passage of rank {rank}: none was found.",
        remedy="Leave out the rank to see where the search began.",
    )


def _explained(rank: int, hit: Hit, chunk: Chunk, known: Known) -> ExplainedChunk:
    return ExplainedChunk(
        id=chunk.id,
        document_id=chunk.document_id,
        title=chunk.title,
        text=chunk.text,
        rank=rank,
        score=hit.score,
        reason=hit.reason,
        grounds=tuple(grounds(chunk.id, known)),
        chains=chains(chunk.id, known),
    )
