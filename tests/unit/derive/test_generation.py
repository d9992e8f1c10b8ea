"""Tests of generation: texts are read ahead, written concurrently and stored as they arrive."""

import asyncio
from collections.abc import Sequence

import pytest

from quipu.derive.generation import (
    LENGTH_FACTOR,
    READ_AHEAD,
    GenerationSteps,
    ModelCalls,
    ask_until_valid,
    generate_all,
    merge_errors,
)
from quipu.errors import OverBudget, Overloaded, Refused, Unavailable
from quipu.model.chat import ChatRequest, Completion, FinishReason, Message, Role
from quipu.model.usage import SpendingLimit
from quipu.wrap.meter import Amount, SpendingBudget
from tests.unit.derive.writer import Writer, completion

_REQUEST = ChatRequest(messages=(Message("user", "#a#\n- x\n#a#"),), role=Role.REPORT, max_output_tokens=9)


class _Desk:
    """Doubles numbers; knows which it has read and kept."""

    def __init__(self) -> None:
        self.read_blocks: list[Sequence[int]] = []
        self.kept: list[int] = []
        self.n_at_once, self.peak = 0, 0

    async def read(self, keys: Sequence[int]) -> Sequence[int]:
        self.read_blocks.append(keys)
        return [each for each in keys if each % 10 != 3]

    async def write(self, number: int) -> int | None:
        self.n_at_once += 1
        self.peak = max(self.peak, self.n_at_once)
        await asyncio.sleep(0)
        self.n_at_once -= 1
        return None if number % 10 == 7 else 2 * number

    async def keep(self, written: Sequence[int]) -> None:
        self.kept += written

    def work(self) -> GenerationSteps[int, int, int]:
        return GenerationSteps(read=self.read, write=self.write, store=self.keep)


async def test_all_is_written_but_what_is_gone_and_what_was_not_tried() -> None:
    desk, done = _Desk(), list[int]()
    await generate_all(range(50), desk.work(), n_concurrent=4, on_done=done.append)
    assert sorted(desk.kept) == [2 * n for n in range(50) if n % 10 not in (3, 7)]
    assert done == sorted(done)
    assert done[-1] == len(desk.kept) + 5  # what was not tried is not done
    assert desk.peak == 4
    assert max(map(len, desk.read_blocks)) == READ_AHEAD


async def test_nothing_is_done_where_there_is_nothing_to_do() -> None:
    desk = _Desk()
    await generate_all([], desk.work(), n_concurrent=2, on_done=lambda _: None)
    assert desk.read_blocks == []


@pytest.mark.parametrize("step", ["read", "write", "store"])
async def test_what_a_step_raises_ends_the_run(step: str) -> None:
    async def fail(_: object) -> None:
        raise LookupError(step)

    desk = _Desk()
    steps = {"read": desk.read, "write": desk.write, "store": desk.keep, step: fail}
    with pytest.raises(LookupError, match=step):
        await generate_all(range(20), GenerationSteps(**steps), n_concurrent=2, on_done=lambda _: None)  # type: ignore[arg-type]


async def test_several_failures_are_told_together_and_what_succeeded_is_kept() -> None:
    """Two fail while others are under way, which are ended and kept; nothing more is begun."""
    causes = {3: Overloaded("It is busy.", remedy="Wait."), 4: Refused("It says no.", remedy="Ask another.")}
    begun: list[int] = []
    desk = _Desk()

    async def write(number: int) -> int:
        begun.append(number)
        await asyncio.sleep(0)
        if number in causes:
            raise causes[number]
        await asyncio.sleep(0)
        return number

    async def read(numbers: Sequence[int]) -> Sequence[int]:
        return numbers

    with pytest.raises(Overloaded) as caught:
        await generate_all(
            range(40), GenerationSteps(read=read, write=write, store=desk.keep), n_concurrent=6, on_done=lambda _: None
        )
    assert caught.value.message == "2 texts could not be written: It is busy; It says no."
    assert caught.value.remedy == "Wait. Ask another."
    assert sorted(desk.kept) == [each for each in begun if each not in causes] == [0, 1, 2, 5]


