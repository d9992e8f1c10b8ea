"""Tests of comparing: one question, several strategies, each told by what it found, took and said."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.errors import InvalidInput
from quipu.model.answer import Overlap, StrategyResult
from quipu.model.query import Filter
from quipu.retrieve import STRATEGIES
from quipu.testing.llm import ScriptedLLM, ScriptedReranker
from quipu.wrap.chain import RerankerChain
from quipu.wrap.meter import ModelPricing
from tests.laws.model_world import script, scripted_engine, travels
from tests.laws.world import engine
from tests.unit.engine.fakes import Shelf, add_strategy, asking, shelve

QUESTION = "Who did Marco Polo travel with?"


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[Quipu]:
    """An engine without a model."""
    async with engine(tmp_path) as opened:
        await opened.add(*(travels(f"{name}.md") for name in "abc"))
        yield opened


def _facts(row: StrategyResult) -> tuple[object, ...]:
    """Return all of a row but its time."""
    answer = row.answer.text if row.answer else ""
    return (row.strategy, answer, row.error, row.chunks, row.entities, row.n_context_tokens, row.n_calls)


async def test_each_strategy_is_told_by_what_it_found_and_said(kb: Quipu) -> None:
    found = await kb.compare(QUESTION, ["naive", "lexical", "naive"])
    assert [row.strategy for row in found.results] == ["naive", "lexical"]
    for row in found.results:
        answer = await kb.query(QUESTION, strategy=row.strategy)
        assert row.answer is not None
        assert (row.answer.text, row.answer.trace.evidence) == (answer.text, answer.trace.evidence)
        assert [chunk.id for chunk in row.chunks] == [hit.id for hit in answer.trace.evidence.chunks][:10]
        assert {chunk.document_id for chunk in row.chunks} <= {"a.md", "b.md", "c.md"}
        assert row.n_context_tokens == kb._components.ingest_config.tokenizer.count(answer.context) > 0
        assert (row.n_calls, row.error) == (0, "")
    assert found.question == QUESTION


async def test_entities_are_told_by_name(kb: Quipu) -> None:
    (row,) = (await kb.compare(QUESTION, ["local"])).results
    assert "Marco Polo" in row.entities


async def test_overlap_is_the_share_of_passages_both_found(kb: Quipu) -> None:
    found = await kb.compare(QUESTION, ["naive", "lexical", "bypass"], chunk_top_k=2)
    naive, lexical = (
        {hit.id for hit in row.answer.trace.evidence.chunks} for row in found.results[:2] if row.answer is not None
    )
    shared = len(naive & lexical)
    jaccard = round(shared / len(naive | lexical), 6)
    assert found.overlaps == (Overlap(first="naive", second="lexical", jaccard=jaccard, n_both=shared),)


async def test_a_strategy_that_fails_is_a_row_with_its_reason(kb: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    shelve(kb, Shelf("shed"))
    add_strategy(monkeypatch, lambda _: [], needs=("shed",))
    failed, fine = (await kb.compare(QUESTION, ["talkative", "naive"])).results
    assert failed.answer is None
    assert "quipu refresh shed" in failed.error
    assert fine.answer is not None


async def test_by_default_all_that_can_be_run_are_asked_and_the_others_told(kb: Quipu) -> None:
    found = await kb.compare(QUESTION)
    left_out = dict(found.skipped)
    assert "no language model" in left_out["bypass"]
    assert {"naive", "lexical", "local", "global", "hybrid", "mix"} <= {row.strategy for row in found.results}
    assert not left_out.keys() & {row.strategy for row in found.results}


async def test_by_default_what_is_lacking_is_made_where_that_is_asked_for(kb: Quipu) -> None:
    assert "quipu refresh" in dict((await kb.compare(QUESTION)).skipped)["linear"]
    found = await kb.compare(QUESTION, auto_refresh=True)
    assert dict(found.skipped).keys() == {"bypass"}
    assert [row.error for row in found.results] == [""] * (len(STRATEGIES) - 1)


async def test_a_service_that_is_paid_for_is_asked_once_for_each_strategy(kb: Quipu) -> None:
    reranker = ScriptedReranker(script())
    chain = RerankerChain(
        provider=reranker,
        pricing=ModelPricing(model="words", price=None, count_tokens=len),
        save_usage=kb._store.record_call,
    )
    kb._components = replace(kb._components, models=replace(kb._components.models, reranker_chain=chain))
    await kb.compare(QUESTION, ["naive", "lexical"])
    assert reranker.n_calls == 2


async def test_an_unknown_strategy_is_refused_before_any_is_asked(kb: Quipu) -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'naive'"):
        await kb.compare(QUESTION, ["mix", "naiv"])


async def test_options_and_filters_are_those_of_a_query(kb: Quipu) -> None:
    (row,) = (await kb.compare(QUESTION, ["naive"], filter=Filter(documents=("b.md",)), chunk_top_k=1)).results
    assert [chunk.document_id for chunk in row.chunks] == ["b.md"]


async def test_with_a_model_calls_are_counted_the_same_whoever_asked_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_engine(tmp_path, ScriptedLLM(script())) as kb:
        await kb.add(travels("a.md"), travels("b.md"))
        add_strategy(monkeypatch, lambda replies: [] if replies else [asking("first"), asking("second")])
        names = ["mix", "local", "naive", "talkative"]
        found = await kb.compare(QUESTION, names)
        assert [row.n_calls for row in found.results] == [2, 2, 1, 3]  # keywords or what it asks, and the answer
        again = await kb.compare(QUESTION, names)
        assert list(map(_facts, found.results)) == list(map(_facts, again.results))


async def test_reports_are_told_by_id_and_title(kb: Quipu) -> None:
    await kb.refresh(["reports"])
    (row,) = (await kb.compare(QUESTION, ["community_local"])).results
    assert row.reports
    assert row.answer is not None
    assert [each for each, _ in row.reports] == [hit.id for hit in row.answer.trace.evidence.reports][:10]
    for identifier, title in row.reports:
        found = (await kb.report(identifier)).report
        assert found is not None
        assert found.title == title
