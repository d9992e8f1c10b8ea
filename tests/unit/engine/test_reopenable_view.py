"""Tests of what a strategy asks: the view is released meanwhile, each request is made once, and no question fails."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from quipu.engine import Quipu
from quipu.engine.reopenable_view import (
    MAX_EMBED_CALLS,
    MAX_ROUNDS,
    MAX_WASTED_ROUNDS,
    ReopenableView,
    RetrievalTurns,
    RevisionMoved,
    ViewReleasingLayer,
)
from quipu.errors import OverBudget, Overloaded, QuipuError, Unavailable
from quipu.model.chat import ChatRequest, Completion, Role
from quipu.model.delta import Delta
from quipu.model.derivation import DerivationRecord
from quipu.model.graph import IndexCounts
from quipu.model.query import Filter
from quipu.model.usage import Stage
from quipu.ports.derivation_view import ChangeSet
from quipu.ports.providers import TextSink, ignore_text
from quipu.ports.store import CountName, ReadView, Store
from quipu.testing.llm import ScriptedLLM
from quipu.wrap.embedder import WrappedEmbedder
from tests.laws.model_world import script, scripted_engine, travels
from tests.unit.engine.fakes import add_strategy, asking


class Choosy(ScriptedLLM):
    """A model that fails on texts with a word, and notes what it is asked for the work of strategies."""

    def __init__(self, error: QuipuError | None = None) -> None:
        super().__init__(script())
        self.error = error
        self.asked: list[str] = []
        self.on_call: Callable[[], Awaitable[None]] | None = None

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        if request.subject == "Who?" and request.role in (Role.KEYWORDS, Role.REPORT):
            self.asked.append(request.messages[-1].text)
            if self.on_call:
                await self.on_call()
            if self.error and "bad" in self.asked[-1]:
                raise self.error
        return await super().complete(request, on_text)


class WatchedStore:
    """A store that counts its open views."""

    def __init__(self, store: Store) -> None:
        self.n_open = 0
        self._store = store

    @asynccontextmanager
    async def view(self, allowed: Filter | None = None) -> AsyncIterator[ReadView]:
        async with self._store.view(allowed) as view:
            self.n_open += 1
            try:
                yield view
            finally:
                self.n_open -= 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def _change(kb: Quipu) -> None:
    """Commit something, so that the revision moves."""
    await kb._store.commit(Delta(derivations=[DerivationRecord(name="note", identity="any", revision=0)]))


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


async def test_the_view_is_released_while_the_model_is_asked_and_the_strategy_goes_on(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch
) -> None:
    revisions: list[int] = []
    watched = WatchedStore(kb._store)
    kb._components = replace(kb._components, store=watched)

    async def look() -> None:
        n_open.append(watched.n_open)

    n_open: list[int] = []
    llm.on_call = look
    add_strategy(
        monkeypatch,
        lambda replies: [asking(f"question {len(replies)}")] if len(replies) < 2 else [],
        on_view=lambda view: revisions.append(view.revision),
    )
    evidence = await kb.retrieve("Who?", strategy="talkative")
    assert (n_open, watched.n_open, len(revisions)) == ([0, 0], 0, 1)
    assert evidence.chunks
    requests = [call.request for call in llm.answered if call.request.messages[-1].text.startswith("question")]
    assert [request.revision for request in requests] == revisions * 2


async def test_where_documents_change_once_the_strategy_is_run_again_on_the_replies_it_has(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch
) -> None:
    revisions: list[int] = []

    async def change_once() -> None:
        if len(llm.asked) == 2:
            await _change(kb)

    llm.on_call = change_once
    told = add_strategy(
        monkeypatch,
        lambda replies: [asking(f"question {len(replies)}")] if len(replies) < 3 else [],
        on_view=lambda view: revisions.append(view.revision),
    )
    await kb.retrieve("Who?", strategy="talkative")
    assert llm.asked == ["question 0", "question 1", "question 2"]
    assert [len(replies) for replies in told] == [3]
    assert revisions == [revisions[0], revisions[0] + 1]


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
    object.__setattr__(kb._components.models, "chains", chains)
    told = add_strategy(monkeypatch, lambda replies: [] if replies else [asking("x", role=Role.REPORT)])
    evidence = await kb.retrieve("Who?", strategy="talkative")
    assert told == [[[""]]]
    assert "no model is set for the role 'report'" in evidence.notes


async def test_a_strategy_that_never_has_enough_is_answered_no_more(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rounds(replies: list[list[str]]) -> list[ChatRequest]:
        return [] if replies and not replies[-1][0] else [asking(f"question {len(replies)}")]

    told = add_strategy(monkeypatch, rounds)
    evidence = await kb.retrieve("Who?", strategy="talkative")
    assert len(llm.asked) == MAX_ROUNDS
    assert len(told[0]) == MAX_ROUNDS + 1
    assert f"a model was asked {MAX_ROUNDS} times, the limit of one question: later replies are empty" in evidence.notes


async def test_though_documents_change_whenever_the_model_is_asked_little_is_paid_in_vain_and_the_last_reply_is_used(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[int] = []
    llm.on_call = partial(_change, kb)

    def rounds(replies: list[list[str]]) -> list[ChatRequest]:
        return [asking(f"step {len(replies)} of search {len(searches)}")] if len(replies) < 2 else []

    told = add_strategy(monkeypatch, rounds, on_view=lambda view: searches.append(view.revision))
    evidence = await kb.retrieve("Who?", strategy="talkative")
    assert len(llm.asked) == MAX_WASTED_ROUNDS + 2
    ((first,), (second,)) = told[0]
    assert first and second
    assert evidence.chunks
    assert not [note for note in evidence.notes if "model" in note]


@pytest.mark.parametrize("roles", [(Role.KEYWORDS,), (Role.ANSWER,), (Role.REPORT,)])
async def test_a_model_for_a_part_of_the_work_is_not_asked_in_vain(
    kb: Quipu, llm: Choosy, monkeypatch: pytest.MonkeyPatch, roles: tuple[Role, ...]
) -> None:
    object.__setattr__(kb._components.models, "chains", {role: kb._components.models.chains[role] for role in roles})
    told = add_strategy(monkeypatch, lambda replies: [asking("never")])
    await kb.retrieve("Who?", strategy="talkative")
    assert (told, llm.asked) == ([[]], [])


async def test_without_a_model_there_is_none_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted_engine(tmp_path, ScriptedLLM(script())) as kb:
        await kb.add(travels("a.md"))
        object.__setattr__(kb._components.models, "chains", {})
        told = add_strategy(monkeypatch, lambda replies: [asking("never")])
        assert (await kb.retrieve("Who?", strategy="talkative")).notes == ()
        assert told == [[]]


@dataclass
class Snapshot:
    """What a view shows of a FakeStore."""

    revision: int
    nonce: int

    async def changes_since(self, revision: int) -> ChangeSet:
        none = np.empty(0, dtype=np.int64)
        return ChangeSet(chunks=none, entities=none, history_nonce=self.nonce)

    async def counts(self, *names: CountName) -> IndexCounts:
        return IndexCounts(chunks=10 * self.revision)


class FakeStore:
    """A store of a revision and a history nonce, whose views are counted."""

    def __init__(self) -> None:
        self.revision, self.nonce, self.n_open = 1, 7, 0

    @asynccontextmanager
    async def view(self, allowed: Filter) -> AsyncIterator[Snapshot]:
        self.n_open += 1
        try:
            yield Snapshot(self.revision, self.nonce)
        finally:
            self.n_open -= 1


def _view(store: FakeStore, turns: RetrievalTurns | None = None) -> ReopenableView:
    return ReopenableView(store, Filter(), turns or RetrievalTurns(1))  # type: ignore[arg-type]


async def test_a_released_view_cannot_be_read_and_shows_a_new_snapshot_afterwards() -> None:
    store = FakeStore()
    async with _view(store) as view:
        read = view.reads.counts
        assert (view.reads.revision, (await read()).chunks) == (1, 10)
        async with view.released():
            assert store.n_open == 0
            with pytest.raises(RuntimeError, match="is released"):
                await read()
            store.revision = 2
        assert (view.reads.revision, (await read()).chunks) == (2, 20)
    assert store.n_open == 0


@pytest.mark.parametrize(("change", "is_moved"), [({}, False), ({"revision": 2}, True), ({"nonce": 8}, True)])
async def test_a_pause_tells_whether_the_index_is_still_the_same(change: dict[str, int], is_moved: bool) -> None:
    store = FakeStore()
    moved = False
    async with _view(store) as view:
        try:
            async with view.paused():
                vars(store).update(change)
        except RevisionMoved:
            moved = True
    assert moved == is_moved


async def test_an_error_of_a_service_leaves_no_view_open() -> None:
    store = FakeStore()
    with pytest.raises(ZeroDivisionError):
        async with _view(store) as view, view.paused():
            raise ZeroDivisionError
    assert store.n_open == 0


async def test_a_question_that_has_no_turn_waits_until_another_view_is_closed() -> None:
    store, turns, first_may_end, order = FakeStore(), RetrievalTurns(1), asyncio.Event(), list[str]()

    async def second() -> None:
        async with _view(store, turns):
            order.append(f"second, {store.n_open} open")

    async with _view(store, turns):
        waiting = asyncio.create_task(second())
        asyncio.get_running_loop().call_soon(first_may_end.set)
        await first_may_end.wait()
        order.append(f"first, {store.n_open} open")
    await waiting
    assert order == ["first, 1 open", "second, 1 open"]


@pytest.mark.parametrize(("wait", "n_open"), [("released", 1), ("paused", 1), ("kept_open", 2)])
async def test_others_read_while_a_question_waits_for_a_service(wait: str, n_open: int) -> None:
    store, turns = FakeStore(), RetrievalTurns(1)
    async with _view(store, turns) as view:
        async with getattr(view, wait)(), _view(store, turns):
            assert store.n_open == n_open
        assert turns.are_taken
        assert (await view.reads.counts()).chunks == 10
    assert (store.n_open, turns.are_taken) == (0, False)


@pytest.mark.parametrize("wait", ["released", "paused", "kept_open"])
async def test_an_error_of_a_service_gives_the_turn_back_once(wait: str) -> None:
    turns = RetrievalTurns(1)
    with pytest.raises(ZeroDivisionError):
        async with _view(FakeStore(), turns) as view, getattr(view, wait)():
            raise ZeroDivisionError
    async with _view(FakeStore(), turns):
        assert turns.are_taken
    assert not turns.are_taken


async def test_a_view_that_cannot_be_opened_gives_its_turn_back() -> None:
    class BrokenStore(FakeStore):
        @asynccontextmanager
        async def view(self, allowed: Filter) -> AsyncIterator[Snapshot]:
            raise Unavailable("The disk is gone.")
            yield Snapshot(0, 0)

    turns = RetrievalTurns(1)
    with pytest.raises(Unavailable):
        async with _view(BrokenStore(), turns):
            pass
    assert not turns.are_taken


async def test_a_question_cancelled_while_it_waits_for_its_turn_takes_none() -> None:
    store, turns = FakeStore(), RetrievalTurns(1)
    async with _view(store, turns):
        waiting = asyncio.create_task(_view(store, turns).__aenter__())
        loop = asyncio.get_running_loop()
        loop.call_soon(waiting.cancel)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert store.n_open == 1
    assert (store.n_open, turns.are_taken) == (0, False)


async def test_where_enough_questions_wait_the_next_one_is_refused_at_once() -> None:
    store, turns = FakeStore(), RetrievalTurns(max_waiting=1)
    async with _view(store, turns):
        waiting = asyncio.create_task(_view(store, turns).__aenter__())
        await _run_ready_tasks()
        assert turns.n_waiting == 1
        with pytest.raises(Overloaded, match="1 question") as error:
            await _view(store, turns).__aenter__()
        assert "max_waiting_questions" in error.value.remedy
        assert turns.n_waiting == 1
    second = await waiting
    assert turns.n_waiting == 0
    await second.__aexit__(None, None, None)
    async with _view(store, turns):
        assert store.n_open == 1


async def test_a_question_that_comes_back_from_a_model_waits_although_the_queue_is_full() -> None:
    store, turns = FakeStore(), RetrievalTurns(max_waiting=0)
    other = _view(store, turns)
    async with _view(store, turns) as view:

        async def wait_for_a_model() -> None:
            async with view.released():
                await other.__aenter__()

        back = asyncio.create_task(wait_for_a_model())
        await _run_ready_tasks()
        assert (turns.n_waiting, back.done()) == (1, False)
        await other.__aexit__(None, None, None)
        await back
        assert (await view.reads.counts()).chunks == 10


async def test_a_refused_question_asks_no_model(kb: Quipu, llm: Choosy) -> None:
    kb._components = replace(kb._components, retrieval_turns=RetrievalTurns(max_waiting=0))
    n_answered = len(llm.answered)
    async with _view(FakeStore(), kb._components.retrieval_turns):
        with pytest.raises(Overloaded):
            await kb.query("Who travelled to Venice?", strategy="local")
    assert len(llm.answered) == n_answered
    assert (await kb.query("Who travelled to Venice?", strategy="local")).text


async def _run_ready_tasks() -> None:
    """Let every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_questions_at_once_are_searched_one_after_another_with_the_same_evidence(kb: Quipu) -> None:
    n_open: list[int] = []

    class Store(WatchedStore):
        @asynccontextmanager
        async def view(self, allowed: Filter | None = None) -> AsyncIterator[ReadView]:
            async with super().view(allowed) as view:
                if allowed is not None:  # the view of a question, not of a look at derivations
                    n_open.append(self.n_open)
                yield view

    questions = ["Marco Polo", "Kublai Khan", "Venice", "Who?"]
    alone = [await kb.retrieve(question, strategy="lexical") for question in questions]
    kb._components = replace(kb._components, store=Store(kb._store))
    together = await asyncio.gather(*(kb.retrieve(question, strategy="lexical") for question in questions))
    assert together == alone
    assert n_open == [1] * len(questions)


