"""Tests of extraction: cached replies as JSON, replies committed as they arrive, and the facts of a chunk."""

import asyncio
from typing import cast

import pytest

from quipu.errors import Corrupt
from quipu.ingest.extraction import ReplyWriter, chunk_facts, extraction_from_json, extraction_to_json
from quipu.model.delta import CommitResult, Delta, ExtractionReply
from quipu.model.extraction import ExtractedAlias, ExtractedClaim, ExtractedEntity, ExtractedRelation, Extraction
from quipu.model.graph import UNKNOWN_TYPE, Chunk, ClaimMention
from quipu.ports.store import Store


class SlowStore:
    """A store whose commits wait to be let through, and remember what they held."""

    def __init__(self) -> None:
        self.committed: list[list[str]] = []
        self.gate = asyncio.Event()

    async def commit(self, delta: Delta) -> CommitResult:
        """Wait, then remember."""
        await self.gate.wait()
        self.committed.append([reply.input_hash for reply in delta.replies])
        return CommitResult(revision=1)


def _reply(name: str) -> ExtractionReply:
    return ExtractionReply(input_hash=name, document_id="d", payload="{}")


async def test_replies_that_arrive_during_a_commit_share_the_next_one() -> None:
    store = SlowStore()
    async with ReplyWriter(cast("Store", store), []) as writer:
        writer.write([_reply("a")])
        await asyncio.sleep(0)
        writer.write([_reply("b")])
        writer.write([_reply("c")])
        store.gate.set()
    assert store.committed == [["a"], ["b", "c"]]


async def test_what_has_arrived_is_committed_when_the_work_is_interrupted() -> None:
    store = SlowStore()
    store.gate.set()
    with pytest.raises(KeyError):
        async with ReplyWriter(cast("Store", store), []) as writer:
            writer.write([_reply("a")])
            raise KeyError
    assert store.committed == [["a"]]


EXTRACTION = Extraction(
    entities=(
        ExtractedEntity(name="长城", type="Location", description="长城很长。", start=1, end=3, is_definition=True),
    ),
    relations=(ExtractedRelation(source="a", target="b", keywords=("x", "y"), description="d", weight=2.5),),
    aliases=(ExtractedAlias(name="World Health Organization", alias="WHO"),),
    claims=(ExtractedClaim(subject="a", object="b", type="fraud", status="suspected", dates="1999", description="d"),),
)


def test_a_reply_gives_back_the_extraction_it_was_made_of() -> None:
    assert extraction_from_json(extraction_to_json(EXTRACTION)) == EXTRACTION


def test_a_reply_from_before_there_were_claims_is_read() -> None:
    assert extraction_from_json('{"entities":[],"relations":[],"aliases":[]}') == Extraction()


@pytest.mark.parametrize("payload", ["", "{}", "[]", '{"entities": [{"nam": 1}], "relations": [], "aliases": []}'])
def test_a_damaged_reply_is_refused_with_a_remedy(payload: str) -> None:
    with pytest.raises(Corrupt, match="quipu verify"):
        extraction_from_json(payload)


CHUNK = Chunk(
    id="c", document_id="d", title="", ordinal=0, text="text", start=0, end=4, n_tokens=1, text_hash="t", input_hash="i"
)


def test_names_become_keys_and_surfaces_stay() -> None:
    facts = chunk_facts(CHUNK, Extraction(entities=(ExtractedEntity(name=" The  Silk Road ", type="Location"),)))
    assert [(m.key, m.surface, m.type) for m in facts.entities] == [("silk road", "The  Silk Road", "Location")]


def test_a_missing_end_of_a_relation_becomes_an_entity_of_unknown_type() -> None:
    extraction = Extraction(
        entities=(ExtractedEntity(name="Venice", type="Location"),),
        relations=(
            ExtractedRelation(source="Marco Polo", target="venice"),
            ExtractedRelation(source="Marco Polo", target="Goa"),
        ),
    )
    facts = chunk_facts(CHUNK, extraction)
    assert [(m.surface, m.type) for m in facts.entities] == [
        ("Venice", "Location"),
        ("Marco Polo", UNKNOWN_TYPE),
        ("Goa", UNKNOWN_TYPE),
    ]
    assert [(r.source, r.target) for r in facts.relations] == [("marco polo", "venice"), ("marco polo", "goa")]


def test_what_has_no_name_or_relates_a_thing_to_itself_is_dropped() -> None:
    extraction = Extraction(
        entities=(ExtractedEntity(name=" -- ", type="Other"),),
        relations=(ExtractedRelation(source="Venice", target="the Venice"), ExtractedRelation(source="", target="Goa")),
        aliases=(ExtractedAlias(name="WHO", alias="WHO"),),
    )
    facts = chunk_facts(CHUNK, extraction)
    assert (facts.entities, facts.relations, facts.aliases) == ((), (), ())


def test_the_long_name_of_an_alias_is_an_entity() -> None:
    facts = chunk_facts(CHUNK, Extraction(aliases=(ExtractedAlias(name="World Health Organization", alias="WHO"),)))
    assert [m.key for m in facts.entities] == ["world health organization"]
    assert [(a.key, a.alias, a.surface) for a in facts.aliases] == [("world health organization", "WHO", "WHO")]


def test_names_of_claims_become_keys_and_entities() -> None:
    found = ExtractedClaim(
        subject="The Acme", object="Ann Lee", type="fraud", status="suspected", dates="1999", description="It lied."
    )
    facts = chunk_facts(
        CHUNK,
        Extraction(
            entities=(ExtractedEntity(name="Acme", type="Organization"),),
            claims=(
                found,
                ExtractedClaim(subject=" -- ", object="Goa"),
                ExtractedClaim(subject="Bob Ray", object="--"),
            ),
        ),
    )
    assert facts.claims == (
        ClaimMention(
            subject="acme", object="ann lee", type="fraud", status="suspected", dates="1999", description="It lied."
        ),
        ClaimMention(subject="bob ray"),
    )
    assert [(m.surface, m.type) for m in facts.entities] == [
        ("Acme", "Organization"),
        ("Ann Lee", UNKNOWN_TYPE),
        ("Bob Ray", UNKNOWN_TYPE),
    ]


def test_half_of_a_surrogate_pair_does_not_reach_the_store() -> None:
    found = ExtractedEntity(name="Bad \ud800 Name", type="Other", description="said \udfff so")
    [mention] = chunk_facts(CHUNK, Extraction(entities=(found,))).entities
    assert (mention.surface + mention.description).encode() == b"Bad ? Namesaid ? so"
