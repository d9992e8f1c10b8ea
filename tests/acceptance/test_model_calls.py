"""What each strategy asks of a language model before the answer, counted by a server over HTTP: as often as it says."""

import asyncio
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from quipu.model.cluster import Hierarchy
from quipu.model.derivation import COMMUNITIES
from quipu.model.document import SourceDocument
from quipu.model.query import Turn
from quipu.retrieve import STRATEGIES
from quipu.retrieve.steps import prompt_items
from quipu.testing.scripted.script import CHATS, RequestKind
from quipu.testing.server.process import ServerHandle
from tests.laws.derived_world import keep_all
from tests.laws.model_counts import differences, spent_since
from tests.laws.model_world import model_engine, model_settings, script

ASKED = "Who travelled with Marco Polo to the court of Kublai Khan, says the book of {}?"
TOWNS = ("Acre", "Bari", "Cori", "Dijon", "Erfurt", "Fano", "Genoa")
OPTIONS: dict[str, Any] = {"with_answer": False, "min_similarity": -1.0}  # drift does not ask what nothing is found for
WITH_KEYWORDS = tuple(name for name, strategy in STRATEGIES.items() if strategy.wants_keywords)
EXPECTED = {
    **{name: Counter[RequestKind]() for name in STRATEGIES},
    **{name: Counter({RequestKind.KEYWORDS: 1}) for name in WITH_KEYWORDS},
    "community_global": Counter({RequestKind.POINTS: 1}),
    "drift": Counter({RequestKind.IMAGINE: 1, RequestKind.PRIMER: 5, RequestKind.FOLLOW_UP: 12}),
    "hippo": Counter({RequestKind.FACTS: 1}),
    "path": Counter({RequestKind.TERMS: 1}),
}


def letter(town: str) -> SourceDocument:
    """Return a document about four people of a town, each of whom knows the others: a community of its own."""
    people = [f"{name} {town}" for name in ("Marco", "Bruno", "Clara", "Dora")]
    said = [f"In {1200 + len(a)} did {a} say that {b} met them." for a, b in combinations(people, 2)]
    text = " ".join([*said, f"{people[0]} travelled to the court of Kublai Khan."])
    return SourceDocument(
        id=f"{town}.md", content=text.encode(), media_type="text/markdown", title=f"Letters of {town}"
    )


