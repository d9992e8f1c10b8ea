"""Reranking: passages in the order of a reranker, and as they were where it cannot be had."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from quipu.engine.answering import rerank
from quipu.errors import OverBudget, Overloaded, QuipuError, Unavailable
from quipu.model.evidence import Evidence, Hit
from quipu.model.graph import Chunk
from quipu.model.query import Query

QUERY = Query(text="Who ruled?", chunk_top_k=2)


class Scorer:
    """Gives the scores in turn, or raises."""

    identity = "fake/reranker"

    def __init__(self, *scores: float, error: QuipuError | None = None) -> None:
        self._scores, self._error = scores, error
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        self.asked.append((question, tuple(texts)))
        if self._error:
            raise self._error
        return list(self._scores)


def _chunk(name: str) -> Chunk:
    return Chunk(
        id=name,
        document_id=f"{name}.md",
        title=f"Title of {name}",
        ordinal=0,
        text=f"Text of {name}.",
        start=0,
        end=1,
        n_tokens=3,
        text_hash=name,
    )


CHUNKS = [_chunk(name) for name in "abc"]
EVIDENCE = Evidence(chunks=tuple(Hit(id=name, score=0.5, reason="found") for name in "abc"), notes=("before",))


def _ids(evidence: Evidence) -> list[str]:
    return [hit.id for hit in evidence.chunks]


async def test_passages_come_in_the_order_of_their_scores_with_the_reason() -> None:
    found = await rerank(QUERY, EVIDENCE, CHUNKS, Scorer(0.1, 0.3, 0.9))
    assert _ids(found) == ["c", "b"]
    assert found.chunks[0] == Hit(id="c", score=0.9, reason="found; fake/reranker scores it 0.900, it was rank 3")


async def test_equal_scores_keep_the_order_they_had() -> None:
    assert _ids(await rerank(QUERY, EVIDENCE, list(reversed(CHUNKS)), Scorer(0.5, 0.5, 0.5))) == ["a", "b"]


async def test_what_is_searched_for_is_scored_against_title_and_text() -> None:
    scorer = Scorer(1.0, 1.0, 1.0)
    await rerank(replace(QUERY, search_text="Who ruled the Yuan?"), EVIDENCE, CHUNKS, scorer)
    ((question, texts),) = scorer.asked
    assert question == "Who ruled the Yuan?"
    assert all(part in texts[0] for part in ("Title of a", "Text of a."))


async def test_without_passages_nobody_is_asked() -> None:
    scorer = Scorer()
    nothing = Evidence(entities=EVIDENCE.chunks)
    assert await rerank(QUERY, nothing, [], scorer) == nothing
    assert scorer.asked == []


@pytest.mark.parametrize("error", [Unavailable("It is gone."), Overloaded("Too many requests."), OverBudget("Spent.")])
async def test_a_reranker_that_cannot_be_had_leaves_the_order_and_a_note(error: QuipuError) -> None:
    found = await rerank(QUERY, EVIDENCE, CHUNKS, Scorer(error=error))
    assert _ids(found) == ["a", "b"]
    assert found.notes == ("before", f"not reranked: {error.message}")


async def test_a_passage_that_is_gone_meanwhile_is_left_out() -> None:
    found = await rerank(QUERY, EVIDENCE, CHUNKS[1:], Scorer(0.1, 0.2))
    assert _ids(found) == ["c", "b"]
