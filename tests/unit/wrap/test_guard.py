"""Guards: what stands around each call of a service."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from quipu.errors import Overloaded, Unavailable
from quipu.model.chat import Role
from quipu.wrap.embedder import guarded_embedder
from quipu.wrap.guard import CircuitBreaker, ServiceCall, run_guarded
from quipu.wrap.meter import Meter
from quipu.wrap.metered_models import MeteredLLM, MeteredReranker
from tests.unit.wrap.fakes import PRICING, FakeEmbedder, FakeLLM, FakeReranker, Shelf, request

T = TypeVar("T")


class Watch:
    """A guard that writes down what passes."""

    def __init__(self, name: str, log: list[str]) -> None:
        self._name = name
        self._log = log

    async def run(self, work: Callable[[], Awaitable[T]], call: ServiceCall) -> T:
        """Write down the call, before and after."""
        urgent = "!" if call.is_urgent else ""
        self._log.append(f"{self._name}: {call.kind}{urgent}")
        result = await work()
        self._log.append(f"{self._name}.")
        return result


async def _seven() -> int:
    return 7


async def test_the_first_guard_is_the_outermost() -> None:
    log: list[str] = []
    assert await run_guarded([Watch("a", log), Watch("b", log)], _seven, ServiceCall(kind="x")) == 7
    assert log == ["a: x", "b: x", "b.", "a."]


async def test_without_guards_work_is_just_done() -> None:
    assert await run_guarded([], _seven, ServiceCall(kind="x")) == 7


@pytest.mark.parametrize(
    ("role", "said"), [(Role.ANSWER, "answer!"), (Role.KEYWORDS, "keywords!"), (Role.EXTRACT, "extract")]
)
async def test_what_a_person_waits_for_is_urgent(role: Role, said: str) -> None:
    log: list[str] = []
    llm = MeteredLLM(FakeLLM(), Meter(), PRICING, [Watch("g", log)])
    assert (await llm.complete(request(role=role))).text == "Alice."
    assert log == [f"g: {said}", "g."]
    assert llm.identity == "fake/model"


async def test_embedders_and_rerankers_are_guarded_alike() -> None:
    log: list[str] = []
    embedder = guarded_embedder(FakeEmbedder(), [Watch("g", log)])
    reranker = MeteredReranker(FakeReranker(), Meter(), PRICING, Shelf().record_call, [Watch("g", log)])
    assert (await embedder.embed(["ab"])).tolist() == [[2, 1]]
    assert (await embedder.embed_queries(["abc"])).tolist() == [[3, 1]]
    assert await reranker.score("?", ["a", "bc"]) == [1, 2]
    assert log[::2] == ["g: embed", "g: embed query!", "g: rerank!"]
    assert (embedder.identity, embedder.dimension, reranker.identity) == ("fake/embedder", 2, "fake/reranker")


async def test_pieces_of_text_pass_through() -> None:
    pieces: list[str] = []
    await MeteredLLM(FakeLLM(), Meter(), PRICING, [Watch("g", [])]).complete(request(), pieces.append)
    assert pieces == ["Alice."]


class Clock:
    """A time that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


async def _fail(error: Exception) -> int:
    raise error


CALL = ServiceCall(kind="x")


async def test_after_the_first_outage_a_breaker_repeats_its_error_without_a_call() -> None:
    breaker, n_calls = CircuitBreaker(), 0

    async def count() -> int:
        nonlocal n_calls
        n_calls += 1
        return n_calls

    with pytest.raises(Unavailable, match="no key"):
        await breaker.run(lambda: _fail(Unavailable("no key")), CALL)
    with pytest.raises(Unavailable, match="no key"):
        await breaker.run(count, CALL)
    assert n_calls == 0


async def test_an_overloaded_service_does_not_open_a_breaker() -> None:
    breaker = CircuitBreaker()
    with pytest.raises(Overloaded):
        await breaker.run(lambda: _fail(Overloaded("429")), CALL)
    assert await breaker.run(_seven, CALL) == 7


async def test_a_call_that_began_before_a_breaker_opened_does_not_close_it() -> None:
    breaker = CircuitBreaker()

    async def succeed_after_an_outage() -> int:
        breaker.record_failure(Unavailable("no key"))
        return 7

    assert await breaker.run(succeed_after_an_outage, CALL) == 7
    assert breaker.is_open


async def test_a_breaker_opens_after_failures_in_a_row_and_closes_with_a_success_or_with_time() -> None:
    clock = Clock()
    breaker = CircuitBreaker(max_failures=2, open_s=60.0, clock=clock)
    breaker.record_failure(Overloaded("503"))
    assert await breaker.run(_seven, CALL) == 7
    breaker.record_failure(Overloaded("503"))
    assert not breaker.is_open
    breaker.record_failure(Overloaded("503"))
    assert breaker.is_open
    clock.now += 60.0
    assert not breaker.is_open
    breaker.record_failure(Overloaded("503"))
    assert breaker.is_open
    breaker.record_success()
    assert not breaker.is_open