@pytest.fixture(scope="module")
def index(server: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that a model has read, with all that is made on demand."""
    folder = tmp_path_factory.mktemp("calls") / "kb"
    server.configure(script())
    asyncio.run(_build(folder, server))
    return folder


async def _build(folder: Path, server: ServerHandle) -> None:
    async with model_engine(model_settings(folder, server.base_url)) as kb:
        await kb.add(*map(letter, TOWNS))
        await keep_all(kb)


async def calls_of(
    strategy: str, about: str, index: Path, server: ServerHandle, **options: Any
) -> Counter[RequestKind]:
    """Return what is asked of the chat model for a question; the trace must count the same.

    `about` makes it a question of its own: what was asked before costs nothing.
    """
    server.reset()
    async with model_engine(model_settings(index, server.base_url)) as kb:
        trace = (await kb.query(ASKED.format(about), strategy=strategy, **{**OPTIONS, **options})).trace
    served = (await asyncio.to_thread(server.settled)).requests
    calls = Counter(each.kind for each in served if each.kind in CHATS)
    assert trace.n_calls == calls.total()
    return calls


@pytest.mark.parametrize("name", list(STRATEGIES))
async def test_a_strategy_asks_a_model_as_often_as_it_says(name: str, index: Path, server: ServerHandle) -> None:
    calls = await calls_of(name, name, index, server)
    assert calls == EXPECTED[name]
    assert calls.total() == STRATEGIES[name].n_model_calls


@pytest.mark.parametrize("name", ["bypass", "mix", "community_global", "community_local"])
async def test_an_answer_is_one_call_more(name: str, index: Path, server: ServerHandle) -> None:
    calls = await calls_of(name, f"{name} and others", index, server, with_answer=True)
    assert calls == EXPECTED[name] + Counter({RequestKind.ANSWER: 1})


async def test_an_answer_is_refined_with_a_call_for_each_part_and_no_call_is_paid_for_twice(
    index: Path, server: ServerHandle
) -> None:
    options: dict[str, Any] = {"with_answer": True, "passages_per_call": 3}
    calls = await calls_of("naive", "refinement", index, server, **options)
    server.reset()
    async with model_engine(model_settings(index, server.base_url)) as kb:
        answer = await kb.query(ASKED.format("refinement"), strategy="naive", min_similarity=-1.0, passages_per_call=3)
    n_calls = -(-len(answer.trace.evidence.chunks) // 3)
    assert n_calls > 1
    assert calls == Counter({RequestKind.ANSWER: n_calls})
    assert f"the answer was refined over {n_calls} calls" in answer.trace.notes
    served = (await asyncio.to_thread(server.settled)).requests
    assert not [request for request in served if request.kind in CHATS]


@pytest.mark.parametrize("name", WITH_KEYWORDS)
async def test_keywords_that_are_given_are_not_asked_for(name: str, index: Path, server: ServerHandle) -> None:
    assert not await calls_of(name, f"{name} again", index, server, low_level_keywords=("Marco Polo",))


async def test_an_earlier_turn_costs_a_call_to_make_the_question_stand_alone(index: Path, server: ServerHandle) -> None:
    history = (Turn(role="user", text="Tell me of Marco Polo."), Turn(role="assistant", text="He was a merchant."))
    assert await calls_of("naive", "history", index, server, history=history) == Counter({RequestKind.REWRITE: 1})
    assert not await calls_of("naive", "the past", index, server, history=history, rewrite_question=False)
    assert not await calls_of("bypass", "history", index, server, history=history)


async def test_community_global_asks_once_for_each_batch_of_reports(
    index: Path, server: ServerHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_items, "CALL_TOKENS", 600)
    calls = await calls_of("community_global", "batches", index, server)
    reports = await n_reports(index, server)
    assert set(calls) == {RequestKind.POINTS}
    assert 2 < calls.total() <= reports


async def test_dynamic_selection_asks_once_more_for_each_report_it_rates(index: Path, server: ServerHandle) -> None:
    calls = await calls_of("community_global", "choices", index, server, dynamic_selection=True, community_level=0)
    assert calls == Counter({RequestKind.RATE: await n_reports(index, server, level=0), RequestKind.POINTS: 1})
    calls = await calls_of("community_global", "more choices", index, server, dynamic_selection=True)
    assert set(calls) == {RequestKind.RATE, RequestKind.POINTS}
    assert calls[RequestKind.RATE] <= await n_reports(index, server)


@pytest.mark.parametrize("n", [0, 2])
async def test_drift_asks_three_times_as_often_as_it_may_follow_up(n: int, index: Path, server: ServerHandle) -> None:
    calls = await calls_of("drift", f"{n} questions", index, server, drift_follow_ups=n)
    assert calls == Counter({RequestKind.IMAGINE: 1, RequestKind.PRIMER: 5}) + Counter({RequestKind.FOLLOW_UP: 3 * n})


async def test_a_hierarchy_asks_once_for_each_aggregate_and_reports_once_for_each_community(
    server: ServerHandle, tmp_path: Path
) -> None:
    server.configure(script())
    async with model_engine(model_settings(tmp_path / "kb", server.base_url)) as kb:
        await kb.add(*map(letter, TOWNS))
        before = await kb.usage()
        server.reset()
        await keep_all(kb)
        served = (await asyncio.to_thread(server.settled)).requests
        assert differences(spent_since(before, await kb.usage()), served) == []
        async with kb._store.view() as view:
            sizes = {each: len(await view.clusters(each)) for each in Hierarchy}
    kinds = Counter(each.kind for each in served if each.kind in CHATS)
    assert kinds.keys() <= {RequestKind.REPORT, RequestKind.AGGREGATE, RequestKind.CONNECT}
    assert kinds[RequestKind.AGGREGATE] == sizes[Hierarchy.AGGREGATES] > 0
    assert 0 < kinds[RequestKind.REPORT] <= sizes[Hierarchy.COMMUNITIES]


@pytest.mark.parametrize("name", ["mix", "community_global", "drift", "hippo", "path"])
async def test_what_was_asked_before_is_not_asked_again(name: str, index: Path, server: ServerHandle) -> None:
    await calls_of(name, f"{name} once", index, server)
    server.reset()
    async with model_engine(model_settings(index, server.base_url)) as kb:
        await kb.retrieve(ASKED.format(f"{name} once"), strategy=name, **OPTIONS)
    served = (await asyncio.to_thread(server.settled)).requests
    assert [each.kind for each in served if each.kind in CHATS] == []


async def n_reports(index: Path, server: ServerHandle, level: int | None = None) -> int:
    """Return how many reports on communities there are, of a level or of all."""
    async with model_engine(model_settings(index, server.base_url)) as kb, kb._store.view() as view:
        counts = await view.derivation_counts(COMMUNITIES)
    return sum(each.n_reports for each in counts.levels if level in (None, each.level))
