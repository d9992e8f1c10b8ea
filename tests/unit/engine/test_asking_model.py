"""Tests of the model a strategy asks: each request once, no view open meanwhile, and no question failed for it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.engine.asking_model import MAX_ROUNDS, MAX_VAIN
from quipu.errors import OverBudget, Overloaded, QuipuError, Unavailable
from quipu.model.chat import ChatRequest, Completion, Role
from quipu.model.usage import Stage
from quipu.ports.providers import TextSink, ignore_text
from quipu.ports.store import ReadView
from quipu.testing.llm import ScriptedLLM
from tests.laws.model_world import script, scripted_engine, travels
from tests.unit.engine.made_up import add_strategy, asking


class Choosy(ScriptedLLM):
    """A model that fails on texts with a word, and notes what it is asked for the work of strategies."""

    def __init__(self, error: QuipuError | None = None) -> None:
        super().__init__(script())
        self.error = error
        self.asked: list[str] = []

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        if request.subject == "Who?" and request.role in (Role.KEYWORDS, Role.REPORT):
            self.asked.append(request.messages[-1].text)
            if self.error and "bad" in self.asked[-1]:
                raise self.error
        return await super().complete(request, on_text)


@pytest.fixture
def llm() -> Choosy:
    return Choosy()


@pytest.fixture
async def kb(tmp_path: Path, llm: Choosy) -> AsyncIterator[Quipu]:
    async with scripted_engine(tmp_path, llm) as opened:
        await opened.add(travels("a.md"), travels("b.md"))
        llm.asked.clear()
        yield opened


async def test_what_a_strategy_asks_is_asked_once_and_told_in_order(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rounds(replies: list[list[str]]) -> list[ChatRequest]:
        names = [["first", "second", "first"], ["third", "second"]]
        return [asking(name) for name in names[len(replies)]] if len(replies) < len(names) else []

    told = add_strategy(monkeypatch, rounds)
    answer = await kb.query("Who?", strategy="talkative", with_answer=False)
    assert sorted(llm.asked) == ["first", "second", "third"]
    ((first, second, again), (third, known)) = told[0]
    assert (len(told), first, second) == (1, again, known)
    assert all((first, second, third))
    assert answer.trace.n_calls == 3
    assert [(row.stage, row.n_calls) for row in answer.usage] == [(Stage.KEYWORDS, 3)]


async def test_the_same_question_again_pays_for_nothing_and_counts_its_calls(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_strategy(monkeypatch, lambda replies: [] if replies else [asking("first"), asking("second")])
    first, again = [await kb.query("Who?", strategy="talkative", with_answer=False) for _ in range(2)]
    assert len(llm.asked) == 2
    assert (first.trace.n_calls, again.trace.n_calls, again.usage) == (2, 2, ())
    assert first.trace.evidence == again.trace.evidence


async def test_no_view_is_open_while_the_model_is_asked_and_it_is_told_the_revision_it_quotes(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch
) -> None:
    revisions: list[int] = []

    def see(view: ReadView) -> None:
        revisions.append(view.revision)

    add_strategy(monkeypatch, lambda replies: [] if replies else [asking("first")], on_view=see)
    await kb.retrieve("Who?", strategy="talkative")
    (request,) = [each.request for each in llm.answered if each.request.messages[-1].text == "first"]
    assert request.revision == revisions[0]
    assert len(revisions) == 2


@pytest.mark.parametrize("error", [OverBudget("All is spent."), Overloaded("Too busy."), Unavailable("It is gone.")])
async def test_a_call_that_fails_is_an_empty_text_and_a_note(
    tmp_path: Path, error: QuipuError, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = Choosy(error)
    async with scripted_engine(tmp_path, llm) as kb:
        await kb.add(travels("a.md"))
        told = add_strategy(
            monkeypatch, lambda replies: [] if replies else [asking("good"), asking("bad"), asking("bad too")]
        )
        answer = await kb.query("Who?", strategy="talkative", with_answer=False)
        ((good, bad, worse),) = told[0]
        assert good and (bad, worse) == ("", "")
        assert f"a model gave no reply: {error.message} (2 times)" in answer.trace.evidence.notes
        assert answer.trace.evidence.chunks


async def test_a_call_that_breaks_leaves_no_other_under_way(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    answer = ScriptedLLM.complete

    async def complete(self: Choosy, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        if request.messages[-1].text == "broken":
            raise ZeroDivisionError
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(request.messages[-1].text)
        return await answer(self, request, on_text)

    monkeypatch.setattr(Choosy, "complete", complete)  # of a provider with a bug
    add_strategy(monkeypatch, lambda replies: [asking("waits"), asking("broken")])
    with pytest.raises(ExceptionGroup) as error:
        await kb.retrieve("Who?", strategy="talkative")
    assert isinstance(error.value.exceptions[0], ZeroDivisionError)
    assert ended == ["waits"]


async def test_work_nobody_is_set_for_is_an_empty_text_and_a_note(kb: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    chains = {role: kb._components.models.chains[role] for role in (Role.KEYWORDS, Role.ANSWER)}
    object.__setattr__(kb._asker.models, "chains", chains)
    told = add_strategy(monkeypatch, lambda replies: [] if replies else [asking("x", role=Role.REPORT)])
    evidence = await kb.retrieve("Who?", strategy="talkative")
    assert told == [[[""]]]
    assert "no model is set for the work 'report'" in evidence.notes


async def test_a_strategy_that_never_has_enough_is_answered_no_more(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rounds(replies: list[list[str]]) -> list[ChatRequest]:
        return [] if replies and not replies[-1][0] else [asking(f"question {len(replies)}")]

    told = add_strategy(monkeypatch, rounds)
    evidence = await kb.retrieve("Who?", strategy="talkative")
    assert len(llm.asked) == MAX_ROUNDS
    assert len(told[0]) == MAX_ROUNDS + 1
    assert f"a model was asked {MAX_ROUNDS} times in a row, and then no more" in evidence.notes


async def test_though_documents_change_whenever_the_model_is_asked_little_is_paid_in_vain_and_the_last_reply_is_used(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[int] = []

    def rounds(replies: list[list[str]]) -> list[ChatRequest]:
        return [asking(f"step {len(replies)} of search {len(searches)}")] if len(replies) < 2 else []

    told = add_strategy(monkeypatch, rounds, on_view=lambda view: searches.append(view.revision))
    evidence = await kb.retrieve("Who?", strategy="talkative")
    assert len(llm.asked) == MAX_VAIN + 2
    ((first,), (second,)) = told[0]
    assert first and second
    assert evidence.chunks
    assert not [note for note in evidence.notes if "model" in note]


@pytest.mark.parametrize("roles", [(Role.KEYWORDS,), (Role.ANSWER,), (Role.REPORT,)])
async def test_a_model_for_a_part_of_the_work_is_not_asked_in_vain(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch, roles: tuple[Role, ...]
) -> None:
    object.__setattr__(kb._asker.models, "chains", {role: kb._components.models.chains[role] for role in roles})
    told = add_strategy(monkeypatch, lambda replies: [asking("never")])
    await kb.retrieve("Who?", strategy="talkative")
    assert (told, llm.asked) == ([[]], [])


async def test_without_a_model_there_is_none_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted_engine(tmp_path, ScriptedLLM(script())) as kb:
        await kb.add(travels("a.md"))
        object.__setattr__(kb._asker.models, "chains", {})
        told = add_strategy(monkeypatch, lambda replies: [asking("never")])
        assert (await kb.retrieve("Who?", strategy="talkative")).notes == ()
        assert told == [[]]
