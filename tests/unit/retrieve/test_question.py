"""Tests of questions: what a model makes of one before the search, and that its failure fails no question."""

from dataclasses import replace
from typing import get_type_hints

import pytest

from quipu.errors import InvalidInput, OverBudget, Overloaded, QuipuError, Refused, Unavailable
from quipu.model.chat import ReplyLifetime, Role
from quipu.model.query import Keywords, Query, Turn
from quipu.prompts import question as prompt
from quipu.retrieve import STRATEGIES, strategies_by_options
from quipu.retrieve.mix import MixWeights
from quipu.retrieve.ppr import PprOptions
from quipu.retrieve.question import (
    MAX_HISTORY_TURNS,
    MAX_KEYWORD_LENGTH,
    MAX_KEYWORDS_PER_LEVEL,
    MAX_REWRITTEN_LENGTH,
    MAX_TURN_LENGTH,
    NO_OPTIONS,
    QueryOptions,
    apply_preset,
    build_query,
    find_keywords,
    preset_notes,
    read_keywords,
    read_rewritten,
    rewrite_question,
    understand_question,
)
from quipu.retrieve.steps.seeds import NameOptions
from tests.unit.retrieve.talker import Talker

HISTORY = (Turn(role="user", text="Who was Kober?"), Turn(role="assistant", text="A scholar."))
KEYWORDS = '{"high_level_keywords": ["teaching"], "low_level_keywords": ["Alice Kober"]}'
QUESTION = '{"question": "Where did Alice Kober teach?"}'


async def test_a_question_is_rewritten_and_the_rewritten_one_searched() -> None:
    llm = Talker(QUESTION, KEYWORDS)
    understood = await understand_question(Query(text="Where did she teach?", strategy="mix", history=HISTORY), llm)
    query = understood.query
    assert (query.text, query.search_text) == ("Where did she teach?", "Where did Alice Kober teach?")
    assert query.as_searched().text == "Where did Alice Kober teach?"
    assert query.model_keywords == Keywords(low_level=("Alice Kober",), high_level=("teaching",))
    assert "Where did Alice Kober teach?" in llm.requests[1].messages[-1].text
    assert understood.notes == (
        "searched for: Where did Alice Kober teach?",
        "keywords of the model: Alice Kober; themes: teaching",
    )


async def test_without_a_model_nothing_changes() -> None:
    query = Query(text="Where did she teach?", strategy="mix", history=HISTORY)
    understood = await understand_question(query, None)
    assert (understood.query, understood.notes) == (query, ())
    assert query.as_searched() is query


@pytest.mark.parametrize(
    ("query", "n_calls"),
    [
        (Query(text="Where?", strategy="mix"), 1),
        (Query(text="Where?", strategy="naive"), 0),
        (Query(text="Where?", strategy="bypass", history=HISTORY), 0),
        (Query(text="Where?", strategy="naive", history=HISTORY), 1),
        (Query(text="Where?", strategy="mix", history=HISTORY), 2),
        (Query(text="Where?", strategy="mix", history=HISTORY, rewrite_question=False), 1),
        (Query(text="Where?", strategy="mix", history=HISTORY, search_text="Where is it?"), 1),
        (Query(text="Where?", strategy="mix", low_level_keywords=("Venice",)), 0),
        (Query(text="Where?", strategy="mix", high_level_keywords=("trade",)), 0),
    ],
)
async def test_a_model_is_asked_for_what_a_strategy_wants_and_nobody_gave(query: Query, n_calls: int) -> None:
    llm = Talker(QUESTION, KEYWORDS)
    await understand_question(query, llm)
    assert len(llm.requests) == n_calls


@pytest.mark.parametrize("error", [Overloaded("busy"), Unavailable("gone"), Refused("no"), OverBudget("poor")])
async def test_no_failure_of_a_model_fails_the_question(error: QuipuError) -> None:
    query = Query(text="Where did she teach?", strategy="mix", history=HISTORY)
    understood = await understand_question(query, Talker(error))
    assert understood.query == query
    assert understood.notes == (
        f"the question was not rewritten: {error.message}",
        f"no keywords from a model, names in the question are used: {error.message}",
    )


async def test_replies_that_hold_nothing_leave_the_question_as_it_is() -> None:
    query = Query(text="Where did she teach?", strategy="mix", history=HISTORY)
    understood = await understand_question(query, Talker("Well…"))
    assert understood.query == query
    assert [note.rpartition(": ")[2] for note in understood.notes] == [
        "the model's reply holds no question",
        "its reply holds none",
    ]


async def test_a_question_that_stands_alone_is_searched_as_it_is() -> None:
    query = Query(text="Where did Alice Kober teach?", history=HISTORY, strategy="naive")
    understood = await understand_question(query, Talker(QUESTION))
    assert understood.query == query
    assert understood.notes == ("the model found that the question stands alone",)


async def test_a_model_is_asked_to_rewrite_once_with_the_conversation() -> None:
    llm = Talker('{"question": "Where did Alice\\nKober teach?"}')
    assert (
        await rewrite_question(Query(text="Where did she teach?", strategy="mix", history=HISTORY), llm)
        == "Where did Alice Kober teach?"
    )
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
    history = [Turn(role="user", text=f"turn {n} " + "x" * MAX_TURN_LENGTH) for n in range(MAX_HISTORY_TURNS + 3)]
    await rewrite_question(Query(text="And then?", history=tuple(history)), llm)
    sent = llm.requests[0].messages[-1].text
    assert [n for n in range(MAX_HISTORY_TURNS + 3) if f"turn {n} " in sent] == list(range(3, MAX_HISTORY_TURNS + 3))
    assert len(sent) < (MAX_HISTORY_TURNS + 1) * (MAX_TURN_LENGTH + 100)


