"""What tuning changes."""

from quipu.ingest.tuning.difference import compared, prompt_diff
from quipu.model.extraction import ExtractedEntity, ExtractedRelation, Extraction
from quipu.model.tuning import TypedName
from quipu.ports.ingest import ExtractionResult
from tests.unit.ingest.tuning.world import chunk


def outcome(**types: str) -> ExtractionResult:
    entities = tuple(ExtractedEntity(name=name.replace("_", " "), type=kind) for name, kind in types.items())
    return ExtractionResult(index=0, extraction=Extraction(entities=entities))


def test_names_of_one_reading_alone_and_other_types_are_told() -> None:
    found = compared(
        chunk("Text.", "a.md", title="T"),
        outcome(Marco_Polo="Person", Venice="Location", Silk="Other"),
        outcome(marco_polo="Traveller", Venice="Location", Persia="Location"),
    )
    assert (found.document_id, found.title) == ("a.md", "T")
    assert (found.only_before, found.only_after, found.retyped) == (("Silk",), ("Persia",), ("marco polo",))
    assert found.before.entities[0] == TypedName(name="Marco Polo", type="Person")


def test_relations_are_counted_and_a_reading_that_failed_says_why() -> None:
    related = ExtractedRelation(source="A", target="B")
    before = ExtractionResult(index=0, extraction=Extraction(relations=(related,)))
    found = compared(chunk("Text."), before, ExtractionResult(index=0, extraction=None, error="too long"))
    assert (found.before.n_relations, found.after.n_relations) == (1, 0)
    assert (found.before.error, found.after.error) == ("", "too long")


def test_the_difference_of_prompts_is_a_unified_diff() -> None:
    assert prompt_diff("a\nb\nc\nd", "a\nb\nx\nd") == (
        "--- prompt before\n+++ prompt tuned\n@@ -2,3 +2,3 @@\n b\n-c\n+x\n d"
    )
    assert prompt_diff("same", "same") == ""
