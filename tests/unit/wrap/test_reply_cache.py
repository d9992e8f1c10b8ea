"""Cached: nothing paid for is asked twice."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.errors import Overloaded, Refused
from quipu.model.chat import ChatRequest, Completion, FinishReason, ReplyLifetime, TokenCount
from quipu.model.usage import UsageRow
from quipu.ports.providers import LLM, TextSink, ignore_text
from quipu.ports.store import CallReply
from quipu.wrap.meter import Meter
from quipu.wrap.metered_models import MeteredLLM
from quipu.wrap.reply_cache import CachedLLM, InFlightRequests, read_payload, write_payload
from tests.unit.wrap.fakes import PRICING, FakeLLM, Shelf, completion, request, settle
from tests.unit.wrap.virtual_time import run


class Gate:
    """Holds transactions until it is opened."""

    def __init__(self) -> None:
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.n_waiting = 0

    def __call__(self) -> asyncio.Future[None]:
        self.n_waiting += 1
        return self._future

    def open(self) -> None:
        self._future.set_result(None)


def _metered(llm: LLM) -> Callable[[Meter], LLM]:
    return lambda meter: MeteredLLM(llm, meter, PRICING)


def _cached(llm: LLM, shelf: Shelf, meter: Meter | None = None, flights: InFlightRequests | None = None) -> CachedLLM:
    return CachedLLM(_metered(llm), [llm.identity], shelf, meter or Meter(), flights)


async def test_a_reply_is_asked_for_once() -> None:
    llm, shelf = FakeLLM(), Shelf()
    first = await _cached(llm, shelf).complete(request())
    again = await _cached(llm, shelf).complete(request())
    assert (first.is_reused, again) == (False, replace(first, is_reused=True))
    assert len(llm.asked) == 1


async def test_another_request_is_asked_for() -> None:
    llm, shelf = FakeLLM(), Shelf()
    cached = _cached(llm, shelf)
    await cached.complete(request("Who?"))
    await cached.complete(request("Where?"))
    assert len(llm.asked) == 2


async def test_reply_and_cost_are_kept_together() -> None:
    class Ledger(Shelf):
        async def record_call(self, usage: Sequence[UsageRow], reply: CallReply | None = None) -> None:
            assert reply is not None
            costs = [(row.subject, row.n_calls, row.cost) for row in usage]
            kept.append((reply.input_hash, reply.request, costs))

    kept: list[tuple[str, ChatRequest, list[tuple[str, int, int]]]] = []
    llm, asked = FakeLLM(), replace(request(), documents=("a.md",))
    await _cached(llm, Ledger()).complete(asked)
    assert kept == [(asked.hash("fake/model"), asked, [("a.md", 1, 14)])]


async def test_what_was_kept_costs_nothing_again() -> None:
    llm, shelf, meter = FakeLLM(), Shelf(), Meter()
    await _cached(llm, shelf).complete(request())
    await _cached(llm, shelf, meter).complete(request())
    assert meter.rows() == ()
    assert len(shelf.spent) == 1


@pytest.mark.parametrize("finish", list(FinishReason))
async def test_whole_replies_are_kept(finish: FinishReason) -> None:
    llm, shelf = FakeLLM([completion(finish=finish)]), Shelf()
    assert (await _cached(llm, shelf).complete(request())).finish is finish
    assert len(shelf.payloads) == (finish in (FinishReason.STOP, FinishReason.LENGTH))
    assert len(shelf.spent) == 1  # the cost is kept in any case


@pytest.mark.parametrize("text", ["", " \n"])
async def test_a_reply_without_text_is_asked_for_again(text: str) -> None:
    llm, shelf = FakeLLM([completion(text), completion("a")]), Shelf()
    assert (await _cached(llm, shelf).complete(request())).text == text
    assert (await _cached(llm, shelf).complete(request())).text == "a"
    assert len(shelf.spent) == 2


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "nothing",
        "{}",
        "[]",
        "3",
        "null",
        '{"text":1,"finish":"stop","tokens":[1,0,1],"is_estimate":false}',
        '{"text":"a","finish":"gone","tokens":[1,0,1],"is_estimate":false}',
        '{"text":"a","finish":"interrupted","tokens":[1,0,1],"is_estimate":false}',
        '{"text":"a","finish":"stop","tokens":[1,0],"is_estimate":false}',
        '{"text":"a","finish":"stop","tokens":[1,0,null],"is_estimate":false}',
        '{"text":"a","finish":"stop","tokens":7,"is_estimate":false}',
        "[" * 100_000,
    ],
)
async def test_a_damaged_reply_is_as_good_as_none(payload: str) -> None:
    llm, shelf = FakeLLM(), Shelf(payloads={request().hash("fake/model"): payload})
    assert not (await _cached(llm, shelf).complete(request())).is_reused


@given(
    text=st.text(st.characters()),
    finish=st.sampled_from([FinishReason.STOP, FinishReason.LENGTH]),
    tokens=st.tuples(st.integers(0), st.integers(0), st.integers(0)),
    is_estimate=st.booleans(),
)
def test_payloads_say_all_of_a_reply(
    text: str, finish: FinishReason, tokens: tuple[int, int, int], is_estimate: bool
) -> None:
    counted = TokenCount(input=tokens[0], cached=tokens[1], output=tokens[2])
    reply = Completion(text=text, finish=finish, tokens=counted, is_estimate=is_estimate)
    payload = write_payload(reply)
    assert payload.isascii()  # half a surrogate pair can be kept
    assert read_payload(payload) == reply


async def test_a_reply_is_durable_before_it_is_returned() -> None:
    gate = Gate()
    task = asyncio.create_task(_cached(FakeLLM(), Shelf(pause=gate)).complete(request()))
    await settle()
    assert (gate.n_waiting, task.done()) == (1, False)
    gate.open()
    await task


async def test_a_call_cancelled_while_its_reply_is_kept_loses_nothing() -> None:
    gate, llm = Gate(), FakeLLM()
    shelf = Shelf(pause=gate)
    task = asyncio.create_task(_cached(llm, shelf).complete(request()))
    await settle()
    task.cancel()
    await settle()
    assert not task.done()
    gate.open()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await _cached(llm, shelf).complete(request())).is_reused
    assert [row.n_calls for row in shelf.spent] == [1]


async def test_a_cancelled_call_is_dropped_and_counted() -> None:
    llm, shelf = FakeLLM(latency_s=60.0), Shelf()
    task = asyncio.create_task(_cached(llm, shelf).complete(request()))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert llm.n_running == 0
    assert [(row.n_calls, row.n_interrupted) for row in shelf.spent] == [(0, 1)]


async def test_the_cost_of_a_cancelled_call_is_kept_however_often_it_is_cancelled() -> None:
    gate = Gate()
    shelf = Shelf(pause=gate)
    before = asyncio.all_tasks()
    task = asyncio.create_task(_cached(FakeLLM(latency_s=60.0), shelf).complete(request()))
    await settle()
    flight = next(iter(asyncio.all_tasks() - before - {task}))
    for _ in range(3):
        task.cancel()
        flight.cancel()
        await settle()
    gate.open()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [row.n_interrupted for row in shelf.spent] == [1]


async def test_a_failed_call_is_not_kept_but_what_it_may_cost_is() -> None:
    llm, shelf = FakeLLM([Overloaded("late", may_cost=True), Refused("no"), completion()]), Shelf()
    cached = _cached(llm, shelf)
    with pytest.raises(Overloaded):
        await cached.complete(request())
    with pytest.raises(Refused):
        await cached.complete(request())
    assert [(row.n_calls, row.n_interrupted) for row in shelf.spent] == [(0, 1)]
    assert not (await cached.complete(request())).is_reused


def test_a_reply_is_kept_when_the_index_is_free_again() -> None:
    async def scenario() -> None:
        llm, shelf = FakeLLM(), Shelf(n_refused=3)
        assert (await _cached(llm, shelf).complete(request())).text == "Alice."
        assert (await _cached(llm, shelf).complete(request())).is_reused
        assert [row.n_calls for row in shelf.spent] == [1]

    run(scenario())


def test_what_a_failed_call_may_cost_is_counted_when_the_index_is_free_again() -> None:
    async def scenario() -> None:
        shelf = Shelf(n_refused=3)
        with pytest.raises(Overloaded):
            await _cached(FakeLLM([Overloaded("late", may_cost=True)]), shelf).complete(request())
        assert [row.n_interrupted for row in shelf.spent] == [1]

    run(scenario())


async def test_who_asks_the_same_meanwhile_is_told_the_same() -> None:
    llm, shelf, meter = FakeLLM(latency_s=0.001), Shelf(), Meter()
    cached = _cached(llm, shelf, meter)
    replies = await asyncio.gather(*(cached.complete(request()) for _ in range(5)))
    assert [reply.text for reply in replies] == ["Alice."] * 5
    assert [reply.is_reused for reply in replies] == [False, True, True, True, True]
    assert len(llm.asked) == 1
    assert [row.n_calls for row in meter.rows()] == [1]


async def test_the_same_error_is_told_to_all_and_the_next_may_try() -> None:
    llm, shelf = FakeLLM([Refused("no"), completion()], latency_s=0.001), Shelf()
    cached = _cached(llm, shelf)
    errors = await asyncio.gather(*(cached.complete(request()) for _ in range(3)), return_exceptions=True)
    assert [str(error) for error in errors] == ["no"] * 3
    assert (await cached.complete(request())).text == "Alice."


async def test_who_joins_keeps_a_call_alive_that_the_first_leaves() -> None:
    llm, shelf, flights = FakeLLM(latency_s=0.002), Shelf(), InFlightRequests()
    first = asyncio.create_task(_cached(llm, shelf, flights=flights).complete(request()))
    await settle()
    second = asyncio.create_task(_cached(llm, shelf, flights=flights).complete(request()))
    await settle()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert (await second).text == "Alice."
    assert len(llm.asked) == 1


async def test_who_comes_while_a_call_is_dropped_waits_for_its_end() -> None:
    """The dropped call is just being kept: its reply is found, not asked for again."""
    gate, llm, flights = Gate(), FakeLLM(), InFlightRequests()
    shelf = Shelf(pause=gate)
    first = asyncio.create_task(_cached(llm, shelf, flights=flights).complete(request()))
    await settle()
    first.cancel()
    second = asyncio.create_task(_cached(llm, shelf, flights=flights).complete(request()))
    await settle()
    gate.open()
    assert (await second).is_reused
    assert first.cancelled()
    assert len(llm.asked) == 1


async def test_a_reply_is_streamed_to_all_who_watch() -> None:
    llm, shelf = FakeLLM([completion("one two three")], latency_s=0.002), Shelf()
    cached = _cached(llm, shelf)
    texts: tuple[list[str], list[str], list[str]] = ([], [], [])
    has_begun = asyncio.Event()

    def watch(text: str) -> None:
        texts[0].append(text)
        has_begun.set()

    first = asyncio.create_task(cached.complete(request(), watch))
    await has_begun.wait()
    second = asyncio.create_task(cached.complete(request(), texts[1].append))
    await asyncio.gather(first, second)
    await cached.complete(request(), texts[2].append)
    assert texts[0] == ["one ", "two ", "three"]
    assert "".join(texts[1]) == "one two three"
    assert texts[2] == ["one two three"]


async def test_nothing_is_streamed_where_nobody_watches() -> None:
    llm, shelf, late = FakeLLM([completion("one two")], latency_s=0.002), Shelf(), list[str]()
    cached = _cached(llm, shelf)
    first = asyncio.create_task(cached.complete(request()))
    await settle()
    await asyncio.gather(first, cached.complete(request(), late.append))
    assert not llm.was_watched
    assert late == ["one two"]


async def test_who_cannot_take_the_text_is_told_so_alone_and_the_reply_is_kept() -> None:
    def fail(text: str) -> None:
        raise BrokenPipeError(text)

    llm, shelf, texts = FakeLLM([completion("one two")], latency_s=0.001), Shelf(), list[str]()
    cached = _cached(llm, shelf)
    watchers = (fail, texts.append)
    broken, whole = await asyncio.gather(
        *(cached.complete(request(), each) for each in watchers), return_exceptions=True
    )
    assert repr(broken) == "BrokenPipeError('one ')"
    assert isinstance(whole, Completion)
    assert "".join(texts) == "one two"
    assert (len(llm.asked), len(shelf.payloads)) == (1, 1)
    with pytest.raises(BrokenPipeError):
        await cached.complete(request(), fail)


async def test_a_reply_is_kept_for_the_documents_of_all_who_asked() -> None:
    llm, shelf = FakeLLM(latency_s=0.001), Shelf()
    cached = _cached(llm, shelf)
    asked = [replace(request(), documents=(name,)) for name in "abc"]
    await asyncio.gather(*(cached.complete(each) for each in asked[:2]))
    await cached.complete(asked[2])
    assert (len(llm.asked), shelf.requests) == (1, asked)
    assert [row.n_calls for row in shelf.spent] == [1]


async def test_a_reply_that_broke_off_is_kept_for_nobody() -> None:
    llm, shelf = FakeLLM([completion(finish=FinishReason.INTERRUPTED)], latency_s=0.001), Shelf()
    cached, asked = _cached(llm, shelf), replace(request(), documents=("a",))
    await asyncio.gather(cached.complete(asked), cached.complete(asked))
    assert shelf.requests == []


async def test_a_reply_of_the_revision_holds_from_the_moment_the_model_is_asked_or_as_the_request_says() -> None:
    class Slow(FakeLLM):
        async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
            shelf.revision += 1
            return await super().complete(request, on_text)

    shelf = Shelf(revision=7)
    cached = _cached(Slow(), shelf)
    await cached.complete(replace(request("a"), lifetime=ReplyLifetime.REVISION))
    await cached.complete(replace(request("b"), lifetime=ReplyLifetime.REVISION, revision=3))
    await cached.complete(request("c"))
    await cached.complete(replace(request("d"), lifetime=ReplyLifetime.ALL_DOCUMENTS))
    assert [each.revision for each in shelf.requests] == [7, 3, None, 10]


async def test_the_reply_of_a_fallback_is_kept_as_such() -> None:
    other = FakeLLM([replace(completion("Bob."), model="other")])
    shelf = Shelf()
    cached = CachedLLM(_metered(other), ["first", "other"], shelf, Meter())
    assert (await cached.complete(request())).model == "other"
    assert list(shelf.payloads) == [request().hash("other")]
    again = await cached.complete(request())
    assert (again.text, again.model, again.is_reused, cached.identity) == ("Bob.", "other", True, "first")
    assert len(other.asked) == 1


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whatever_is_cancelled_every_whole_reply_is_kept_with_its_cost(seed: int) -> None:
    async def scenario() -> None:
        rng = random.Random(seed)
        whole: list[str] = []

        class Server(FakeLLM):
            async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
                await asyncio.sleep(rng.choice([0.0, 0.1, 1.0]))
                if rng.random() < 0.2:
                    raise Overloaded("503")
                whole.append(request.messages[0].text)
                return completion()

        shelf = Shelf(pause=lambda: asyncio.ensure_future(asyncio.sleep(rng.choice([0.0, 0.1]))))
        cached = _cached(Server(), shelf)
        tasks = [asyncio.create_task(cached.complete(request(str(rng.randint(0, 3))))) for _ in range(12)]
        for task in tasks:
            if rng.random() < 0.5:
                asyncio.get_running_loop().call_later(rng.choice([0.0, 0.1, 0.2, 1.0, 1.1]), task.cancel)
        await asyncio.wait(tasks)
        assert sorted(whole) == sorted(set(whole)), "asked twice"
        assert set(shelf.payloads) == {request(text).hash("fake/model") for text in whole}
        assert sum(row.n_calls for row in shelf.spent) == len(whole)

    run(scenario())
