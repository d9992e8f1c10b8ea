"""The examples of an ontology file, and what a text does not bear out."""

from pathlib import Path

import pytest

from quipu.errors import InvalidInput
from quipu.ingest.llm.ontology_file import read_ontology
from quipu.model.extraction import ExtractedEntity, ExtractedRelation, ExtractionExample

TUNED = """
domain: |
  Ledgers of a harbour.
  Who carried what matters.
types: [Ship, Place]
examples:
  - text: The Marigold left Palos.
    entities:
      - {name: Marigold, type: Ship, description: "It left\\n Palos."}
      - {name: Palos, type: Place}
    relations:
      - {source: Marigold, target: Palos, keywords: "sailing, port", description: It left., strength: 8}
"""


def _read(folder: Path, text: str, *, is_strict: bool = False) -> ExtractionExample:
    path = folder / "o.yaml"
    path.write_text(text, encoding="utf-8")
    (example,) = read_ontology(path, is_strict=is_strict).examples
    return example


def test_domain_and_examples_are_read(tmp_path: Path) -> None:
    assert _read(tmp_path, TUNED) == ExtractionExample(
        text="The Marigold left Palos.",
        entities=(
            ExtractedEntity(name="Marigold", type="Ship", description="It left Palos."),
            ExtractedEntity(name="Palos", type="Place"),
        ),
        relations=(
            ExtractedRelation(
                source="Marigold", target="Palos", keywords=("sailing", "port"), description="It left.", weight=0.8
            ),
        ),
    )
    assert read_ontology(tmp_path / "o.yaml").domain == "Ledgers of a harbour. Who carried what matters."


def test_nothing_need_be_said(tmp_path: Path) -> None:
    (tmp_path / "o.yaml").write_text("domain:\nexamples:\n", encoding="utf-8")
    ontology = read_ontology(tmp_path / "o.yaml")
    assert (ontology.domain, ontology.examples) == ("", ())


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("name: Palos", "name: Cadiz", r"o\.yaml, examples\.0\.entities\.1\.name: 'Cadiz' does not stand in the text"),
        ("type: Place", "type: Port", r"examples\.0\.entities\.1\.type: 'Port' is not among the types\. Types: Other,"),
        ("target: Palos", "target: Lima", r"examples\.0\.relations\.0\.target: 'Lima' is not among the entities"),
        ("strength: 8", "strength: 11", r"examples\.0\.relations\.0\.strength: Input should be less"),
        ("type: Ship,", "", r"examples\.0\.entities\.0\.type: Field required"),
        ("type: Ship,", "kind: Ship,", r"examples\.0\.entities\.0\.type: Field required"),
        ("text: The Marigold left Palos.", f"text: {'Marigold Palos ' * 90}", r"examples\.0\.text: String should have"),
        ("Ledgers of a harbour", "x" * 1_001, r"o\.yaml, domain: String should have at most"),
        ("examples:\n", "examples:\n  - {text: A, entities: []}\n", r"examples\.0\.entities: List"),
    ],
)
def test_what_is_wrong_is_named_with_its_field(tmp_path: Path, before: str, after: str, says: str) -> None:
    assert before in TUNED
    with pytest.raises(InvalidInput, match=says):
        _read(tmp_path, TUNED.replace(before, after, 1))


def test_there_are_at_most_three(tmp_path: Path) -> None:
    start = TUNED.index("  - text")
    with pytest.raises(InvalidInput, match=r"o\.yaml, examples: List should have at most 3 items"):
        _read(tmp_path, TUNED + TUNED[start:] * 3)


def test_without_types_those_of_the_graph_may_stand_in_examples(tmp_path: Path) -> None:
    text = TUNED.replace("types: [Ship, Place]\n", "").replace("type: Ship", "type: Artifact")
    assert _read(tmp_path, text.replace("type: Place", "type: Location")).entities[1].type == "Location"
    with pytest.raises(InvalidInput, match="'Place' is not among"):
        _read(tmp_path, text)


def test_only_a_soft_ontology_may_have_others_in_examples(tmp_path: Path) -> None:
    text = TUNED.replace("type: Place", "type: Other")
    assert _read(tmp_path, text).entities[1].type == "Other"
    with pytest.raises(InvalidInput, match="'Other' is not among"):
        _read(tmp_path, text, is_strict=True)
