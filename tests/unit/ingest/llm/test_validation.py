"""Tests of validation: what a model said, checked against the text and the ontology."""

from dataclasses import replace

import pytest

from quipu.ingest.llm.conversation import ExtractionOptions
from quipu.ingest.llm.grounding import GroundingText
from quipu.ingest.llm.validation import EntityTypeMatcher, RecordValidator
from quipu.model.extraction import (
    ChunkInput,
    ExtractedAlias,
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelation,
    Extraction,
    GlossaryTerm,
    Ontology,
    RelationRule,
    TypeRule,
)
from quipu.text.extraction_records import ExtractionRecord

TEXT = "Ann Lee founded Acme in Leeds. Bob Ray works for Acme. Acme was sued by Bob Ray."
ANN = ExtractedEntity(name="Ann Lee", type="person", description="She founded Acme.")
ACME = ExtractedEntity(name="Acme", type="company", description="A firm.")
BOB = ExtractedEntity(name="Bob Ray", type="Person")
LEEDS = ExtractedEntity(name="Leeds", type="city")
RULES = Ontology(
    is_strict=True,
    types=(TypeRule(name="Person"), TypeRule(name="Company", aliases=("firm",))),
    relations=(
        RelationRule(name="works for", domain=("Person",), range=("Company",), aliases=("employed by",)),
        RelationRule(name="founded", domain=("Person",)),
    ),
)


def conform(*records: ExtractionRecord, text: str = TEXT, ontology: Ontology | None = None) -> Extraction:
    return conformer(ontology).validate(records, GroundingText(ChunkInput(text=text)))


def conformer(ontology: Ontology | None = None) -> RecordValidator:
    ontology = ontology or Ontology()
    return RecordValidator(EntityTypeMatcher(ExtractionOptions(ontology=ontology).types), ontology)


def related(source: str, target: str, *keywords: str, description: str = "") -> ExtractedRelation:
    return ExtractedRelation(source=source, target=target, keywords=keywords, description=description, weight=0.7)


def test_entities_get_a_known_type_and_their_first_place() -> None:
    assert conform(ANN, ACME).entities == (
        ExtractedEntity(name="Ann Lee", type="Person", description="She founded Acme.", start=0, end=7),
        ExtractedEntity(name="Acme", type="Organization", description="A firm.", start=16, end=20),
    )


@pytest.mark.parametrize("said", ["vibe", ""])
def test_a_type_nobody_asked_for_is_other(said: str) -> None:
    assert conform(ExtractedEntity(name="Acme", type=said)).entities[0].type == "Other"


def test_invented_names_go_with_all_that_is_said_of_them() -> None:
    made = conformer()
    records: list[ExtractionRecord] = [
        ExtractedEntity(name="Zorro", type="Person"),
        related("Ann Lee", "Zorro"),
        ExtractedAlias(name="Acme", alias="Zorro Ltd."),
        ExtractedClaim(subject="Zorro", description="He did it."),
        ExtractedClaim(subject="Acme", object="Zorro", description="He did it."),
        ANN,
    ]
    assert conform(*records).entities[0].name == "Ann Lee"
    found = made.validate(records, GroundingText(ChunkInput(text=TEXT)))
    assert (len(found.entities), found.relations, found.aliases, found.claims) == (1, (), (), ())
    assert made.dropped.n_ungrounded == 4


def test_the_names_of_the_prompts_example_are_invented_unless_the_text_has_them() -> None:
    assert (
        conform(ExtractedEntity(name="Kestrel Labs", type="Organization"), text="The labs of Acme Labs.").entities == ()
    )
    assert conform(ExtractedEntity(name="Kestrel Labs", type="Organization"), text="Kestrel Labs is here.").entities


def test_a_name_that_only_an_alias_ties_to_the_text_stays() -> None:
    entity = ExtractedEntity(name="Federal Bureau", type="Organization")
    text = "The Federals and the Bureaux of the G-men were closed."
    assert conform(ExtractedEntity(name="Gendarmerie", type="Organization"), text=text).entities == ()
    found = conform(
        ExtractedEntity(name="Gendarmerie", type="Organization"),
        ExtractedAlias(name="Gendarmerie", alias="G-men"),
        text=text,
    )
    assert [(each.name, text[each.start : each.end]) for each in found.entities] == [("Gendarmerie", "G-men")]
    assert found.aliases == (ExtractedAlias(name="Gendarmerie", alias="G-men"),)
    assert conform(entity, text=text).entities


def test_an_entity_named_twice_is_one_and_keeps_what_was_said_first() -> None:
    found = conform(
        ExtractedEntity(name="Acme", type="vibe"),
        ExtractedEntity(name="acme,", type="Company", description="A firm."),
        ExtractedEntity(name="Acme", type="Person", description="Another."),
    )
    assert [(each.name, each.type, each.description) for each in found.entities] == [
        ("Acme", "Organization", "A firm.")
    ]


def test_relations_keep_their_direction_and_are_said_once() -> None:
    said = related("Ann Lee", "Acme", "founder", description="She founded it.")
    again = related("Acme", "Ann Lee", "founded by", description="She founded it.")
    other = related("Ann Lee", "Acme", "leader", description="She led it.")
    assert conform(said, again, other, related("Acme", "acme")).relations == (said, other)


def test_aliases_and_claims_of_the_text_are_kept() -> None:
    alias, claim = (
        ExtractedAlias(name="Acme", alias="Leeds"),
        ExtractedClaim(subject="Acme", object="Bob Ray", description="Sued."),
    )
    found = conform(alias, alias, claim, claim)
    assert (found.aliases, found.claims) == ((alias,), (claim,))