class Paid:
    """An embedder that notes what it is asked for and how many views are open then."""

    identity, dimension = "paid", 2

    def __init__(self, store: FakeStore, *, is_moving: bool = False) -> None:
        self.asked: list[list[str]] = []
        self.n_open: list[int] = []
        self._store, self._is_moving = store, is_moving

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return await self.embed_queries(texts)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.asked.append(list(texts))
        self.n_open.append(self._store.n_open)
        self._store.revision += self._is_moving
        return np.array([[len(text), 1] for text in texts], np.float32)


async def test_a_text_is_embedded_once_with_the_view_released() -> None:
    store = FakeStore()
    paid = Paid(store)
    async with _view(store) as view:
        embedder = WrappedEmbedder(paid, [ViewReleasingLayer(view)])
        await embedder.embed_queries(["question"])
        vectors = await embedder.embed_queries(["question", "title", "title"])
    assert vectors.tolist() == [[8, 1], [5, 1], [5, 1]]
    assert (paid.asked, paid.n_open) == ([["question"], ["title"]], [0, 0])


async def test_a_search_that_embeds_something_else_each_time_ends_though_documents_change_all_the_time() -> None:
    store = FakeStore()
    paid, number = Paid(store, is_moving=True), count()
    async with _view(store) as view:
        embedder = WrappedEmbedder(paid, [ViewReleasingLayer(view)])
        while True:
            try:
                vectors = await embedder.embed_queries([f"{next(number):2d}"])
                break
            except RevisionMoved:
                continue
    assert vectors.tolist() == [[2, 1]]
    assert paid.n_open == [0] * MAX_EMBED_CALLS + [1]
