"""Tests of generation: texts are read ahead, written concurrently and stored as they arrive."""

import asyncio
from collections.abc import Sequence

import pytest

from quipu.derive.generation import (
    READ_AHEAD,
    ModelCalls,
    ReplyFormat,
    TextGeneration,
    ask_until_valid,
    merge_errors,
)
from quipu.errors import Busy, OverBudget, Overloaded, QuipuError, Refused, Unavailable
from quipu.model.chat import ChatRequest, Completion, FinishReason, Message, Role
from quipu.model.delta import CommitResult, Delta
from quipu.model.derivation import DerivationResult
from quipu.model.event import Event, Progress
from quipu.model.summary import Summary, SummaryTarget, SummaryTargetKind
from quipu.model.usage import Amount, SpendingLimit
from quipu.wrap.meter import SpendingBudget
from tests.unit.derive.writer import Writer, completion

_REQUEST = ChatRequest(messages=(Message("user", "#a#\n- x\n#a#"),), role=Role.REPORT, max_output_tokens=9)


class _Doubles:
    """A TextMaker that doubles numbers; it knows which it has read. Numbers that end in 3 need no text."""

    def __init__(self, failures: dict[int, QuipuError] | None = None) -> None:
        self.batches: list[Sequence[int]] = []
        self.n_at_once, self.peak = 0, 0
        self._failures = failures or {}

    async def read(self, keys: Sequence[int]) -> Sequence[tuple[int, int]]:
        self.batches.append(keys)
        return [(key, key) for key in keys if key % 10 != 3]

    async def write(self, key: int, number: int) -> Summary:
        self.n_at_once += 1
        self.peak = max(self.peak, self.n_at_once)
        await asyncio.sleep(0)
        self.n_at_once -= 1
        if key in self._failures:
            raise self._failures[key]
        target = SummaryTarget(SummaryTargetKind.ENTITY, str(2 * number))
        return Summary(target=target, inputs_hash="", text="", model="")

    def to_delta(self, texts: Sequence[Summary]) -> Delta:
        return Delta(summaries=texts)


class _Commits:
    """Remembers the numbers that are committed, and rejects those in `outdated`."""

    def __init__(self, *, outdated: Sequence[int] = (), error: Exception | None = None) -> None:
        self.numbers: list[int] = []
        self.n_commits = 0
        self._outdated = outdated
        self._error = error

    async def commit(self, delta: Delta) -> CommitResult:
        self.n_commits += 1
        await asyncio.sleep(0)
        if self._error is not None:
            raise self._error
        numbers = [int(summary.target.id) for summary in delta.summaries]
        self.numbers += numbers
        return CommitResult(revision=1, n_outdated=sum(number in self._outdated for number in numbers))


async def _generate(
    n_keys: int, maker: _Doubles, commits: _Commits, calls: ModelCalls | None = None
) -> tuple[TextGeneration[int, int, Summary], list[int]]:
    """Return the generation of n texts, and the counts it reported."""
    counts: list[int] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Progress):
            counts.append(event.n_done)

    generation: TextGeneration[int, int, Summary] = TextGeneration(
        commits.commit, calls or ModelCalls(Writer(), 4), on_event, Progress(stage="", n_done=0, n_total=n_keys)
    )
    try:
        await generation.generate(range(n_keys), maker)
    finally:
        assert counts == sorted(counts)
    return generation, counts


async def test_all_texts_are_stored_except_those_not_needed_and_those_that_fail_while_calls_go_on() -> None:
    maker, commits = _Doubles({7: OverBudget("It is spent."), 17: Unavailable("It is down.")}), _Commits()
    generation, counts = await _generate(50, maker, commits)
    assert sorted(commits.numbers) == [2 * n for n in range(50) if n % 10 != 3 and n not in (7, 17)]
    assert sorted(generation.failed) == [(7, "It is spent."), (17, "It is down.")]  # no text is lost in silence
    assert (generation.stopped, counts[-1]) == ("", 50)
    assert generation.n_stored == len(commits.numbers) == 43
    assert maker.peak == 4
    assert max(map(len, maker.batches)) == READ_AHEAD


async def test_texts_that_are_written_during_a_commit_are_committed_together() -> None:
    commits = _Commits()
    generation, _ = await _generate(40, _Doubles(), commits)
    assert generation.n_stored == 36
    assert commits.n_commits < 36


