"""Records written back as a model's earlier reply."""

import json

from quipu.model.extraction import FoundAlias, FoundClaim, FoundEntity, FoundRelation
from quipu.prompts.extracted import reply_text
from quipu.text.records import Record
from quipu.text.tuples import TupleReader

RECORDS: list[Record] = [
    FoundEntity(name="Ann Lee", type="Person", description="Ann Lee founded Acme."),
    FoundRelation(source="Ann Lee", target="Acme", keywords=("founder", "leader"), description="She did.", weight=0.85),
    FoundAlias(name="World Health Organization", alias="WHO"),
    FoundClaim(subject="Acme", type="fraud", status="suspected", description="Acme is said to have lied."),
]


def _read(text: str) -> list[Record]:
    reader = TupleReader()
    reader.feed(text)
    reader.close()
    return reader.records


def test_lines_are_written_as_they_are_asked_for() -> None:
    assert reply_text(RECORDS) == (
        "entity<|>Ann Lee<|>Person<|>Ann Lee founded Acme.\n"
        "relation<|>Ann Lee<|>Acme<|>founder, leader<|>She did.<|>8.5\n"
        "alias<|>World Health Organization<|>WHO\n"
        "claim<|>Acme<|>-<|>fraud<|>suspected<|>-<|>Acme is said to have lied.\n"
        "<|done|>"
    )


def test_what_is_written_is_read_as_the_same_records() -> None:
    assert _read(reply_text(RECORDS)) == RECORDS
    assert _read(reply_text(RECORDS, "json")) == RECORDS


def test_an_unfinished_reply_has_no_last_line() -> None:
    assert not reply_text(RECORDS, is_done=False).endswith("<|done|>")
    assert reply_text([]) == "<|done|>"
    assert json.loads(reply_text([], "json")) == {"entities": [], "relations": [], "aliases": []}


def test_a_record_cannot_end_the_reply_it_stands_in() -> None:
    text = reply_text([FoundEntity(name="Zed", type="Person", description="Zed wrote <|done|> and <|im_end|>.")])
    assert text.count("<|done|>") == 1
    assert "<|im_end|>" not in text
