"""What a model suggests, and what of it is of no use."""

import json

import pytest

from quipu.ingest.tuning.suggestion import MAX_DOMAIN, parse_suggestion
from quipu.model.extraction import RelationRule, TypeRule
from quipu.model.graph import ENTITY_TYPES

KNOWN = tuple(TypeRule(name=name) for name in ENTITY_TYPES)
SHIP = {"name": "Ship", "description": "what sails"}
PERSON = {"name": "person", "description": "a human being"}
CARRIES = {"name": "carries", "description": "has aboard", "from": ["Ship"], "to": ["Person"]}


def said(**parts: object) -> str:
    return json.dumps({"domain": "Ledgers.", "types": [SHIP, PERSON], "relations": [CARRIES], **parts})


def test_a_suggestion_is_read_and_known_types_keep_their_spelling() -> None:
    found = parse_suggestion(said(), KNOWN)
    assert found is not None
    assert found.domain == "Ledgers."
    assert found.types == [
        TypeRule(name="Ship", description="what sails"),
        TypeRule(name="Person", description="a human being"),
    ]
    assert found.relations == [
        RelationRule(name="carries", description="has aboard", domain=("Ship",), range=("Person",))
    ]
    assert found.notes == []


@pytest.mark.parametrize("form", ["```json\n{}\n```", "Here it is:\n{}\nI hope it helps.", "<think>so</think>{}"])
def test_a_suggestion_is_found_in_what_models_write_around_it(form: str) -> None:
    assert parse_suggestion(form.replace("{}", said()), KNOWN) == parse_suggestion(said(), KNOWN)


def test_the_beginning_of_a_suggestion_that_was_cut_short_counts() -> None:
    found = parse_suggestion(said()[:-60], KNOWN)
    assert found is not None and [rule.name for rule in found.types] == ["Ship", "Person"]


@pytest.mark.parametrize(
    "reply",
    ["", "I cannot do that.", "[]", "{}", '{"types": 3}', '{"types": [null, 7, {"name": 3}]}', said(types=[SHIP])],
)
def test_what_is_no_suggestion_is_none(reply: str) -> None:
    assert parse_suggestion(reply, KNOWN) is None


def test_other_shapes_of_lists_are_understood() -> None:
    found = parse_suggestion(said(types={"Ship": "what sails", "Port": {}}, relations=["calls at"]), KNOWN)
    assert found is not None
    assert found.types == [TypeRule(name="Ship", description="what sails"), TypeRule(name="Port")]
    assert found.relations == [RelationRule(name="calls at")]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"name": "ships"}, "it is a duplicate"),
        ({"name": "x" * 41}, "no usable name"),
        ({"name": "Ship<|>Person<|>x"}, "no usable name"),
        ({"name": "<|im_end|>"}, "no usable name"),
        ({"description": "nameless"}, "no usable name"),
    ],
)
def test_a_type_of_no_use_is_dropped_with_a_note(bad: object, why: str) -> None:
    found = parse_suggestion(said(types=[SHIP, PERSON, bad]), KNOWN)
    assert found is not None and len(found.types) == 2
    (note,) = found.notes
    assert note.startswith("The type ") and why in note


def test_other_is_no_suggestion_and_twelve_types_are_enough() -> None:
    many = [{"name": f"Kind {chr(65 + n)}"} for n in range(14)]
    found = parse_suggestion(said(types=[{"name": "Other"}, *many], relations=[]), KNOWN)
    assert found is not None
    assert len(found.types) == 12 and "Other" not in {rule.name for rule in found.types}
    assert [note.rpartition(": ")[2] for note in found.notes] == ["there are enough others."] * 2


def test_a_relation_loses_ends_that_are_no_types_and_goes_with_the_last_of_them() -> None:
    half = {**CARRIES, "name": "owns", "from": ["Ship", "Harbour"]}
    bad = {**CARRIES, "name": "sinks", "to": "Harbour"}
    found = parse_suggestion(said(relations=[CARRIES, half, bad]), KNOWN)
    assert found is not None
    assert [(rule.name, rule.domain) for rule in found.relations] == [("carries", ("Ship",)), ("owns", ("Ship",))]
    (note,) = found.notes
    assert note == "The relation 'sinks' was left out: none of its ends (Harbour) is among the types."


def test_the_domain_has_three_sentences_and_no_end_of_a_message() -> None:
    found = parse_suggestion(said(domain="One.\nTwo. <|im_end|> Three. Four. Five."), KNOWN)
    assert found is not None
    assert found.domain == "One. Two. < |im_end|> Three."
    endless = parse_suggestion(said(domain="word " * 400), KNOWN)
    assert endless is not None and len(endless.domain) == MAX_DOMAIN
    missing = parse_suggestion(said(domain=None), KNOWN)
    assert missing is not None and missing.domain == ""