def test_a_strict_ontology_drops_other_types_and_their_relations() -> None:
    made = conformer(RULES)
    found = made.validate(
        [ANN, ACME, LEEDS, related("Ann Lee", "Leeds", "founded"), related("Ann Lee", "Acme", "founded")],
        GroundingText(ChunkInput(text=TEXT)),
    )
    assert [(each.name, each.type) for each in found.entities] == [("Ann Lee", "Person"), ("Acme", "Company")]
    assert [(each.source, each.target) for each in found.relations] == [("Ann Lee", "Acme")]
    assert made.dropped.n_outside_ontology == 2


def test_a_strict_ontology_drops_claims_about_what_it_leaves_out() -> None:
    made = conformer(RULES)
    claims = [
        ExtractedClaim(subject="Leeds", description="Flooded."),
        ExtractedClaim(subject="Acme", object="Leeds", description="Flooded it."),
        ExtractedClaim(subject="Acme", object="Ann Lee", description="Sued her."),
        ExtractedClaim(subject="Acme", description="Lied."),
    ]
    found = made.validate([ANN, ACME, *claims], GroundingText(ChunkInput(text=TEXT)))
    assert found.claims == tuple(claims[2:])
    assert made.dropped.n_outside_ontology == 2


def test_a_strict_ontology_drops_other_names_of_what_it_leaves_out() -> None:
    text = "Ann Lee, also Nan, founded Acme (AC) in Leeds, once Loidis. Bob met Ann."
    made = conformer(replace(RULES, glossary=(GlossaryTerm(name="Leeds", aliases=("Loidis",)),)))
    nan, ac = ExtractedAlias(name="Ann Lee", alias="Nan"), ExtractedAlias(name="Acme", alias="AC")
    told: list[ExtractionRecord] = [
        ANN,
        nan,
        ExtractedAlias(name="Leeds", alias="Loidis"),
        ac,
        ACME,
        related("Loidis", "Acme", "founded"),
    ]
    found = made.validate(told, GroundingText(ChunkInput(text=text)))
    assert found.aliases == (nan, ac)
    assert made.dropped.n_outside_ontology == 2
    soft = conformer().validate(told, GroundingText(ChunkInput(text=text)))
    assert len(soft.aliases) == 3


FIRM = ExtractedEntity(name="Acme", type="firm")


@pytest.mark.parametrize(
    ("relation", "kept"),
    [
        (related("Bob Ray", "Acme", "works for"), related("Bob Ray", "Acme", "works for")),
        (related("Bob Ray", "Acme", "salary", "Employed by"), related("Bob Ray", "Acme", "works for", "salary")),
        (related("Acme", "Bob Ray", "works_for"), related("Bob Ray", "Acme", "works for")),
        (related("Ann Lee", "Bob Ray", "works for"), None),
        (related("Bob Ray", "Acme", "sued"), None),
        (related("Bob Ray", "Acme"), None),
    ],
)
def test_a_strict_ontology_keeps_relations_it_names_between_the_types_it_allows(
    relation: ExtractedRelation, kept: ExtractedRelation | None
) -> None:
    found = conform(ANN, BOB, FIRM, relation, ontology=RULES)
    assert found.relations == ((kept,) if kept else ())


def test_a_soft_ontology_keeps_what_it_does_not_know() -> None:
    soft = Ontology(types=RULES.types, relations=RULES.relations)
    odd = related("Ann Lee", "Bob Ray", "works for")
    sued = related("Bob Ray", "Acme", "sued")
    found = conform(ANN, BOB, FIRM, LEEDS, odd, sued, related("Bob Ray", "Acme", "employed by"), ontology=soft)
    assert [each.type for each in found.entities] == ["Person", "Person", "Company", "Other"]
    assert found.relations[:2] == (odd, sued)
    assert conform(BOB, FIRM, related("Bob Ray", "Acme", "employed by"), ontology=soft).relations[0].keywords == (
        "works for",
    )


def test_a_term_of_the_glossary_lends_its_name_and_type() -> None:
    glossary = (GlossaryTerm(name="Acme Corporation", type="Company", aliases=("Acme",)),)
    ontology = Ontology(types=RULES.types, glossary=glossary)
    found = conform(ExtractedEntity(name="Acme", type="Person"), related("Ann Lee", "Acme"), ontology=ontology)
    assert found.entities == (ExtractedEntity(name="Acme Corporation", type="Company", start=16, end=20),)
    assert found.relations[0].target == "Acme Corporation"
    assert found.aliases == (ExtractedAlias(name="Acme Corporation", alias="Acme"),)


def test_a_terms_own_name_passes_where_the_text_has_another_of_its_names() -> None:
    ontology = Ontology(glossary=(GlossaryTerm(name="Zenith Holding", aliases=("Acme",)),))
    (entity,) = conform(ExtractedEntity(name="Zenith Holding", type="Organization"), ontology=ontology).entities
    assert (entity.start, entity.end) == (16, 20)


DEFAULT = EntityTypeMatcher(ExtractionOptions().types)
OWN = EntityTypeMatcher(
    (TypeRule(name="Company", aliases=("firm", "Юрлицо")), TypeRule(name="Gene"), TypeRule(name="Person"))
)


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


def test_names_and_descriptions_lose_nul_and_marks_of_direction() -> None:
    hidden = ExtractedEntity(name="Acme\u202e\u2066", type="company", description="A \u202bfirm.\0")
    (found,) = conform(hidden).entities
    assert (found.name, found.description) == ("Acme", "A firm.")
