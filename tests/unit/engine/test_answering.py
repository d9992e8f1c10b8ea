"""Tests of answering: what is open while a model works."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from quipu.engine.answering import RERANK_FACTOR, answer_question, find_evidence
from quipu.engine.components import Components, Models
from quipu.engine.status import DerivationStates
from quipu.errors import Overloaded
from quipu.ingest.documents import IngestConfig
from quipu.ingest.local import LocalExtractor
from quipu.model.answer import Answer
from quipu.model.chat import Role
from quipu.model.evidence import Evidence
from quipu.model.query import Filter, Query
from quipu.model.usage import Stage, UsageRow
from quipu.parse import parse
from quipu.ports.ingest import FileTypes
from quipu.ports.store import CallReply, ReadView
from quipu.retrieve import STRATEGIES
from quipu.testing.llm import ScriptedLLM, ScriptedReranker
from quipu.wrap.chain import EmbedderChain, LLMChain, ModelLink, RerankerChain
from quipu.wrap.meter import Meter, ModelPricing
from tests.unit.retrieve.conftest import PAGES
from tests.unit.retrieve.fakes import Library

PRICING = ModelPricing(model="fake", price=None, count_tokens=len)
EMBEDDING_NOTHING = ("bypass", "lexical", "community_global")


@dataclass
class _Watched:
    """A store that counts its open views, and an embedder that notes how many there are when it is asked."""

    library: Library
    n_open: int = 0
    n_views: int = 0
    seen: list[int] = field(default_factory=list)
    texts: list[tuple[str, ...]] = field(default_factory=list)
    error: Exception | None = None

    @property
    def identity(self) -> str:
        return self.library.embedder.identity

    @property
    def dimension(self) -> int:
        return self.library.embedder.dimension

    async def set_embedder(self, identity: str, dimension: int) -> None:
        assert (identity, dimension) == (self.identity, self.dimension)

    @asynccontextmanager
    async def view(self, allowed: Filter | None = None) -> AsyncIterator[ReadView]:
        async with self.library.view(allowed) as view:
            self.n_open += 1
            self.n_views += 1
            try:
                yield view
            finally:
                self.n_open -= 1

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return await self.embed_queries(texts)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.seen.append(self.n_open)
        self.texts.append(tuple(texts))
        if self.error:
            raise self.error
        return await self.library.embedder.embed(texts)

    async def find_replies(self, keys: Sequence[str]) -> dict[str, str]:
        return {}

    async def record_call(self, usage: Sequence[UsageRow], reply: CallReply | None = None) -> None:
        return None


class Reranker(ScriptedReranker):
    """Notes how many texts it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.n_texts: list[int] = []

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        self.n_texts.append(len(texts))
        return await super().score(question, texts)


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[_Watched]:
    library = Library(tmp_path)
    await library.open()
    await library.publish(*PAGES)
    yield _Watched(library)
    await library.close()


def _components(watched: _Watched, *, is_remote: bool = True, reranker: ScriptedReranker | None = None) -> Components:
    llm = LLMChain([ModelLink(llm=ScriptedLLM(), pricing=PRICING)], watched)  # type: ignore[arg-type]
    models = Models(
        meter=Meter(),
        chains={Role.KEYWORDS: llm, Role.ANSWER: llm},
        embedder_chain=EmbedderChain(provider=watched, pricing=PRICING, save_usage=watched.record_call)
        if is_remote
        else None,
        reranker_chain=RerankerChain(provider=reranker, pricing=PRICING, save_usage=watched.record_call)
        if reranker
        else None,
    )
    tools = watched.library.tools
    ingest_config = IngestConfig(
        parse=parse, file_types=FileTypes({}), extractor=LocalExtractor(), tokenizer=tools.tokenizer, embedder=watched
    )
    return Components(
        path=Path(),
        store=watched,  # type: ignore[arg-type]
        vectors=tools.vectors,
        topology=tools.topology,
        embedder=watched,
        ingest_config=ingest_config,
        make_query=lambda text: Query(text=text),
        models=models,
        catalog=(),
    )


