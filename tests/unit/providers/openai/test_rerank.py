"""Rerankers in the shapes services give them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from quipu.errors import Overloaded, QuipuError, Refused, Unavailable
from quipu.model.chat import TokenCount
from quipu.model.secret import Secret
from quipu.providers.openai.catalog import PROVIDERS
from quipu.providers.openai.endpoint import Endpoint
from quipu.providers.openai.rerank import HttpReranker
from quipu.testing.scripted.script import Fault, FaultName, Script
from quipu.testing.server import ServerHandle
from quipu.wrap.metered_models import CountingReranker
from tests.unit.providers.openai.raw import Asked, answering, count, endpoint, failure, reply

QUESTION = "What are knots?"
TEXTS = ["Rain fell.", "Knots are records.", "What knots are."]


@asynccontextmanager
async def reranking(url: str, provider: str = "jina", total_s: float = 60.0) -> AsyncIterator[HttpReranker]:
    reranker = HttpReranker(endpoint(url, provider, total_s=total_s), "m", count_tokens=count)
    try:
        yield reranker
    finally:
        await reranker.aclose()


@pytest.mark.parametrize("provider", ["jina", "cohere", "vllm", "tei", "custom"])
async def test_each_text_gets_its_score(server: ServerHandle, provider: str) -> None:
    server.configure(Script())
    async with reranking(server.base_url, provider) as reranker:
        scores = await reranker.score(QUESTION, TEXTS)
        assert isinstance(reranker, CountingReranker)
        assert await reranker.score(QUESTION, []) == []
    assert len(scores) == 3
    assert scores[0] < min(scores[1:])


_SCORED: list[dict[str, float]] = [{"index": 2, "SCORE": 0.9}, {"index": 0, "SCORE": 0}, {"index": 1, "SCORE": -2.5}]
_NAMED = [{name.replace("SCORE", "relevance_score"): value for name, value in each.items()} for each in _SCORED]
_BARE = [{name.replace("SCORE", "score"): value for name, value in each.items()} for each in _SCORED]


@pytest.mark.parametrize("body", [{"results": _NAMED}, {"data": _NAMED}, _BARE, {"results": _BARE}])
async def test_scores_are_read_in_every_shape(body: object) -> None:
    async with answering(reply(body)) as raw, reranking(raw.url) as reranker:
        assert await reranker.score(QUESTION, TEXTS) == [0.0, -2.5, 0.9]


@pytest.mark.parametrize(
    ("provider", "path", "fields"),
    [
        ("jina", "/v1/rerank", {"documents": TEXTS, "top_n": 3, "return_documents": False}),
        ("vllm", "/v1/rerank", {"documents": TEXTS, "top_n": 3}),
        ("voyage", "/v1/rerank", {"documents": TEXTS, "top_k": 3}),
        ("tei", "/rerank", {"texts": TEXTS, "truncate": True}),
    ],
)
async def test_each_service_is_asked_in_its_own_way(provider: str, path: str, fields: dict[str, object]) -> None:
    results = reply({"results": [{"index": n, "relevance_score": n} for n in range(3)]})
    async with answering(results) as raw, reranking(raw.url, provider) as reranker:
        await reranker.score(QUESTION, TEXTS)
    assert raw.asked[0].path == path
    assert raw.asked[0].fields == {"model": "m", "query": QUESTION, **fields}


async def test_a_server_that_wants_texts_is_given_them_from_then_on() -> None:
    def answer(asked: Asked) -> bytes:
        if "texts" not in asked.fields:
            return reply({"error": "Failed to deserialize: missing field `texts`", "error_type": "Validation"}, 422)
        return reply([{"index": n, "score": n} for n in range(3)])

    async with answering(answer) as raw, reranking(raw.url, "custom") as reranker:
        assert await reranker.score(QUESTION, TEXTS) == [0, 1, 2]
        await reranker.score(QUESTION, TEXTS)
    assert [each.path for each in raw.asked] == ["/v1/rerank", "/rerank", "/rerank"]


def test_cohere_reranks_at_an_address_of_its_own() -> None:
    cohere = Endpoint(provider=PROVIDERS["cohere"], key=Secret("x"))
    reranker = HttpReranker(cohere, "rerank-v3.5", count_tokens=count)
    assert reranker.url == "https://api.cohere.com/v2/rerank"
    assert reranker.identity == "cohere/rerank-v3.5"


async def test_many_texts_are_sent_in_batches_a_server_takes() -> None:
    def answer(asked: Asked) -> bytes:
        texts = asked.fields["texts"]
        assert isinstance(texts, list)
        return reply([{"index": n, "score": float(text)} for n, text in enumerate(texts)])

    async with answering(answer) as raw, reranking(raw.url, "tei") as reranker:
        assert await reranker.score(QUESTION, [str(n) for n in range(70)]) == list(range(70))
    assert len(raw.asked) == 3


async def test_tokens_are_the_services_or_else_our_own() -> None:
    results = [{"index": 0, "relevance_score": 1}]
    answers = (reply({"results": results, "usage": {"total_tokens": 9}}), reply({"results": results}))
    async with answering(*answers) as raw, reranking(raw.url) as reranker:
        assert await reranker.score_counted(QUESTION, ["one two"]) == ([1.0], TokenCount(input=9))
        assert await reranker.score_counted(QUESTION, ["one two"]) == ([1.0], TokenCount(input=5))


@pytest.mark.parametrize(
    "results",
    [
        [],
        [{"index": 0, "relevance_score": 1}],
        [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 1}, {"index": 1, "relevance_score": 1}],
        [{"index": 0, "relevance_score": 1}, {"index": 1, "relevance_score": None}, {"index": 2, "relevance_score": 1}],
        [{"index": 0, "relevance_score": 1}, {"index": 1, "relevance_score": "1"}, {"index": 2, "relevance_score": 1}],
    ],
)
async def test_scores_that_are_none_are_refused(results: object) -> None:
    async with answering(reply({"results": results})) as raw, reranking(raw.url) as reranker:
        with pytest.raises(Overloaded, match="of 3 texts") as caught:
            await reranker.score(QUESTION, TEXTS)
    assert caught.value.may_cost


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failure(401, "Invalid API key"), Unavailable),
        (failure(404, "Not Found"), Unavailable),
        (reply({"status": "ok"}), Unavailable),
        (failure(422, "query must be text"), Refused),
        (failure(429, "Too many requests"), Overloaded),
        (failure(500, "no"), Overloaded),
    ],
)
async def test_every_answer_is_one_error(answer: bytes, kind: type[QuipuError]) -> None:
    async with answering(answer) as raw, reranking(raw.url) as reranker:
        with pytest.raises(kind, match="jina/m at"):
            await reranker.score(QUESTION, TEXTS)


@pytest.mark.parametrize("name", [FaultName.COUNT, FaultName.NAN, FaultName.CUT_BODY, FaultName.TIMEOUT])
async def test_faults_in_the_answer_are_transient(server: ServerHandle, name: FaultName) -> None:
    server.configure(Script(faults=(Fault(name=name),)))
    async with reranking(server.base_url, total_s=0.3) as reranker:
        with pytest.raises(Overloaded):
            await reranker.score(QUESTION, TEXTS)
