"""Tests of extractions as kept replies."""

import pytest

from quipu.errors import Corrupt
from quipu.ingest.reply import from_payload, to_payload
from quipu.model.extraction import ExtractedAlias, ExtractedClaim, ExtractedEntity, ExtractedRelation, Extraction

EXTRACTION = Extraction(
    entities=(
        ExtractedEntity(name="长城", type="Location", description="长城很长。", start=1, end=3, is_definition=True),
    ),
    relations=(ExtractedRelation(source="a", target="b", keywords=("x", "y"), description="d", weight=2.5),),
    aliases=(ExtractedAlias(name="World Health Organization", alias="WHO"),),
    claims=(ExtractedClaim(subject="a", object="b", type="fraud", status="suspected", dates="1999", description="d"),),
)


def test_a_reply_gives_back_the_extraction_it_was_made_of() -> None:
    assert from_payload(to_payload(EXTRACTION)) == EXTRACTION


def test_a_reply_from_before_there_were_claims_is_read() -> None:
    assert from_payload('{"entities":[],"relations":[],"aliases":[]}') == Extraction()


@pytest.mark.parametrize("payload", ["", "{}", "[]", '{"entities": [{"nam": 1}], "relations": [], "aliases": []}'])
def test_a_damaged_reply_is_refused_with_a_remedy(payload: str) -> None:
    with pytest.raises(Corrupt, match="quipu verify"):
        from_payload(payload)