async def _answer(components: Components, query: Query) -> Answer:
    return await answer_question(query, components, DerivationStates(components))


async def _evidence(components: Components, **options: Any) -> Evidence:
    query = Query(text="Whom did Marco Polo serve?", **options)
    return await find_evidence(query, components, DerivationStates(components))


@pytest.mark.parametrize("is_reranked", [False, True])
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
async def test_no_view_is_open_while_a_remote_embedder_is_asked(
    watched: _Watched, strategy: str, is_reranked: bool
) -> None:
    query = Query(text="Whom did Marco Polo serve?", strategy=strategy)
    reranker = ScriptedReranker() if is_reranked else None
    answer = await _answer(_components(watched, reranker=reranker), query)
    n_calls = len(watched.seen)
    assert watched.seen == [0] * n_calls
    assert (n_calls == 0) == (strategy in EMBEDDING_NOTHING)
    assert sum(row.n_calls for row in answer.usage if row.stage is Stage.EMBED) == n_calls
    plain = await _answer(_components(watched, is_remote=False, reranker=reranker), query)
    assert answer.trace.evidence == plain.trace.evidence


async def test_an_embedder_of_this_process_is_asked_in_the_one_view_there_is(watched: _Watched) -> None:
    await _evidence(_components(watched, is_remote=False), strategy="hybrid")
    assert (watched.n_views, watched.seen) == (1, [1])


async def test_a_question_asked_again_asks_no_embedder(watched: _Watched) -> None:
    components = _components(watched)
    first, again = [await _evidence(components, strategy="mix") for _ in range(2)]
    assert (first, len(watched.texts)) == (again, 1)


async def test_an_embedder_that_fails_is_told_of(watched: _Watched) -> None:
    watched.error = Overloaded("Too busy.")
    with pytest.raises(Overloaded, match="Too busy"):
        await _evidence(_components(watched), strategy="naive")
    assert watched.n_open == 0


async def test_more_passages_are_reranked_than_are_kept(watched: _Watched) -> None:
    reranker = Reranker()
    evidence = await _evidence(
        _components(watched, reranker=reranker), strategy="naive", chunk_top_k=1, min_similarity=-1.0
    )
    assert len(evidence.chunks) == 1
    assert reranker.n_texts == [RERANK_FACTOR]


async def test_the_preset_is_that_of_the_strategy_that_is_asked(watched: _Watched) -> None:
    """The naive search of the source has no minimum cosine."""
    components = _components(watched)
    near = await _evidence(components, strategy="naive", min_similarity=0.2)
    every = await _evidence(components, strategy="naive", min_similarity=-1.0)
    faithful = await _evidence(components, strategy="naive", preset="faithful")
    assert faithful.chunks == every.chunks != near.chunks
    assert faithful.notes == ("the preset 'faithful': options that are not set have the values of vector RAG",)


async def test_a_question_can_do_without_the_reranker(watched: _Watched) -> None:
    reranker = Reranker()
    components = _components(watched, reranker=reranker)
    plain = await _evidence(_components(watched), strategy="naive", min_similarity=-1.0)
    assert await _evidence(components, strategy="naive", min_similarity=-1.0, rerank=False) == plain
    assert reranker.n_texts == []


async def test_passages_that_the_reranker_scores_too_low_are_left_out(watched: _Watched) -> None:
    components = _components(watched, reranker=Reranker())
    everything = await _evidence(components, strategy="naive", min_similarity=-1.0)
    scores = [hit.score for hit in everything.chunks]
    limit = max(scores)
    evidence = await _evidence(components, strategy="naive", min_similarity=-1.0, min_rerank_score=limit)
    assert [hit.id for hit in evidence.chunks] == [hit.id for hit in everything.chunks if hit.score >= limit]
    n_left_out = len(scores) - len(evidence.chunks)
    assert n_left_out > 0
    assert any(f"left out: {n_left_out} passage" in note for note in evidence.notes)
