"""Fallback: where one model cannot answer, the next one is asked."""

import pytest

from quipu.errors import Mismatch, OverBudget, Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.wrap.fallback import FallbackLLM, Outages
from tests.unit.wrap.fakes import FakeLLM, completion, request


class Clock:
    """A time that is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _pair(*faults: QuipuError) -> tuple[FakeLLM, FakeLLM]:
    return FakeLLM([*faults, completion("one")], "first"), FakeLLM([completion("two")], "second")


async def test_the_first_model_answers_while_it_can() -> None:
    first, second = _pair()
    reply = await FallbackLLM([first, second]).complete(request())
    assert (reply.text, reply.model, len(second.asked)) == ("one", "", 0)


@pytest.mark.parametrize("error", [Overloaded("no"), Unavailable("no"), TooLong("no"), Refused("no")])
async def test_the_second_answers_where_the_first_cannot(error: QuipuError) -> None:
    first, second = _pair(error)
    pieces: list[str] = []
    llm = FallbackLLM([first, second])
    reply = await llm.complete(request(), pieces.append)
    assert (reply.text, reply.model, pieces, llm.identity) == ("two", "second", ["two"], "first")


@pytest.mark.parametrize("error", [OverBudget("no"), Mismatch("no")])
async def test_a_used_up_budget_is_not_passed_on(error: QuipuError) -> None:
    first, second = _pair(error)
    with pytest.raises(type(error)):
        await FallbackLLM([first, second]).complete(request())
    assert second.asked == []


@pytest.mark.parametrize("error", [Overloaded("no"), Unavailable("no")])
async def test_a_model_that_is_down_is_left_alone_for_a_while(error: QuipuError) -> None:
    (first, second), clock = _pair(error), Clock()
    llm = FallbackLLM([first, second], Outages(clock=clock))
    assert [(await llm.complete(request())).text for _ in range(3)] == ["two"] * 3
    assert len(first.asked) == 1
    clock.now += 60.0
    assert (await llm.complete(request())).text == "one"


@pytest.mark.parametrize("error", [TooLong("no"), Refused("no")])
async def test_a_request_that_is_refused_says_nothing_of_the_next(error: QuipuError) -> None:
    first, second = _pair(error)
    llm = FallbackLLM([first, second])
    assert [(await llm.complete(request())).text for _ in range(2)] == ["two", "one"]


async def test_a_model_that_was_down_is_asked_before_giving_up() -> None:
    first, second = (
        FakeLLM([Unavailable("no"), completion("one")], "first"),
        FakeLLM([completion("two"), Overloaded("no")], "second"),
    )
    llm = FallbackLLM([first, second], Outages(clock=Clock()))
    assert (await llm.complete(request())).text == "two"
    assert (await llm.complete(request())).text == "one"


@pytest.mark.parametrize(
    ("one", "two", "raised"),
    [
        (Unavailable("a"), Unavailable("b"), "a"),
        (Unavailable("a"), Overloaded("b"), "b"),
        (Overloaded("a"), Unavailable("b"), "a"),
        (TooLong("a"), Unavailable("b"), "a"),
        (Refused("a"), Overloaded("b"), "a"),
    ],
)
async def test_only_where_all_are_unavailable_nothing_can_be_done(
    one: QuipuError, two: QuipuError, raised: str
) -> None:
    llm = FallbackLLM([FakeLLM([one], "first"), FakeLLM([two], "second")])
    with pytest.raises(QuipuError, match=f"^{raised}$"):
        await llm.complete(request())
