"""Ids: they depend on content alone and are equal on every machine."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.model.extraction import (
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelation,
    ExtractionExample,
    GlossaryTerm,
    Ontology,
)
from quipu.model.ids import chunk_id, digest, digest_bytes, relation_ends, relation_id, stable_repr
from quipu.model.imported_graph import ImportedClaim, ImportedExtraction

_PARTS = st.lists(st.text(max_size=5), max_size=4)


@settings(derandomize=True, deadline=None)
@given(_PARTS, _PARTS)
def test_only_equal_parts_have_equal_digests(first: list[str], second: list[str]) -> None:
    assert (digest(*first) == digest(*second)) == (first == second)


def test_digests_never_change() -> None:
    """Existing indexes contain these digests."""
    assert digest("quipu", "长城") == "6aee6600c9845f98ea923794896c9202"
    assert digest_bytes(b"quipu") == "f1b77fc8ca85befeb1eb39f8f991d00c"
    assert chunk_id("a", digest("text"), 0) == "33cb02295ee12b3a"


def test_parts_are_distinguished_even_if_their_joined_text_is_equal() -> None:
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")


def test_lone_surrogates_have_digests() -> None:
    assert digest("\ud800") != digest("\ud801")


def test_a_chunk_id_depends_on_document_text_and_occurrence() -> None:
    ids = {chunk_id(document, text, n) for document in ("a", "b") for text in ("x", "y") for n in (0, 1)}
    assert len(ids) == 8
    assert {len(chunk) for chunk in ids} == {16}


@pytest.mark.parametrize(("left", "right"), [("acre", "venice"), ("venice", "acre"), ("长城", "WHO"), ("at&t", "c++")])
def test_a_relation_id_is_the_same_in_both_directions(left: str, right: str) -> None:
    assert relation_id(left, right) == relation_id(right, left)
    assert relation_ends(relation_id(left, right)) == tuple(sorted((left, right)))


@pytest.mark.parametrize("text", ["", "acre", "acre--venice", "a -- b -- c"])
def test_a_string_that_is_not_a_relation_id_cannot_be_split(text: str) -> None:
    with pytest.raises(ValueError):
        relation_ends(text)


def test_a_stable_repr_does_not_follow_the_renaming_of_a_class() -> None:
    """Extractor identities in existing indexes are digests of these texts."""
    entity = ExtractedEntity(name="it's", type="T", start=1)
    example = ExtractionExample(text="x", entities=(entity,), relations=(ExtractedRelation(source="a", target="b"),))
    ontology = Ontology(glossary=(GlossaryTerm(name="t", aliases=("a", "b")),), examples=(example,))
    assert stable_repr(ontology) == (
        "Ontology(is_strict=False, types=(), relations=(), glossary=(Term(name='t', definition='', type='', "
        "aliases=('a', 'b')),), domain='', examples=(Example(text='x', entities=(FoundEntity(name=\"it's\", type='T', "
        "description='', start=1, end=0, is_definition=False),), relations=(FoundRelation(source='a', target='b', "
        "keywords=(), description='', weight=1.0),)),))"
    )
    claim = ImportedClaim(claim=ExtractedClaim(subject="a"), quote="q")
    assert stable_repr(ImportedExtraction(document="d", claims=(claim,))) == (
        "Recording(document='d', entities=(), relations=(), claims=(RecordedClaim(claim=FoundClaim(subject='a', "
        "object='', type='', status='', dates='', description=''), quote='q'),))"
    )
