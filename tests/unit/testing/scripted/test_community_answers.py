"""What a scripted model says of reports on communities."""

import json

from quipu.model.chat import Message
from quipu.prompts import (
    community_search,
    drift,
    question,
)
from quipu.testing.scripted.fault_injection import RequestDraw
from quipu.testing.scripted.prompt_parsing import parse_prompt
from quipu.testing.scripted.replies import ReplyWriter
from quipu.testing.scripted.script import ReplyRules

QUESTION = "Where did Kober teach classics?"
REPORTS = [("Ventris", "He was an architect. He read tablets."), ("Kober", "Alice Kober taught classics in Brooklyn.")]


def say(messages: tuple[Message, ...], schema: str | None = None) -> str:
    asked = parse_prompt(messages)
    lot = RequestDraw(kind=asked.kind, key="key", attempt=1, latency_s=0, fault=None)
    return ReplyWriter(ReplyRules()).answer(asked, lot, schema)


def test_points_are_first_sentences_scored_by_the_words_of_the_question() -> None:
    said = json.loads(say(community_search.render_map(QUESTION, REPORTS), community_search.MAP_SCHEMA))
    assert [(each["text"], each["reports"]) for each in said["points"]] == [
        ("He was an architect.", [1]),
        ("Alice Kober taught classics in Brooklyn.", [2]),
    ]
    assert said["points"][0]["score"] == 0 < said["points"][1]["score"]


def test_a_report_is_rated_by_the_words_of_the_question_it_holds() -> None:
    ratings = [json.loads(say(community_search.render_rating(QUESTION, each)))["rating"] for each in REPORTS]
    assert ratings[0] == 0 < ratings[1] <= 5


def test_an_imagined_report_is_plain_text() -> None:
    assert say(drift.render_hyde(QUESTION, REPORTS[0])) == f"Ventris\n\n{QUESTION}"


def test_a_partial_answer_names_its_source_and_asks_after_the_names_in_the_texts() -> None:
    for messages in (drift.render_primer(QUESTION, REPORTS), drift.render_follow_up(QUESTION, "Who?", REPORTS)):
        said = json.loads(say(messages, drift.SCHEMA))
        assert (said["answer"], said["sources"]) == ("Alice Kober taught classics in Brooklyn.", [2])
        assert "What is known of Alice Kober?" in said["follow_ups"]
    assert json.loads(say(drift.render_primer(QUESTION, [])))["score"] == 0


def test_facts_of_use_hold_words_of_the_question() -> None:
    said = json.loads(say(question.render_facts(QUESTION, REPORTS), question.FACTS_SCHEMA))
    assert said == {"relevant": [2]}


def test_terms_are_the_names_of_the_question_and_the_types_its_words_tell() -> None:
    said = json.loads(say(question.render_terms(QUESTION, ["Location", "Person"]), question.TERMS_SCHEMA))
    assert said == {"answer_types": ["Location"], "names": ["Kober"]}
