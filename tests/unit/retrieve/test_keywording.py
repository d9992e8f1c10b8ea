"""Keywords from a model: what is asked, and what is made of a reply."""

import pytest

from quipu.model.chat import ReplyLifetime, Role
from quipu.model.query import Keywords, Query
from quipu.prompts import question as prompt
from quipu.retrieve.keywording import MAX_KEYWORDS, MAX_LENGTH, find_keywords, read_keywords
from tests.unit.retrieve.talker import Talker


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
    assert len(read_keywords(f'{{"low_level_keywords": [{many}]}}').low_level) == MAX_KEYWORDS
    assert read_keywords(f'{{"low_level_keywords": ["{"x" * (MAX_LENGTH + 1)}"]}}').low_level == ()