async def test_one_text_that_fails_is_listed_and_the_others_are_stored() -> None:
    commits = _Commits(outdated=[0, 2])
    failures: dict[int, QuipuError] = {3: Refused("No."), 5: Refused("It says no.", remedy="Ask another.")}
    generation, counts = await _generate(10, _Doubles(failures), commits)
    assert generation.failed == [(5, "It says no. Ask another.")]
    assert (generation.n_stored, generation.n_outdated, counts[-1]) == (6, 2, 10)


async def test_without_keys_nothing_is_read() -> None:
    maker = _Doubles()
    await _generate(0, maker, _Commits())
    assert maker.batches == []


async def test_an_error_of_the_store_or_a_fault_ends_the_run() -> None:
    class Faulty(_Doubles):
        async def read(self, keys: Sequence[int]) -> Sequence[tuple[int, int]]:
            raise LookupError(keys)

    with pytest.raises(LookupError):
        await _generate(20, Faulty(), _Commits())
    with pytest.raises(Busy):
        await _generate(20, _Doubles(), _Commits(error=Busy("It is locked.")))


async def test_after_an_error_of_reading_what_was_read_before_is_stored() -> None:
    class Unreadable(_Doubles):
        async def read(self, keys: Sequence[int]) -> Sequence[tuple[int, int]]:
            if self.batches:
                raise Busy("It is locked.")
            return await super().read(keys)

    commits = _Commits()
    with pytest.raises(Busy, match="locked"):
        await _generate(100, Unreadable(), commits)
    assert sorted(commits.numbers) == [2 * n for n in range(READ_AHEAD) if n % 10 != 3]


async def test_nothing_more_is_read_once_the_calls_have_stopped() -> None:
    calls = ModelCalls(Writer(reply=lambda _: Unavailable("It is down.")), 2)

    class Asking(_Doubles):
        async def write(self, key: int, number: int) -> Summary:
            if key >= 5:
                await calls.ask(_REQUEST)
            return await super().write(key, number)

    maker, commits = Asking(), _Commits()
    generation, counts = await _generate(100, maker, commits, calls)
    assert sorted(commits.numbers) == [0, 2, 4, 8]
    n_not_needed = sum(number % 10 == 3 for batch in maker.batches for number in batch)
    assert counts[-1] == len(commits.numbers) + n_not_needed
    assert len(maker.batches) <= 2
    assert generation.result("x") == DerivationResult(name="x", stopped="It is down.")


async def test_calls_that_fail_side_by_side_are_counted_by_their_cause() -> None:
    replies = iter([Unavailable("A is gone.", remedy="Start A."), *(Unavailable("B is gone.") for _ in range(2))])
    calls = ModelCalls(Writer(reply=lambda _: next(replies)), 3)
    outcomes = await asyncio.gather(*(calls.ask(_REQUEST) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(each, Unavailable) for each in outcomes)
    assert isinstance(calls.stop_error, Unavailable)
    assert str(calls.stop_error) == "3 model calls failed: A is gone; B is gone (2 times). Start A."


def test_of_many_causes_the_first_are_named() -> None:
    failures = [Refused(f"Cause {n}.") for n in range(9)]
    assert merge_errors(failures).message == ("9 model calls failed: Cause 0; Cause 1; Cause 2; and 6 other causes.")
    assert merge_errors([failures[0], Refused("Cause 0.")]) is failures[0]


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
    one = merge_errors([gone[0], *spent, gone[1]])
    assert isinstance(one, Unavailable)
    assert str(one) == "A is gone. It is spent: 0. Start A. Raise it."
    several = merge_errors([*spent, *gone])
    assert isinstance(several, OverBudget)
    assert str(several) == "3 model calls failed: A is gone (2 times); B is gone. It is spent: 0. Raise it. Start A."


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
    rules: ReplyFormat[str] = ReplyFormat(
        text="a yes", parse=lambda text: text if text.startswith("Yes") else None, length_factor=3
    )
    reply = await ask_until_valid(_REQUEST_ONE, model.ask, rules)
    assert reply.request == model.asked[-1]
    return reply.content, model.asked


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
    assert [each.max_output_tokens for each in asked] == [10, 30]


@pytest.mark.parametrize("text", ["Yes, bec", "", "No"])
async def test_what_broke_off_is_no_last_word_even_where_it_can_be_read(text: str) -> None:
    with pytest.raises(Overloaded) as caught:
        await _ask(completion(text, FinishReason.INTERRUPTED))
    assert caught.value.remedy


async def test_what_is_withheld_is_refused() -> None:
    with pytest.raises(Refused, match="withheld") as caught:
        await _ask(completion("Yes, bec", FinishReason.FILTERED))
    assert caught.value.remedy
