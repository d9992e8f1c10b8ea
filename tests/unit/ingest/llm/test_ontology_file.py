"""Tests of ontology files in three languages, their examples, and the errors in some."""

import re
from pathlib import Path

import pytest

from quipu.errors import InvalidInput
from quipu.ingest.llm.ontology_file import load_ontology, read_glossary, read_ontology
from quipu.model.extraction import (
    ExtractedEntity,
    ExtractedRelation,
    ExtractionExample,
    GlossaryTerm,
    Ontology,
    RelationRule,
    TypeRule,
)

YAML = """
types:
  Person: a human being
  Company:
    description: makes things
    aliases: [firm, enterprise]
  Place:
relations:
  works for:
    description: is paid by
    from: Person
    to: [Company]
    aliases: employed by
  knows:
glossary:
  Acme Corporation:
    definition: makes anvils
    type: Company
    aliases: [Acme]
  Ming: a dynasty
"""
TOML = """
[types]
Person = "a human being"
Company = {description = "makes things", aliases = ["firm", "enterprise"]}
Place = {}
[relations]
"works for" = {description = "is paid by", from = "Person", to = ["Company"], aliases = "employed by"}
knows = ""
[glossary]
"Acme Corporation" = {definition = "makes anvils", type = "Company", aliases = ["Acme"]}
Ming = "a dynasty"
"""
JSON = """
{"types": {"Person": "a human being", "Company": {"description": "makes things", "aliases": ["firm", "enterprise"]},
  "Place": null},
 "relations": {"works for": {"description": "is paid by", "from": "Person", "to": ["Company"],
  "aliases": "employed by"}, "knows": {}},
 "glossary": {"Acme Corporation": {"definition": "makes anvils", "type": "Company", "aliases": ["Acme"]},
  "Ming": "a dynasty"}}
"""
GLOSSARY = (
    GlossaryTerm(name="Acme Corporation", definition="makes anvils", type="Company", aliases=("Acme",)),
    GlossaryTerm(name="Ming", definition="a dynasty"),
)
ONTOLOGY = Ontology(
    is_strict=True,
    types=(
        TypeRule(name="Person", description="a human being"),
        TypeRule(name="Company", description="makes things", aliases=("firm", "enterprise")),
        TypeRule(name="Place"),
    ),
    relations=(
        RelationRule(
            name="works for", description="is paid by", domain=("Person",), range=("Company",), aliases=("employed by",)
        ),
        RelationRule(name="knows"),
    ),
    glossary=GLOSSARY,
)


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"), [("o.yaml", YAML), ("o.yml", YAML), ("o", YAML), ("o.toml", TOML), ("o.json", JSON)]
)
def test_an_ontology_is_the_same_in_every_language(tmp_path: Path, name: str, text: str) -> None:
    assert read_ontology(_write(tmp_path, name, text), is_strict=True) == ONTOLOGY


def test_types_and_relations_may_be_plain_lists(tmp_path: Path) -> None:
    found = read_ontology(_write(tmp_path, "o.yaml", "types: [Gene, Protein]\nrelations: [binds]"))
    assert found == Ontology(
        types=(TypeRule(name="Gene"), TypeRule(name="Protein")), relations=(RelationRule(name="binds"),)
    )


def test_an_empty_file_asks_for_nothing(tmp_path: Path) -> None:
    assert read_ontology(_write(tmp_path, "o.json", "{}")) == Ontology()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.yaml", "Ming: a dynasty"),
        ("g.yaml", "glossary:\n  Ming: a dynasty"),
        ("g.json", '{"Ming": {"definition": "a dynasty"}}'),
        ("g.toml", 'Ming = "a dynasty"'),
    ],
)
def test_a_glossary_is_terms_alone(tmp_path: Path, name: str, text: str) -> None:
    assert read_glossary(_write(tmp_path, name, text)) == (GlossaryTerm(name="Ming", definition="a dynasty"),)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("o.yaml", "types:\n  Person: [\n", r"o\.yaml, line \d"),
        ("o.toml", "[types]\nPerson = \n", r"o\.toml: .*line 2"),
        ("o.json", '{"types": {,}}', r"o\.json: .*line 1"),
        ("o.yaml", "- Person", r"o\.yaml, the whole file"),
        ("o.yaml", "kinds: [Person]", r"o\.yaml, kinds: Extra inputs"),
        ("o.yaml", "types: {Person: {descripton: x}}", r"o\.yaml, types\.Person\.descripton"),
        ("o.yaml", "types: {Person: {aliases: 3}}", r"o\.yaml, types\.Person\.aliases"),
        ("o.yaml", "types: 7", r"o\.yaml, types: Input should be"),
        ("o.yaml", "types: {1984: x}", r"o\.yaml, types\.1984"),
        (
            "o.yaml",
            "types: [Person]\nrelations: {works for: {to: Company}}",
            r"relations\.works for\.to: 'Company' is not among the types\. Types: Other, Person\.",
        ),
        ("o.yaml", "types: [Person]\nglossary: {Acme: {type: Firm}}", r"glossary\.Acme\.type: 'Firm' is not among"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_ontology(_write(tmp_path, name, text))


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"absent\.yaml cannot be read"):
        read_ontology(tmp_path / "absent.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InvalidInput, match=r"binary\.yaml"):
        read_glossary(tmp_path / "binary.yaml")


def test_an_ontology_and_a_glossary_are_read_together(tmp_path: Path) -> None:
    ontology = _write(tmp_path, "o.yaml", YAML)
    glossary = _write(tmp_path, "g.yaml", "Ming: another dynasty\nQing: the last")
    found = load_ontology(ontology, glossary, is_strict=True)
    assert [term.definition for term in found.glossary] == ["makes anvils", "another dynasty", "the last"]
    assert found.types == ONTOLOGY.types
    assert load_ontology(None, None) == Ontology()
    assert load_ontology(None, glossary).glossary[0].name == "Ming"


def test_a_term_of_the_glossary_cannot_have_a_type_the_ontology_lacks(tmp_path: Path) -> None:
    ontology = _write(tmp_path, "o.yaml", "types: [Person]")
    glossary = _write(tmp_path, "g.yaml", "Acme: {type: Company}")
    with pytest.raises(InvalidInput, match=r"g\.yaml, glossary\.Acme\.type: 'Company' is not among"):
        load_ontology(ontology, glossary)


def test_the_files_in_the_docs_are_read(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "extraction.md").read_text("utf-8")
    ontology, glossary = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    found = load_ontology(_write(tmp_path, "o.yaml", ontology), _write(tmp_path, "g.yaml", glossary))
    assert len(found.types) > 2 and len(found.relations) > 1 and len(found.glossary) > 1


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
        ("name: Palos", "name: Cadiz", r"o\.yaml, examples\.0\.entities\.1\.name: 'Cadiz' does not occur in the text"),
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
