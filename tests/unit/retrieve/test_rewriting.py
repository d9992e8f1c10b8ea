"""A question of a conversation, made to stand alone."""

import pytest

from quipu.model.chat import ReplyLifetime, Role
from quipu.model.query import Turn
from quipu.prompts import question as prompt
from quipu.retrieve.rewriting import MAX_QUESTION, MAX_TURN, MAX_TURNS, read_question, stand_alone
from tests.unit.retrieve.talker import Talker

HISTORY = (Turn(role="user", text="Who was Kober?"), Turn(role="assistant", text="A scholar."))


async def test_a_model_is_asked_once_with_the_conversation() -> None:
    llm = Talker('{"question": "Where did Alice\\nKober teach?"}')
    assert await stand_alone("Where did she teach?", HISTORY, llm) == "Where did Alice Kober teach?"
    (request,) = llm.requests
    assert request.messages == prompt.render_rewrite("Where did she teach?", HISTORY)
    assert (request.role, request.lifetime, request.schema) == (
        Role.KEYWORDS,
        ReplyLifetime.REVISION,
        prompt.REWRITE_SCHEMA,
    )
    assert request.subject == "Where did she teach?"


async def test_only_the_last_turns_are_sent_and_long_ones_cut() -> None:
    llm = Talker('{"question": "x"}')
    history = [Turn(role="user", text=f"turn {n} " + "x" * MAX_TURN) for n in range(MAX_TURNS + 3)]
    await stand_alone("And then?", history, llm)
    sent = llm.requests[0].messages[-1].text
    assert [n for n in range(MAX_TURNS + 3) if f"turn {n} " in sent] == list(range(3, MAX_TURNS + 3))
    assert len(sent) < (MAX_TURNS + 1) * (MAX_TURN + 100)


@pytest.mark.parametrize(
    "reply", ["", "Where?", "{}", '{"question": 7}', '["Where?"]', f'{{"question": "{"x" * (MAX_QUESTION + 1)}"}}']
)
def test_a_reply_without_a_question_gives_none(reply: str) -> None:
    assert read_question(reply) == ""
