"""What a user may choose."""

from quipu.ingest.llm.options import ExtractionOptions
from quipu.model.graph import ENTITY_TYPES
from quipu.model.ontology import Ontology, TypeRule

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
