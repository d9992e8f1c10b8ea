"""The type a model writes, as one of those asked for."""

import pytest

from quipu.ingest.llm.kinds import Kinds
from quipu.ingest.llm.options import ExtractionOptions
from quipu.model.extraction import TypeRule

DEFAULT = Kinds(ExtractionOptions().types)
OWN = Kinds((TypeRule(name="Company", aliases=("firm", "Юрлицо")), TypeRule(name="Gene"), TypeRule(name="Person")))


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Person", "Person"),
        ("PERSON", "Person"),
        ("people", "Person"),
        ("organisation", "Organization"),
        ("Companies", "Organization"),
        ("geo", "Location"),
        ("natural_object", "NaturalObject"),
        ("Natural Object", "NaturalObject"),
        ("Person/Author", "Person"),
        ("Flower, Plant", "Creature"),
        ("tool (software)", "Artifact"),
        ("Location | City", "Location"),
        ("人物", "Person"),
        ("Город", "Location"),
        ("vibe", None),
        ("", None),
    ],
)
def test_a_type_is_known_by_its_synonyms(said: str, kind: str | None) -> None:
    assert DEFAULT.find(said) == kind


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("company", "Company"),
        ("Firms", "Company"),
        ("юрлицо", "Company"),
        ("genes", "Gene"),
        ("author", "Person"),
        ("City", None),
    ],
)
def test_types_of_ones_own_come_first_and_no_others_count(said: str, kind: str | None) -> None:
    assert OWN.find(said) == kind


def test_the_words_that_tell_a_type_from_a_name_are_casefolded() -> None:
    assert {"person", "place", "city"} <= DEFAULT.words
    assert all(word == word.casefold() for word in DEFAULT.words)