@pytest.mark.parametrize(
    "reply",
    ["", "Where?", "{}", '{"question": 7}', '["Where?"]', f'{{"question": "{"x" * (MAX_REWRITTEN_LENGTH + 1)}"}}'],
)
def test_a_reply_without_a_question_gives_none(reply: str) -> None:
    assert read_rewritten(reply) == ""


async def test_a_model_is_asked_once_with_the_question_as_the_subject() -> None:
    llm = Talker('{"high_level_keywords": ["trade"], "low_level_keywords": ["Venice", "Marco Polo"]}')
    found = await find_keywords(Query(text="Did Marco Polo trade in Venice?"), llm)
    assert found == Keywords(low_level=("Venice", "Marco Polo"), high_level=("trade",))
    (request,) = llm.requests
    assert request.messages == prompt.render_keywords("Did Marco Polo trade in Venice?")
    assert (request.role, request.lifetime, request.schema) == (
        Role.KEYWORDS,
        ReplyLifetime.FREE,
        prompt.KEYWORDS_SCHEMA,
    )
    assert (request.subject, request.documents) == ("Did Marco Polo trade in Venice?", ())


async def test_a_rewritten_question_is_the_one_that_is_read_and_may_be_gone_with_what_it_quotes() -> None:
    llm = Talker("{}")
    await find_keywords(Query(text="Where?", search_text="Where is Venice?"), llm)
    (request,) = llm.requests
    assert request.messages == prompt.render_keywords("Where is Venice?")
    assert (request.subject, request.lifetime) == ("Where?", ReplyLifetime.REVISION)


@pytest.mark.parametrize(
    ("reply", "low", "high"),
    [
        ('```json\n{"high_level_keywords": ["a"], "low_level_keywords": ["b"]}\n```', ("b",), ("a",)),
        ('Sure! {"low_level_keywords": ["b"]} I hope this helps.', ("b",), ()),
        ('<think>{"x": 1}</think>{"high_level_keywords": ["a"]}', (), ("a",)),
        ('{"low_level_keywords": "Venice, silk"}', ("Venice", "silk"), ()),
        ('{"low_level_keywords": ["b", " b ", "", null, {"x": 1}, 1254, "a\\nb"]}', ("b", "1254", "a b"), ()),
        ('{"low_level_keywords": {"b": 1}, "high_level_keywords": null}', (), ()),
        ('["b"]', (), ()),
        ("I cannot do that.", (), ()),
        ("", (), ()),
    ],
)
def test_replies_are_read_as_models_write_them(reply: str, low: tuple[str, ...], high: tuple[str, ...]) -> None:
    assert read_keywords(reply) == Keywords(low_level=low, high_level=high)


def test_no_reply_floods_the_search() -> None:
    many = ", ".join(f'"k{n}"' for n in range(1_000))
    assert len(read_keywords(f'{{"low_level_keywords": [{many}]}}').low_level) == MAX_KEYWORDS_PER_LEVEL
    assert read_keywords(f'{{"low_level_keywords": ["{"x" * (MAX_KEYWORD_LENGTH + 1)}"]}}').low_level == ()


def test_the_typed_options_are_the_fields_of_a_query_and_the_options_of_every_strategy() -> None:
    hints = {name: hint for name, hint in get_type_hints(Query).items() if name not in NO_OPTIONS}
    for kind in strategies_by_options():
        hints |= get_type_hints(kind)
    of_the_filter = {"as_of": str}
    assert get_type_hints(QueryOptions, localns={"MixWeights": MixWeights}) == hints | of_the_filter
    assert not QueryOptions.__required_keys__


def test_the_preset_sets_what_is_not_set_to_the_values_of_the_source() -> None:
    query = Query(text="Who?", strategy="ppr", preset="faithful", chunk_top_k=9, options=(PprOptions(ppr_damping=0.9),))
    faithful = apply_preset(query)
    assert (faithful.chunk_top_k, faithful.top_k) == (9, 40)
    assert (faithful.budget.entities, faithful.budget.relations, faithful.budget.total) == (4_000, 3_000, 16_000)
    assert faithful.options_of(PprOptions) == PprOptions(
        ppr_damping=0.9, ppr_parallel_edges=True, ppr_identity_edges=True, ppr_fallback=False
    )
    assert faithful.options_of(NameOptions) == NameOptions(match_names=False, max_name_share=1.0)
    assert apply_preset(faithful) == faithful


def test_the_trace_says_whose_values_the_options_have() -> None:
    query = Query(text="Who?", strategy="ppr", preset="faithful")
    assert preset_notes(query) == ("the preset 'faithful': options that are not set have the values of Fast GraphRAG",)
    assert preset_notes(replace(query, strategy="lexical")) == ("the preset 'faithful' changes no option of lexical",)
    assert preset_notes(replace(query, preset="default")) == ()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_default_preset_changes_nothing(strategy: str) -> None:
    query = Query(text="Who?", strategy=strategy)
    assert apply_preset(query) is query


@pytest.mark.parametrize("name", sorted(NO_OPTIONS))
def test_what_the_engine_sets_itself_is_no_option_of_a_question(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"no option '{name}'") as refused:
        build_query(lambda text: Query(text=text), "Where?", {name: "x"})
    assert f" {name}," not in refused.value.remedy
