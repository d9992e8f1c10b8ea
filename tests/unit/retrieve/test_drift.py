"""drift: an imagined report, partial answers in folds, and rounds of follow-ups, each call counted."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from quipu.model.chat import ChatRequest
from quipu.model.query import Budget, Filter, Query
from quipu.ports.store import VectorSpace
from quipu.prompts import drift as prompt
from quipu.retrieve.drift import STRATEGY, DriftOptions, retrieve
from quipu.testing.llm import ScriptedLLM
from quipu.testing.scripted.script import Fault, FaultName, RequestKind, Script
from tests.unit.retrieve.communities import (
    CARAVANS,
    WEAVERS,
    Telling,
    chunk_of,
    divide,
    report,
    report_on,
    trades,
    with_model,
)
from tests.unit.retrieve.fakes import Library, page, titles
from tests.unit.retrieve.random_world import QUESTION, cosines, settle, world

SILK = Query(text="Who carried the silk of Bursa to Tabriz?", min_similarity=0.05)


class Answering:
    """A model whose reply to each kind of prompt is given; answers to follow-ups bring ever new ones."""

    def __init__(self, *, primer: Sequence[dict[str, object]] = (), n_more: int = 9) -> None:
        self.asked: dict[str, list[ChatRequest]] = {"hyde": [], "primer": [], "follow": []}
        self._primer, self._n_more = primer, n_more

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str]:
        return [self._reply(request) for request in requests]

    def _reply(self, request: ChatRequest) -> str:
        title = request.messages[0].text.partition("\n")[0]
        kind = {prompt.HYDE_TITLE: "hyde", prompt.PRIMER_TITLE: "primer", prompt.FOLLOW_UP_TITLE: "follow"}[title]
        place = len(self.asked[kind])
        self.asked[kind].append(request)
        if kind == "hyde":
            return "Silk went to Tabriz."
        if kind == "primer" and self._primer:
            return json.dumps(self._primer[place % len(self._primer)])
        more = [f"What of {kind} {place} {n}, a port in Bursa?" for n in range(self._n_more)]
        return json.dumps({"answer": f"{kind} {place}", "score": 50 + place, "sources": [1], "follow_ups": more})


async def _ports(library: Library, n: int) -> None:
    await library.publish(*(page(f"P{i}", f"Port {i} of Bursa.", names={f"Port {i}": "Location"}) for i in range(n)))
    await divide(library, {f"c{i}": ("", (f"port {i}",)) for i in range(n)})
    await report_on(library, *(report(f"c{i}", f"Port {i} is in Bursa.") for i in range(n)))


@pytest.mark.parametrize(("n_reports", "n_folds"), [(2, 2), (25, 5)])
@pytest.mark.parametrize("n_follow_ups", [0, 1, 4])
async def test_the_calls_are_as_many_as_documented(
    library: Library, n_reports: int, n_folds: int, n_follow_ups: int
) -> None:
    await _ports(library, n_reports)
    model = Answering()
    query = Query(
        text="Which port is in Bursa?", options=(DriftOptions(drift_follow_ups=n_follow_ups),), min_similarity=0.05
    )
    async with library.view() as view:
        found = await retrieve(query, view, replace(library.tools, model=model))
    counts = {kind: len(requests) for kind, requests in model.asked.items()}
    assert counts == {"hyde": 1, "primer": n_folds, "follow": 3 * n_follow_ups}
    assert len(found.points) == n_folds + 3 * n_follow_ups
    if n_folds == 5 and n_follow_ups == DriftOptions().drift_follow_ups == 4:
        assert sum(counts.values()) == STRATEGY.n_model_calls == 18


async def test_the_scripted_model_is_asked_as_often_as_there_is_something_to_ask(library: Library) -> None:
    await trades(library)
    tools, llm, model = with_model(library.tools)
    async with library.view() as view:
        found = await retrieve(SILK, view, tools)
        assert await retrieve(SILK, view, tools) == found
    first = model.rounds[: len(model.rounds) // 2]
    assert first[:2] == [1, 4] and all(n <= DriftOptions().drift_follow_ups for n in first[2:]) and len(first) <= 5
    assert 2 * first[0] == llm.n_completed(RequestKind.IMAGINE) and 2 * first[1] == llm.n_completed(RequestKind.PRIMER)
    assert 2 * sum(first[2:]) == llm.n_completed(RequestKind.FOLLOW_UP)
    assert found.points and found.chunks and not found.reports and found.ranks_passages


async def test_questions_of_the_best_answers_come_first_and_none_is_asked_twice(library: Library) -> None:
    await trades(library)
    primer = (
        {"answer": "Little.", "score": 10, "sources": [1], "follow_ups": ["What of Egil?"]},
        {"answer": "Much.", "score": 90, "sources": [1], "follow_ups": ["Who is Dara?", "what of EGIL?", SILK.text]},
    )
    model = Answering(primer=primer, n_more=0)
    async with library.view() as view:
        found = await retrieve(
            SILK.with_options(DriftOptions(drift_follow_ups=1)), view, replace(library.tools, model=model)
        )
    asked = [
        request.messages[1].text.rpartition("Question\n")[2].partition("\n")[0] for request in model.asked["follow"]
    ]
    assert asked == ["Who is Dara?", "what of EGIL?"]
    assert [point.score for point in found.points] == sorted((point.score for point in found.points), reverse=True)


async def test_a_point_rests_on_the_sources_it_names_else_on_all_it_was_shown(library: Library) -> None:
    await trades(library)
    primer = (
        {"answer": "Named.", "score": 90, "sources": [1], "follow_ups": []},
        {"answer": "Unnamed.", "score": 80, "sources": ["?"], "follow_ups": ["Who led caravans to Tabriz?"]},
    )
    model = Answering(primer=primer, n_more=0)
    async with library.view() as view:
        found = await retrieve(SILK, view, replace(library.tools, model=model))
        assert (await titles(view, found.chunks))[0] in ("Caravans", "Weavers")
    by_text = {point.text: point for point in found.points}
    assert all(each.reports and not each.chunks for each in (by_text["Named."], by_text["Unnamed."]))
    (followed,) = [point for text, point in by_text.items() if text.startswith("follow")]
    assert followed.chunks and not followed.reports  # passages stand first in what it is shown


async def test_what_does_not_fit_and_what_was_not_found_is_said(library: Library) -> None:
    await library.publish(CARAVANS, WEAVERS)
    await divide(library, {"long": ("", ("dara", "tabriz")), "short": ("", ("anna", "bursa"))})
    await report_on(library, report("long", "Silk of Bursa. " * 2_000), report("short", "Silk of Bursa."))
    primer = ({"answer": "Much.", "score": 90, "sources": [1], "follow_ups": ["Zzz?"]},)
    query = replace(SILK, min_similarity=0.3, budget=Budget(total=3_000))
    async with library.view() as view:
        found = await retrieve(query, view, replace(library.tools, model=Answering(primer=primer, n_more=0)))
    assert "reports that did not fit the budget and were not read: 1" in found.notes
    assert "1 question without any material that fits the budget" in found.notes
    assert not any("missing or unreadable" in note for note in found.notes)


async def test_where_no_question_is_followed_up_no_passages_are_ranked(library: Library) -> None:
    await trades(library)
    async with library.view() as view:
        tools = replace(library.tools, model=Answering())
        found = await retrieve(SILK.with_options(DriftOptions(drift_follow_ups=0)), view, tools)
        followed = await retrieve(SILK, view, tools)
    assert (found.chunks, found.ranks_passages) == ((), False)
    assert followed.ranks_passages
    assert [hit.score for hit in followed.chunks[:3]] == pytest.approx(
        [1, 1 / 2, 1 / 3][: len(followed.chunks)], abs=1e-6
    )


async def test_without_a_model_reports_and_local_searches_stand_in(library: Library) -> None:
    await trades(library)
    async with library.view() as view:
        found = await retrieve(SILK, view, library.tools)
        assert set(await titles(view, found.chunks)) == {"Weavers", "Caravans"}
    assert found.notes == ("no language model: no question is followed up",)
    assert [seed.text for seed in found.seeds][:2] == [SILK.text, SILK.text]
    assert library.embedder.calls[0] == (SILK.text,)
    assert len(library.embedder.calls) == 2  # the question; then it again with the titles it led to


@pytest.mark.parametrize("seed", range(4))
async def test_reports_are_those_nearest_of_the_levels_allowed(library: Library, seed: int) -> None:
    made = world(seed)
    await settle(library, made)
    query = Query(text=QUESTION, community_level=seed, min_similarity=0.05)
    allowed = [each.cluster for each in made.reports if made.level(each.cluster) <= seed]
    async with library.view() as view:
        near = await cosines(library, view, VectorSpace.REPORT, allowed, QUESTION)
        found = await retrieve(query, view, library.tools)
    assert [hit.id for hit in found.reports] == sorted(near, key=lambda each: (-near[each], each))[:20]


async def test_a_model_that_fails_or_replies_at_random_costs_no_evidence(library: Library) -> None:
    await trades(library)
    broken = with_model(library.tools, ScriptedLLM(Script(faults=(Fault(name=FaultName.SERVER_ERROR),))))[0]
    async with library.view() as view:
        plain = await retrieve(SILK, view, library.tools)
        for tools in (broken, *(replace(library.tools, model=Telling(reply)) for reply in ("", "[1", "no", "{}"))):
            found = await retrieve(SILK, view, tools)
            assert (found.points, set(found.chunks)) == ((), set(plain.chunks))
            assert found.notes[-1] == "there was no partial answer"


async def test_a_filter_hides_reports_and_passages_from_every_prompt(library: Library) -> None:
    await trades(library)
    model = Answering()
    async with library.view(Filter(exclude=("Salt",))) as view:
        await retrieve(SILK, view, replace(library.tools, model=model))
    sent = [request.messages[1].text for requests in model.asked.values() for request in requests]
    assert len(sent) > 4 and not any("Hallein" in text or "Egil" in text for text in sent)


async def test_an_index_without_reports_says_so_and_asks_nobody(library: Library) -> None:
    await library.publish(CARAVANS)
    tools, llm, _ = with_model(library.tools)
    async with library.view() as view:
        found = await retrieve(SILK, view, tools)
    assert [hit.id for hit in found.chunks] == chunk_of(CARAVANS)
    assert (found.notes, llm.answered) == (("there is no report to begin with",), [])


@pytest.mark.parametrize(
    ("text", "names", "question"),
    [
        ("达拉带商队去大不里士。", ("达拉", "大不里士"), "谁带商队去大不里士？"),
        ("Дара вёл караваны в Тебриз.", ("Дара", "Тебриз"), "Кто вёл караваны в Тебриз?"),
    ],
)
async def test_chinese_and_russian_are_followed_up(
    library: Library, text: str, names: tuple[str, ...], question: str
) -> None:
    made = page("X", text, names=dict.fromkeys(names, "Person"))
    await library.publish(made)
    await divide(library, {"all": ("", [each.key for each in made.chunks[0].entities])})
    await report_on(library, report("all", text, chunks=chunk_of(made)))
    model = Answering(n_more=0)
    primer = {"answer": text, "score": 90, "sources": [1], "follow_ups": [names[0]]}
    model = Answering(primer=(primer,), n_more=0)
    async with library.view() as view:
        found = await retrieve(Query(text=question, min_similarity=0.05), view, replace(library.tools, model=model))
    assert found.points[0].text == text and [hit.id for hit in found.chunks] == chunk_of(made)
