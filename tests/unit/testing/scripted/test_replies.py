"""Replies of scripted models."""

import json

import pytest

from quipu.bench.judge import read_grades, read_pair, read_questions, read_statements, read_useful
from quipu.model.chat import ChatRequest, Message, Role
from quipu.model.query import Query, Turn
from quipu.prompts import (
    aggregate,
    answer,
    community_search,
    drift,
    judge,
    question,
    summary,
    tuning,
)
from quipu.prompts import question as question_prompt
from quipu.testing.llm import ScriptedLLM
from quipu.testing.scripted.fault_injection import RequestDraw
from quipu.testing.scripted.prompt_parsing import parse_prompt
from quipu.testing.scripted.replies import ScriptedReplyWriter
from quipu.testing.scripted.script import CannedReply, Fault, FaultName, ReplyRules, RequestKind, Script
from tests.unit.testing.scripted.prompts import TEXT, extraction

PLAIN = ReplyRules()


def say(
    messages: tuple[Message, ...],
    *,
    answering: ReplyRules = PLAIN,
    fault: FaultName | None = None,
    schema: str | None = None,
) -> str:
    asked = parse_prompt(messages)
    struck = Fault(name=fault) if fault else None
    lot = RequestDraw(kind=asked.kind, key="key", attempt=1, latency_s=0, fault=struck)
    return ScriptedReplyWriter(answering).answer(asked, lot, schema)


def evidence(*, question: str = "Where did Alice Kober teach?") -> tuple[Message, ...]:
    query = Query(text=question)
    mark = "#0123456789ab#"
    passages = (
        f"{mark}Passages\n{mark}[1] Kober\nShe taught at Brooklyn. More.\n\n{mark}[2] Ventris\nHe was an architect."
    )
    return answer.render(query, passages, boundary=mark)


def test_an_extraction_ends_with_its_last_line() -> None:
    lines = say(extraction()).splitlines()
    assert lines[0] == "entity<|>Alice Kober<|>Concept<|>Alice Kober was born in New York."
    assert lines[-1] == "<|done|>"


def test_what_is_withheld_comes_when_asked_for() -> None:
    withholding = ReplyRules(n_withheld=2)
    whole = say(extraction()).splitlines()
    first = say(extraction(), answering=withholding)
    assert first.splitlines() == [*whole[:-3], "<|done|>"]
    assert say(extraction(TEXT, first), answering=withholding).splitlines() == whole[-3:]


def test_a_request_for_more_gets_the_last_line_when_all_has_been_said() -> None:
    assert say(extraction(TEXT, say(extraction()))) == "<|done|>"


