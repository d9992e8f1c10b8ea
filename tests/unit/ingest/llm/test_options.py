"""What a user may choose."""

import json

from quipu.ingest.llm.options import ExtractionOptions
from quipu.model.extraction import ExtractedEntity, ExtractedRelation, ExtractionExample, Ontology, TypeRule
from quipu.model.graph import ENTITY_TYPES

GENE = TypeRule(name="Gene")


def _types(options: ExtractionOptions) -> list[str]:
    return [rule.name for rule in options.types]


def test_the_default_types_are_those_of_the_graph() -> None:
    assert _types(ExtractionOptions()) == list(ENTITY_TYPES)


def test_other_is_among_the_types_unless_they_are_strict() -> None:
    assert _types(ExtractionOptions(entity_types=("Gene",))) == ["Gene", "Other"]
    assert _types(ExtractionOptions(ontology=Ontology(types=(GENE,)))) == ["Gene", "Other"]
    assert _types(ExtractionOptions(ontology=Ontology(types=(GENE,), is_strict=True))) == ["Gene"]


def test_the_prompt_is_told_what_was_chosen() -> None:
    guidance = ExtractionOptions(language="German", with_claims=True, format="json").guidance
    assert (guidance.language, guidance.with_claims, guidance.format) == ("German", True, "json")


def test_examples_are_told_in_the_format_in_use() -> None:
    example = ExtractionExample(
        text="Ann Lee founded Acme.",
        entities=(ExtractedEntity(name="Ann Lee", type="Person"),),
        relations=(ExtractedRelation(source="Ann Lee", target="Acme", keywords=("founder",), weight=0.9),),
    )
    ontology = Ontology(domain="Letters.", examples=(example,))
    lines, as_json = (ExtractionOptions(ontology=ontology, format=each).guidance for each in ("lines", "json"))
    assert (lines.domain, lines.examples[0].text) == ("Letters.", "Ann Lee founded Acme.")
    assert lines.examples[0].reply == (
        "entity<|>Ann Lee<|>Person<|>\nrelation<|>Ann Lee<|>Acme<|>founder<|><|>9\n<|done|>"
    )
    assert json.loads(as_json.examples[0].reply)["relations"][0]["strength"] == 9
