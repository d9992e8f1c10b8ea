"""Metered: models whose every attempt is counted."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from quipu.errors import OverBudget, Overloaded
from quipu.model.chat import ChatRequest, FinishReason, Role, TokenCount
from quipu.model.usage import SpendingLimit, Stage, UsageRow
from quipu.ports.providers import Embedder, Reranker
from quipu.wrap.embedder import WrappedEmbedder
from quipu.wrap.meter import Meter, ModelPricing, SpendingBudget
from quipu.wrap.metered_models import EmbeddingMeter, MeteredLLM, MeteredReranker, SaveUsage
from tests.unit.wrap.fakes import (
    PRICING,
    CountingFakeEmbedder,
    CountingFakeReranker,
    FakeEmbedder,
    FakeLLM,
    FakeReranker,
    Shelf,
    completion,
    request,
    settle,
)


def _meter(subject: str | None = None) -> Meter:
    return Meter(subject=subject, today=lambda: "2026-01-02")


def _metered_embedder(
    embedder: Embedder, meter: Meter, pricing: ModelPricing, save_usage: SaveUsage
) -> WrappedEmbedder:
    return WrappedEmbedder(embedder, [EmbeddingMeter(embedder, meter, pricing, save_usage)])


def _figures(rows: Sequence[UsageRow]) -> list[tuple[str, str, int, int, int]]:
    return [(row.stage, row.subject, row.n_calls, row.tokens.input + row.tokens.output, row.cost) for row in rows]


async def test_a_reply_is_counted_for_its_stage() -> None:
    meter = _meter()
    reply = await MeteredLLM(FakeLLM(), meter, PRICING).complete(request(role=Role.SUMMARISE))
    assert reply == completion()
    assert _figures(meter.rows()) == [("summarise", "", 1, 9, 14)]


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_is_a_stage(role: Role) -> None:
    meter = _meter()
    await MeteredLLM(FakeLLM(), meter, PRICING).complete(request(role=role))
    assert [row.stage for row in meter.rows()] == [Stage(role.value)]


@pytest.mark.parametrize(
    ("asked", "of_meter", "subject"),
    [
        (replace(request(), subject="s", documents=("a.md",)), "q", "s"),
        (replace(request(), documents=("a.md", "b.md")), "q", "q"),
        (replace(request(), documents=("a.md", "b.md")), "", "a.md"),
        (request(), "", ""),
    ],
)
async def test_the_subject_is_the_requests_or_the_meters_or_the_first_document(
    asked: ChatRequest, of_meter: str, subject: str
) -> None:
    call = _meter(of_meter).child()
    await MeteredLLM(FakeLLM(), call, PRICING).complete(asked)
    assert [row.subject for row in call.rows()] == [subject]


async def test_a_reply_that_broke_off_is_counted_at_its_most() -> None:
    meter = _meter()
    broken = FakeLLM([completion(finish=FinishReason.INTERRUPTED)])
    await MeteredLLM(broken, meter, PRICING).complete(request("Who?", max_output_tokens=100))
    row = meter.rows()[0]
    assert (row.n_calls, row.n_interrupted, row.interrupted_tokens) == (
        0,
        1,
        TokenCount(input=6 + 8, output=100),
    )  # 4 by our count, and a margin


async def test_a_cancelled_call_is_counted_at_its_most() -> None:
    meter = _meter()
    task = asyncio.create_task(MeteredLLM(FakeLLM(latency_s=60.0), meter, PRICING).complete(request()))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [row.n_interrupted for row in meter.rows()] == [1]


async def test_a_schema_is_part_of_what_is_sent() -> None:
    meter = _meter()
    broken = FakeLLM([completion(finish=FinishReason.INTERRUPTED)])
    await MeteredLLM(broken, meter, PRICING).complete(replace(request("Who?"), schema="{....}"))
    assert meter.rows()[0].interrupted_tokens.input == 14 + 8 + 8


async def test_text_is_streamed_through() -> None:
    pieces: list[str] = []
    await MeteredLLM(FakeLLM([completion("a b")]), _meter(), PRICING).complete(request(), pieces.append)
    assert pieces == ["a ", "b"]


@pytest.mark.parametrize(("embedder", "n_tokens"), [(FakeEmbedder(), 5), (CountingFakeEmbedder(), 14)])
async def test_embeddings_cost_what_the_service_says_or_else_what_we_count(embedder: Embedder, n_tokens: int) -> None:
    shelf, meter = Shelf(), _meter("Who?")
    metered = _metered_embedder(embedder, meter, PRICING, shelf.record_call)
    assert (await metered.embed(["ab", "abc"])).tolist() == [[2, 1], [3, 1]]
    await metered.embed_queries(["ab", "abc"])
    assert _figures(meter.rows()) == [("embed", "Who?", 2, 2 * n_tokens, 2 * n_tokens)]
    assert _figures(shelf.spent) == [("embed", "Who?", 1, n_tokens, n_tokens)] * 2
    assert (metered.identity, metered.dimension) == ("fake/embedder", 2)


@pytest.mark.parametrize(("reranker", "n_tokens"), [(FakeReranker(), 6), (CountingFakeReranker(), 18)])
async def test_scores_cost_what_the_service_says_or_else_what_we_count(reranker: Reranker, n_tokens: int) -> None:
    shelf, meter = Shelf(), _meter()
    metered = MeteredReranker(reranker, meter, PRICING, shelf.record_call)
    assert await metered.score("?", ["ab", "abc"]) == [2, 3]
    assert _figures(shelf.spent) == _figures(meter.rows()) == [("rerank", "", 1, n_tokens, n_tokens)]


async def test_questions_and_passages_are_told_apart() -> None:
    counting, plain = CountingFakeEmbedder(), FakeEmbedder()
    for embedder in (counting, plain):
        metered = _metered_embedder(embedder, _meter(), PRICING, Shelf().record_call)
        await metered.embed(["passage"])
        await metered.embed_queries(["question"])
    assert counting.is_query == plain.is_query == [False, True]


async def test_an_embedding_that_may_have_to_be_paid_for_is_kept_as_such() -> None:
    shelf = Shelf()
    embedder = _metered_embedder(
        FakeEmbedder([Overloaded("late", may_cost=True)]), _meter(), PRICING, shelf.record_call
    )
    with pytest.raises(Overloaded):
        await embedder.embed(["abc"])
    assert [(row.n_interrupted, row.interrupted_cost) for row in shelf.spent] == [(1, 12)]


async def test_an_embedding_that_was_refused_is_not_kept() -> None:
    shelf = Shelf()
    embedder = _metered_embedder(FakeEmbedder([Overloaded("429")]), _meter(), PRICING, shelf.record_call)
    with pytest.raises(Overloaded):
        await embedder.embed(["abc"])
    assert shelf.spent == []


async def test_nothing_is_asked_over_the_budget() -> None:
    llm, embedder, reranker, shelf = FakeLLM(), FakeEmbedder(), FakeReranker(), Shelf()
    meter = Meter(budget=SpendingBudget(SpendingLimit(tokens=2)))
    with pytest.raises(OverBudget):
        await MeteredLLM(llm, meter, PRICING).complete(request())
    with pytest.raises(OverBudget):
        await _metered_embedder(embedder, meter, PRICING, shelf.record_call).embed(["abc"])
    with pytest.raises(OverBudget):
        await MeteredReranker(reranker, meter, PRICING, shelf.record_call).score("?", ["abc"])
    assert (llm.asked, embedder.asked, reranker.n_asked, shelf.spent) == ([], [], 0, [])


async def test_without_texts_nothing_is_asked() -> None:
    embedder, reranker, shelf, meter = FakeEmbedder(), FakeReranker(), Shelf(), _meter()
    metered = _metered_embedder(embedder, meter, PRICING, shelf.record_call)
    assert (await metered.embed([])).shape == (await metered.embed_queries([])).shape == (0, 2)
    assert await MeteredReranker(reranker, meter, PRICING, shelf.record_call).score("?", []) == []
    assert (embedder.asked, reranker.n_asked, meter.rows()) == ([], 0, ())
