"""Replies of models as records: every shape met, recorded replies, and anything at all."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.model.extraction import ExtractedAlias, ExtractedClaim, ExtractedEntity, ExtractedRelation
from quipu.text.extraction_records import ExtractionRecord
from quipu.text.extraction_reply import ExtractionReplyParser
from quipu.text.names import entity_key
from tests.unit.text.reply_shapes import EMPTY, ENTITY, OBJECT, PLAIN, SECOND, SHAPES

TYPES = ("Person", "Organization", "Location")
ANN = ExtractedEntity(name="Ann Lee", type="Person", description="Ann Lee founded Acme in 1990.")
ACME = ExtractedEntity(name="Acme", type="Organization", description="Acme is a company in Leeds.")
FOUNDED = ExtractedRelation(
    source="Ann Lee", target="Acme", keywords=("founder", "leader"), description="Ann Lee founded Acme.", weight=0.9
)
CAROL = (
    Path(os.environ.get("QUIPU_DATA") or Path(__file__).resolve().parents[4] / "shared/data") / "christmas_carol_nano"
)


def read(reply: str, *, is_complete: bool = True) -> list[ExtractionRecord]:
    reader = ExtractionReplyParser(TYPES)
    reader.feed(reply)
    reader.close(is_complete=is_complete)
    return reader.records


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_says_the_same(shape: str) -> None:
    entities = [record for record in read(SHAPES[shape]) if isinstance(record, ExtractedEntity)]
    relations = [record for record in read(SHAPES[shape]) if isinstance(record, ExtractedRelation)]
    ann = ExtractedEntity(name=ANN.name, type="", description=ANN.description) if shape == "type missing" else ANN
    assert entities == [ann, ACME]
    assert [(each.source, each.target, each.description) for each in relations] == [
        (FOUNDED.source, FOUNDED.target, FOUNDED.description)
    ]
    assert relations[0].weight in (FOUNDED.weight, 0.5)
    assert relations[0].keywords in (FOUNDED.keywords, ())


@pytest.mark.parametrize("shape", EMPTY)
def test_what_says_nothing_gives_nothing(shape: str) -> None:
    assert read(EMPTY[shape]) == []


@pytest.mark.parametrize("shape", [*SHAPES, *EMPTY])
def test_the_pieces_a_reply_comes_in_do_not_matter(shape: str) -> None:
    reply = (SHAPES | EMPTY)[shape]
    reader = ExtractionReplyParser(TYPES)
    for char in reply:
        reader.feed(char)
    reader.close()
    assert reader.records == read(reply)


def test_records_are_returned_as_soon_as_their_line_ends() -> None:
    reader = ExtractionReplyParser(TYPES)
    assert reader.feed(ENTITY) == []
    assert reader.feed("\nenti") == [ANN]
    assert reader.feed(SECOND[4:] + "\n") == [ACME]
    assert reader.close() == []
    assert reader.records == [ANN, ACME]


def test_what_was_only_thought_is_taken_back() -> None:
    reader = ExtractionReplyParser(TYPES)
    assert reader.feed("entity<|>Draft<|>Person<|>A draft.\n") != []
    reader.feed(f"</think>\n{ENTITY}\n")
    reader.close()
    assert reader.records == [ANN]


def test_of_a_reply_cut_short_the_whole_lines_are_kept() -> None:
    assert read(f"{ENTITY}\n{SECOND}\nrelation<|>Ann Lee<|>Ac", is_complete=False) == [ANN, ACME]
    assert read(f"{ENTITY}\n{SECOND}", is_complete=False) == [ANN]


def test_of_json_cut_short_the_whole_objects_are_kept() -> None:
    assert read(OBJECT[: OBJECT.index("is a company")], is_complete=False) == [ANN]
    assert read(OBJECT[: OBJECT.index('"strength"')], is_complete=False) == [ANN, ACME]


@pytest.mark.parametrize(
    ("reply", "is_done", "is_truncated"),
    [
        (PLAIN, True, False),
        (f"{ENTITY}\n{SECOND}", False, False),
        (f"{ENTITY}\nentity<|>Ac", False, True),
        (f"{ENTITY}\nrelation<|>Ann Lee<|>Ac", False, True),
        (f"{ENTITY}\nrelation<|>Ann Lee<|>", False, True),
        (f'{ENTITY}\n("entity"<|>"Acme"<|>"Organization"<|>"Acme is', False, True),
        (OBJECT, False, False),
        (OBJECT[:-1], False, True),
        ("I cannot help with that.", False, False),
    ],
)
def test_a_reply_tells_whether_it_was_whole(reply: str, is_done: bool, is_truncated: bool) -> None:
    reader = ExtractionReplyParser(TYPES)
    reader.feed(reply)
    reader.close()
    assert (reader.is_done, reader.is_truncated) == (is_done, is_truncated)


def test_half_a_record_at_the_end_is_left_out() -> None:
    assert read(f"{ENTITY}\nentity<|>Ac") == [ANN]


def test_a_mark_of_the_end_within_a_description_ends_nothing() -> None:
    reader = ExtractionReplyParser(TYPES)
    reader.feed(f"entity<|>Zed<|>Person<|>Zed wrote <|done|> on the wall.\n{ENTITY}\n")
    assert not reader.is_done
    assert ANN in reader.records


def test_tags_of_thinking_that_a_text_mentions_are_no_thinking() -> None:
    line = "entity<|>R1<|>Method<|>R1 writes <think> and </think> around its thoughts.\n"
    assert [record for record in read(line + PLAIN) if isinstance(record, ExtractedRelation)] == [FOUNDED]


def test_aliases_and_claims_are_read() -> None:
    records = read(
        "alias<|>World Health Organization<|>WHO\n"
        "claim<|>Acme<|>-<|>fraud<|>SUSPECTED<|>1999-01-01 to 2000-12-31<|>Acme is said to have hidden losses.\n"
        "claim<|>Acme<|>Ann Lee<|>lawsuit<|>true<|><|>Acme sued Ann Lee.\n<|done|>"
    )
    assert records == [
        ExtractedAlias(name="World Health Organization", alias="WHO"),
        ExtractedClaim(
            subject="Acme",
            type="fraud",
            status="suspected",
            dates="1999-01-01 to 2000-12-31",
            description="Acme is said to have hidden losses.",
        ),
        ExtractedClaim(
            subject="Acme", object="Ann Lee", type="lawsuit", status="true", description="Acme sued Ann Lee."
        ),
    ]


@pytest.mark.parametrize(
    "name", ["C#", "F.C. Porto", "Yahoo!", "AT&T", "Dr. Strange (film)", "C++", "O'Neill", "«Мир»", "郑和"]
)
def test_marks_that_belong_to_a_name_stay(name: str) -> None:
    (entity,) = read(f"entity<|>{name}<|>Person<|>Somebody.")
    assert isinstance(entity, ExtractedEntity)
    assert entity.name == name.strip("«»")


@pytest.mark.parametrize(
    ("field", "weight"),
    [
        ("1", 0.1),
        ("10", 1.0),
        ("8.5", 0.85),
        ("15", 1.0),
        ("0", 0.1),
        ("0.35", 0.35),
        ("85%", 0.85),
        ("high", 0.9),
        ("7分", 0.7),
    ],
)
def test_a_strength_becomes_a_weight_of_at_most_one(field: str, weight: float) -> None:
    (relation,) = read(f"relation<|>Ann<|>Bob<|>friends<|>Ann knows Bob.<|>{field}")
    assert isinstance(relation, ExtractedRelation)
    assert relation.weight == weight


def test_a_relation_without_strength_has_the_middle_weight() -> None:
    (relation,) = read("relation<|>Ann<|>Bob<|>friends<|>Ann knows Bob.")
    assert isinstance(relation, ExtractedRelation)
    assert relation.weight == 0.5


def test_halves_of_surrogate_pairs_can_be_stored() -> None:
    (entity,) = read("entity<|>Ann \ud83d<|>Person<|>Ann.")
    assert isinstance(entity, ExtractedEntity)
    assert entity.name.encode()


def _keys(records: Sequence[ExtractionRecord]) -> set[str]:
    return {entity_key(record.name) for record in records if isinstance(record, ExtractedEntity)}


def _ends(records: Sequence[ExtractionRecord]) -> set[tuple[str, str]]:
    relations = (record for record in records if isinstance(record, ExtractedRelation))
    return {(entity_key(relation.source), entity_key(relation.target)) for relation in relations}


@pytest.mark.skipif(not CAROL.is_dir(), reason="christmas_carol_nano is not there: set QUIPU_DATA")
def test_recorded_replies_give_all_that_was_read_from_them() -> None:
    """84 replies of GPT-4o to another prompt, one of them with a separator written "</|>"."""
    rows = [json.loads(line) for line in (CAROL / "extraction.jsonl").read_text("utf-8").splitlines()]
    missing = set()
    for row in rows:
        records = read(row["raw"])
        missing |= {entity_key(entity["name"]) for entity in row["entities"]} - _keys(records)
        wanted = {(entity_key(each["source"]), entity_key(each["target"])) for each in row["relations"]}
        missing |= {f"{source} {target}" for source, target in wanted - _ends(records)}
    assert len(rows) == 84
    assert missing == set()


_PART = st.sampled_from(
    [
        "entity", "relation", "relationship", "alias", "claim", "实体", "<|>", "<||>", "<|#|>", "|", "\t", "\n",
        "\r\n", "##", "(", ")", '"', "'", "“", "[", "]", "{", "}", ",", ":", "\\", "<think>", "</think>", "```",
        "<|done|>", "<|COMPLETE|>", "Ann Lee", "Acme", "Person", "9", "0.5", "name", "description", "- ", "1. ",
        "* ", "**", " ", "\u00a0", "&lt;", "&#0;", "｜", '"entities": [', '{"name": "', "//", "/*", "*/", "NaN",
        "\\ud83d", "\ud83d", "Entities:", "| --- |",
    ]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(_PART, st.text(max_size=6)), max_size=80), st.booleans())
def test_anything_can_be_read(parts: list[str], is_complete: bool) -> None:
    reader = ExtractionReplyParser(TYPES)
    returned = [record for part in parts for record in reader.feed(part)]
    returned += reader.close(is_complete=is_complete)
    assert set(reader.records) <= set(returned)
    assert len(set(reader.records)) == len(reader.records)


@pytest.mark.parametrize(
    "part",
    [
        "(",
        "<",
        "<|",
        "|",
        "#",
        '"',
        "[",
        "{",
        "entity<|>",
        "entity",
        "[{",
        "/*a",
        "</think>",
        "<|done",
        " ",
        "- ",
        "\\",
        '["',
        "&",
        ")",
        "entity|a|",
    ],
)
def test_long_runs_are_read_in_a_number_of_steps_that_follows_their_length(part: str) -> None:
    """A pattern that backtracks would take minutes here, and the test would be noticed."""
    reply = part * (200_000 // len(part))
    read(reply)
    read(f"entity<|>Ann<|>Person<|>{reply}\n")
