"""Asking for one text: what is of use, what is asked again, and what a broken or withheld reply becomes."""

import pytest

from quipu.derive.asking import MORE_OUTPUT, ask_for
from quipu.errors import Overloaded, Refused
from quipu.model.chat import ChatRequest, Completion, FinishReason, Message, Role
from tests.unit.derive.writer import completion

_REQUEST = ChatRequest(messages=(Message("user", "Say yes."),), role=Role.REPORT, max_output_tokens=10)


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
    found = await ask_for("a yes", _REQUEST, model.ask, lambda text: text.startswith("Yes"))
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
    assert [each.max_output_tokens for each in asked] == [10, 10 * MORE_OUTPUT]


@pytest.mark.parametrize("text", ["Yes, bec", "", "No"])
async def test_what_broke_off_is_no_last_word_even_where_it_can_be_read(text: str) -> None:
    with pytest.raises(Overloaded) as caught:
        await _ask(completion(text, FinishReason.INTERRUPTED))
    assert caught.value.remedy


async def test_what_is_withheld_is_refused() -> None:
    with pytest.raises(Refused, match="withheld") as caught:
        await _ask(completion("Yes, bec", FinishReason.FILTERED))
    assert caught.value.remedy