def test_a_continuation_brings_the_lines_that_are_missing() -> None:
    whole = say(extraction())
    cut = whole[: len(whole) // 2]
    kept = cut[: cut.rindex("\n")]
    assert f"{kept}\n{say(extraction(TEXT, kept))}" == whole


def test_what_an_earlier_reply_said_in_other_words_or_as_json_is_not_said_again() -> None:
    assert "Alice Kober<|>" not in say(extraction(TEXT, "entity<|>ALICE KOBER<|>Scholar<|>Of Linear B.\n<|done|>"))[:20]
    said = say(extraction(), schema="")
    assert json.loads(say(extraction(TEXT, said), schema="")) == {"entities": [], "relations": [], "aliases": []}


def test_an_extraction_is_json_where_the_request_wants_it() -> None:
    said = json.loads(say(extraction(), schema=""))
    assert said["entities"][0]["name"] == "Alice Kober"
    assert said["relations"][0]["source"] == "Alice Kober"
    assert said["aliases"] == [{"name": "World Health Organization", "other": "WHO"}]


def test_keywords_are_the_names_and_the_long_words_of_the_question() -> None:
    said = say(question_prompt.render_keywords("Which college employed Alice Kober in New York?"))
    assert json.loads(said) == {
        "high_level_keywords": ["college", "employed"],
        "low_level_keywords": ["Alice Kober", "New York"],
    }


def test_another_input_gives_another_summary() -> None:
    first = say(summary.render(["Alice Kober"], ["A scholar of Linear B.", "She taught."], max_words=100))
    assert first.startswith("Alice Kober: A scholar of Linear B; She taught.") and first.endswith("of 2.)")
    assert first != say(summary.render(["Alice Kober"], ["A scholar of Linear B."], max_words=100))


def test_an_answer_quotes_the_first_passages_with_their_numbers() -> None:
    assert say(evidence()) == "She taught at Brooklyn. [1] He was an architect. [2]"


@pytest.mark.parametrize(
    ("fault", "says"), [(FaultName.UNKNOWN_CITATION, "[97]"), (FaultName.UNSUPPORTED, "purple elephants")]
)
def test_an_answer_may_say_what_no_passage_says(fault: FaultName, says: str) -> None:
    assert says in say(evidence(), fault=fault)


def test_without_evidence_the_answer_says_so() -> None:
    query = Query(text="Who?")
    assert say(answer.render(query, "", boundary="#0123456789ab#")).startswith("[0]")
    assert "Who?" in say(answer.render_without_evidence(query, boundary="#0123456789ab#"))


@pytest.mark.parametrize(
    ("question", "rewritten"),
    [("Where did she teach?", "Where did Alice Kober teach?"), ("And then?", "And then? (Alice Kober)")],
)
def test_a_question_is_rewritten_with_the_name_last_spoken_of(question: str, rewritten: str) -> None:
    turns = (Turn(role="user", text="Who was Alice Kober?"),)
    assert json.loads(say(question_prompt.render_rewrite(question, turns))) == {"question": rewritten}


def test_a_judgement_can_be_read_whatever_is_judged() -> None:
    reply = say(judge.render(judge.PAIR, [("Answer", "In Venice."), ("Answer", "In Pisa.")], [("Question", "Where?")]))
    assert read_statements(reply) == [True]
    assert read_questions(reply)
    assert read_useful(reply, 1) == [1]
    assert read_grades(reply) and read_pair(reply)


def test_any_other_prompt_is_echoed_or_fits_its_schema() -> None:
    ping = (Message("user", "Reply with OK."),)
    assert say(ping) == "You said: Reply with OK."
    schema = '{"type": "object", "properties": {"reply": {"type": "string"}}}'
    assert json.loads(say(ping, schema=schema)) == {"reply": "You said: Reply with OK."}


def test_a_reply_of_ones_own_comes_first() -> None:
    own = ReplyRules(
        replies=(CannedReply(text="no", kinds=(RequestKind.ANSWER,)), CannedReply(text="yes", containing="OK"))
    )
    assert say((Message("user", "Reply with OK."),), answering=own) == "yes"
    assert say((Message("user", "Anything else?"),), answering=own) == "You said: Anything else?"


def test_an_aggregate_and_a_connection_are_functions_of_what_is_shown() -> None:
    things = [("Kober", "She taught."), ("Ventris", "He read it.")]
    replies = [say(aggregate.render(each, ["A saw B."]), schema=aggregate.SCHEMA) for each in (things, things[:1])]
    told = json.loads(replies[0])
    assert told["name"] == "Kober and Ventris" and told["findings"][0]["summary"] == "Kober: She taught."
    assert replies[0] == say(aggregate.render(things, ["A saw B."])) != replies[1]
    connected = [say(aggregate.render_relation(things, [note], max_words=30)) for note in ("They met.", "No.")]
    assert "They met." in connected[0] != connected[1]


QUESTION = "Where did Kober teach classics?"
REPORTS = [("Ventris", "He was an architect. He read tablets."), ("Kober", "Alice Kober taught classics in Brooklyn.")]


def reply_to(messages: tuple[Message, ...], schema: str | None = None) -> str:
    asked = parse_prompt(messages)
    lot = RequestDraw(kind=asked.kind, key="key", attempt=1, latency_s=0, fault=None)
    return ScriptedReplyWriter(ReplyRules()).answer(asked, lot, schema)


def test_points_are_first_sentences_scored_by_the_words_of_the_question() -> None:
    said = json.loads(reply_to(community_search.render_map(QUESTION, REPORTS), community_search.MAP_SCHEMA))
    assert [(each["text"], each["reports"]) for each in said["points"]] == [
        ("He was an architect.", [1]),
        ("Alice Kober taught classics in Brooklyn.", [2]),
    ]
    assert said["points"][0]["score"] == 0 < said["points"][1]["score"]


def test_a_report_is_rated_by_the_words_of_the_question_it_holds() -> None:
    ratings = [json.loads(reply_to(community_search.render_rating(QUESTION, each)))["rating"] for each in REPORTS]
    assert ratings[0] == 0 < ratings[1] <= 5


def test_an_imagined_report_is_plain_text() -> None:
    assert reply_to(drift.render_hyde(Query(text=QUESTION), REPORTS[0])) == f"Ventris\n\n{QUESTION}"


def test_a_partial_answer_names_its_source_and_asks_after_the_names_in_the_texts() -> None:
    for messages in (
        drift.render_primer(Query(text=QUESTION), REPORTS),
        drift.render_follow_up(QUESTION, Query(text="Who?"), REPORTS),
    ):
        said = json.loads(reply_to(messages, drift.SCHEMA))
        assert (said["answer"], said["sources"]) == ("Alice Kober taught classics in Brooklyn.", [2])
        assert "What is known of Alice Kober?" in said["follow_ups"]
    assert json.loads(reply_to(drift.render_primer(Query(text=QUESTION), [])))["score"] == 0


def test_facts_of_use_hold_words_of_the_question() -> None:
    said = json.loads(reply_to(question.render_facts(QUESTION, REPORTS), question.FACTS_SCHEMA))
    assert said == {"relevant": [2]}


def test_terms_are_the_names_of_the_question_and_the_types_its_words_tell() -> None:
    said = json.loads(reply_to(question.render_terms(QUESTION, ["Location", "Person"]), question.TERMS_SCHEMA))
    assert said == {"answer_types": ["Location"], "names": ["Kober"]}


async def _guide(*texts: str) -> object:
    messages = tuning.render(
        [tuning.SampleText(text=text) for text in texts], ["Person", "Creature: alive", "Place", "Other"]
    )
    request = ChatRequest(messages=messages, role=Role.EXTRACT, max_output_tokens=2_000, schema=tuning.SCHEMA)
    return json.loads((await ScriptedLLM(Script()).complete(request)).text)


async def test_a_guide_is_a_function_of_the_passages() -> None:
    guide = await _guide("Marco Polo met merchants.", "Kublai Khan ruled.")
    assert guide == {
        "domain": "The texts speak of Marco Polo, Kublai Khan. What they did matters.",
        "types": [
            {"name": "Person", "description": "told of Person"},
            {"name": "Creature", "description": "told of Creature"},
            {"name": "Place", "description": "told of Place"},
            {"name": "Merchants", "description": "told of Merchants"},
        ],
        "relations": [
            {"name": "told of", "description": "spoken of by", "from": ["Person"], "to": ["Creature", "Place"]}
        ],
    }
    assert await _guide("Marco Polo met merchants.", "Kublai Khan ruled.") == guide
    assert await _guide("Marco Polo met sailors of the coastlines.") != guide
