"""What a model makes of a question before the search, and that no failure of it fails the question."""

import pytest

from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, Unavailable
from quipu.model.query import Keywords, Query, Turn
from quipu.retrieve.resolving import resolve
from tests.unit.retrieve.talker import Talker

HISTORY = (Turn(role="user", text="Who was Kober?"), Turn(role="assistant", text="A scholar."))
KEYWORDS = '{"high_level_keywords": ["teaching"], "low_level_keywords": ["Alice Kober"]}'
QUESTION = '{"question": "Where did Alice Kober teach?"}'


async def test_a_question_is_rewritten_and_the_rewritten_one_searched() -> None:
    llm = Talker(QUESTION, KEYWORDS)
    resolved = await resolve(Query(text="Where did she teach?", history=HISTORY), llm)
    query = resolved.query
    assert (query.text, query.search_text) == ("Where did she teach?", "Where did Alice Kober teach?")
    assert query.as_searched().text == "Where did Alice Kober teach?"
    assert query.model_keywords == Keywords(low_level=("Alice Kober",), high_level=("teaching",))
    assert "Where did Alice Kober teach?" in llm.requests[1].messages[-1].text
    assert resolved.notes == (
        "searched for: Where did Alice Kober teach?",
        "keywords of the model: Alice Kober; themes: teaching",
    )


async def test_without_a_model_nothing_changes() -> None:
    query = Query(text="Where did she teach?", history=HISTORY)
    resolved = await resolve(query, None)
    assert (resolved.query, resolved.notes) == (query, ())
    assert query.as_searched() is query


@pytest.mark.parametrize(
    ("query", "n_calls"),
    [
        (Query(text="Where?"), 1),
        (Query(text="Where?", strategy="naive"), 0),
        (Query(text="Where?", strategy="bypass", history=HISTORY), 0),
        (Query(text="Where?", strategy="naive", history=HISTORY), 1),
        (Query(text="Where?", history=HISTORY), 2),
        (Query(text="Where?", history=HISTORY, rewrite_question=False), 1),
        (Query(text="Where?", history=HISTORY, search_text="Where is it?"), 1),
        (Query(text="Where?", low_level_keywords=("Venice",)), 0),
        (Query(text="Where?", high_level_keywords=("trade",)), 0),
    ],
)
async def test_a_model_is_asked_for_what_a_strategy_wants_and_nobody_gave(query: Query, n_calls: int) -> None:
    llm = Talker(QUESTION, KEYWORDS)
    await resolve(query, llm)
    assert len(llm.requests) == n_calls


@pytest.mark.parametrize("error", [Overloaded("busy"), Unavailable("gone"), Refused("no"), OverBudget("poor")])
async def test_no_failure_of_a_model_fails_the_question(error: QuipuError) -> None:
    query = Query(text="Where did she teach?", history=HISTORY)
    resolved = await resolve(query, Talker(error))
    assert resolved.query == query
    assert resolved.notes == (
        f"the question was not rewritten: {error.message}",
        f"no keywords from a model, the question's own names stand in: {error.message}",
    )


async def test_replies_that_hold_nothing_leave_the_question_as_it_is() -> None:
    query = Query(text="Where did she teach?", history=HISTORY)
    resolved = await resolve(query, Talker("Well…"))
    assert resolved.query == query
    assert [note.rpartition(": ")[2] for note in resolved.notes] == [
        "the model's reply holds no question",
        "its reply holds none",
    ]


async def test_a_question_that_stands_alone_is_searched_as_it_is() -> None:
    query = Query(text="Where did Alice Kober teach?", history=HISTORY, strategy="naive")
    resolved = await resolve(query, Talker(QUESTION))
    assert resolved.query == query
    assert resolved.notes == ("the model found that the question stands alone",)