async def test_calls_that_fail_side_by_side_are_counted_by_their_cause() -> None:
    replies = iter([Unavailable("A is gone.", remedy="Start A."), *(Unavailable("B is gone.") for _ in range(2))])
    calls = ModelCalls(Writer(reply=lambda _: next(replies)), 3)
    outcomes = await asyncio.gather(*(calls.ask(_REQUEST) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(each, Unavailable) for each in outcomes)
    assert isinstance(calls.stop_error, Unavailable)
    assert str(calls.stop_error) == "3 model calls failed: A is gone; B is gone (2 times). Start A."


def test_of_many_causes_the_first_are_named() -> None:
    failures = [Refused(f"Cause {n}.") for n in range(9)]
    assert merge_errors(failures, "calls failed").message == (
        "9 calls failed: Cause 0; Cause 1; Cause 2; and 6 other causes."
    )
    assert merge_errors([failures[0], Refused("Cause 0.")], "calls failed") is failures[0]


@pytest.mark.parametrize("step", ["read", "write"])
async def test_what_is_not_tried_after_a_failure_is_not_told_as_done(step: str) -> None:
    desk, done = _Desk(), list[int]()

    async def fail_in_the_second_block(numbers: Sequence[int]) -> Sequence[int]:
        if desk.read_blocks:
            raise OverBudget("It is spent.")
        return await desk.read(numbers)

    async def fail_on_the_second(number: int) -> int | None:
        if number == 1:
            raise OverBudget("It is spent.")
        return await desk.write(number)

    read = fail_in_the_second_block if step == "read" else desk.read
    write = fail_on_the_second if step == "write" else desk.write
    with pytest.raises(OverBudget):
        await generate_all(
            range(100), GenerationSteps(read=read, write=write, store=desk.keep), n_concurrent=2, on_done=done.append
        )
    assert done == sorted(done)
    n_not_wanted = sum(number % 10 == 3 for block in desk.read_blocks for number in block)
    assert 0 < done[-1] == len(desk.kept) + n_not_wanted < 50


async def test_what_is_not_read_any_more_is_not_told_as_done() -> None:
    """As summaries and reports do where their calls have ended: they raise nothing."""
    desk, done = _Desk(), list[int]()

    async def read(numbers: Sequence[int]) -> Sequence[int] | None:
        return None if desk.read_blocks else await desk.read(numbers)

    await generate_all(
        range(100), GenerationSteps(read=read, write=desk.write, store=desk.keep), n_concurrent=2, on_done=done.append
    )
    assert done[-1] == len(desk.kept) + 2  # 3 and 13 are not wanted


async def test_a_spent_budget_is_told_once_whatever_each_call_would_have_needed() -> None:
    budget = SpendingBudget(SpendingLimit(tokens=10_000))
    needed = iter(range(3_000, 4_000, 17))

    async def pay(_: ChatRequest) -> None:
        most = Amount(tokens=next(needed), calls=1)
        await budget.reserve(most)
        await asyncio.sleep(0)
        budget.settle(most, Amount(tokens=2_600, calls=1))

    calls = ModelCalls(Writer(work=pay), 8)
    outcomes = await asyncio.gather(*(calls.ask(_REQUEST) for _ in range(20)), return_exceptions=True)
    refused = [each for each in outcomes if isinstance(each, OverBudget)]
    assert len({each.message for each in refused}) > 1
    assert calls.stop_error is refused[0]
    assert str(calls.stop_error).startswith("The budget of 10,000 tokens does not allow another call: ")


def test_a_spent_budget_stands_behind_the_calls_that_failed() -> None:
    spent = [OverBudget(f"It is spent: {n}.", remedy="Raise it.") for n in range(3)]
    gone = [Unavailable("A is gone.", remedy="Start A."), Unavailable("A is gone."), Unavailable("B is gone.")]
    one = merge_errors([gone[0], *spent, gone[1]], "calls failed")
    assert isinstance(one, Unavailable)
    assert str(one) == "A is gone. It is spent: 0. Start A. Raise it."
    several = merge_errors([*spent, *gone], "calls failed")
    assert isinstance(several, OverBudget)
    assert str(several) == "3 calls failed: A is gone (2 times); B is gone. It is spent: 0. Raise it. Start A."


async def test_calls_end_with_the_first_that_says_so() -> None:
    writer = Writer(reply=lambda _: Unavailable("gone"))
    calls = ModelCalls(writer, 1)
    for _ in range(3):
        with pytest.raises(Unavailable, match="gone"):
            await calls.ask(_REQUEST)
    assert len(writer.asked) == 1
    assert calls.stop_error is not None


_REQUEST_ONE = ChatRequest(messages=(Message("user", "Say yes."),), role=Role.REPORT, max_output_tokens=10)


class _Model:
    """Replies in turn, and remembers what was asked."""

    def __init__(self, *replies: Completion) -> None:
        self._replies = iter(replies)
        self.asked: list[ChatRequest] = []

    async def ask(self, request: ChatRequest) -> Completion:
        self.asked.append(request)
        return next(self._replies)


def _kept(text: str) -> Completion:
    reply = completion(text)
    return Completion(text=reply.text, finish=reply.finish, tokens=reply.tokens, is_reused=True)


async def _ask(*replies: Completion) -> tuple[str, list[ChatRequest]]:
    model = _Model(*replies)
    found = await ask_until_valid("a yes", _REQUEST_ONE, model.ask, lambda text: text.startswith("Yes"))
    return found.text, model.asked


@pytest.mark.parametrize(
    ("replies", "attempts"),
    [
        ([completion("Yes.")], [0]),
        ([completion("No."), completion("Yes.")], [0, 1]),
        ([_kept("No."), completion("Yes.")], [0, 1]),
        ([_kept("No."), _kept("No."), completion("Yes.")], [0, 1, 2]),
    ],
)
async def test_what_is_of_no_use_is_asked_for_once_more_and_what_was_kept_of_it_anew(
    replies: list[Completion], attempts: list[int]
) -> None:
    text, asked = await _ask(*replies)
    assert text == "Yes."
    assert [each.attempt for each in asked] == attempts


@pytest.mark.parametrize(
    "replies", [[completion("No."), completion("No.")], [_kept("No."), completion("No.")]], ids=["fresh", "one kept"]
)
async def test_two_replies_of_no_use_are_a_refusal_that_says_what_came_and_what_to_do(
    replies: list[Completion],
) -> None:
    with pytest.raises(Refused, match=r"not a yes \(stop\): 'No\.'") as caught:
        await _ask(*replies)
    assert caught.value.remedy


async def test_a_reply_that_is_cut_short_gets_more_room_once() -> None:
    text, asked = await _ask(
        completion("Yes, bec", FinishReason.LENGTH), completion("Yes, because.", FinishReason.LENGTH)
    )
    assert text == "Yes, because."
    assert [each.max_output_tokens for each in asked] == [10, 10 * LENGTH_FACTOR]


@pytest.mark.parametrize("text", ["Yes, bec", "", "No"])
async def test_what_broke_off_is_no_last_word_even_where_it_can_be_read(text: str) -> None:
    with pytest.raises(Overloaded) as caught:
        await _ask(completion(text, FinishReason.INTERRUPTED))
    assert caught.value.remedy


async def test_what_is_withheld_is_refused() -> None:
    with pytest.raises(Refused, match="withheld") as caught:
        await _ask(completion("Yes, bec", FinishReason.FILTERED))
    assert caught.value.remedy
