"""The file tuning writes is the file extraction reads."""

from dataclasses import replace
from pathlib import Path

import pytest

from quipu.ingest.llm.ontology_file import load_ontology
from quipu.ingest.tuning.ontology_writer import ontology_file
from quipu.model.extraction import (
    ExtractedEntity,
    ExtractedRelation,
    ExtractionExample,
    GlossaryTerm,
    Ontology,
    RelationRule,
    TypeRule,
)
from quipu.model.tuning import TuningOrigin, TypeCount

ODD = "yes: \"no\" #1\\ 'x' | > & * !\t{a: [b]}, % @ ` \u2028 \ufeff \x85 \x07 👩‍🚀 郑和 Ёж"
ONTOLOGY = Ontology(
    domain="Ledgers of a harbour. Who carried: what?",
    types=(
        TypeRule(name="Ship", description="what sails"),
        TypeRule(name="Port of call", description="", aliases=("harbour", "on", "no: yes")),
        TypeRule(name="null"),
        TypeRule(name="1984", description=ODD),
    ),
    relations=(
        RelationRule(name="works for", description="is paid by", domain=("Ship",), range=("Port of call", "null")),
        RelationRule(name="knows"),
    ),
    examples=(
        ExtractionExample(
            text=f"The Marigold left Palos.\nIt was 1492. {ODD}",
            entities=(
                ExtractedEntity(name="Marigold", type="Ship"),
                ExtractedEntity(name="Palos", type="Port of call"),
            ),
            relations=(ExtractedRelation(source="Marigold", target="Palos", keywords=("left, early",), weight=0.85),),
        ),
    ),
    glossary=(GlossaryTerm(name="Marigold: a ship", definition="of oak", type="Ship", aliases=("#Mari", "the Gold")),),
)
SUGGESTED = (GlossaryTerm(name="Palos", type="Ship"), GlossaryTerm(name="on", aliases=("off",)))


def _read(folder: Path, text: str) -> Ontology:
    path = folder / "ontology.yaml"
    path.write_text(text, encoding="utf-8")
    return load_ontology(path, None)


@pytest.mark.parametrize("ontology", [ONTOLOGY, Ontology(types=(TypeRule(name="Ship"),))])
def test_what_is_written_is_read_as_it_was_meant(tmp_path: Path, ontology: Ontology) -> None:
    assert _read(tmp_path, ontology_file(ontology, by="rules")) == ontology


def test_each_part_has_a_comment_that_says_what_it_does() -> None:
    text = ontology_file(ONTOLOGY, by="the language model\nopenai/x")
    assert text.startswith("# Ontology for documents like these, suggested by the language model openai/x.\n")
    for part in ("domain:", "types:", "relations:", "examples:", "glossary:"):
        above = text.split(f"\n{part}")[0].splitlines()[-1]
        assert above.startswith("# "), part
    bare = ontology_file(Ontology(types=(TypeRule(name="Ship"),)), by="rules")
    assert "# relations:" in bare and "# Up to three examples" in bare


def test_what_it_was_made_from_stands_at_its_head(tmp_path: Path) -> None:
    settings = (("sample", "12"), ("language", "a\nb\u2028"))
    origin = TuningOrigin(revision=1_234, n_documents=1, sample="c0ffee", settings=settings)
    text = ontology_file(ONTOLOGY, by="rules", origin=origin)
    assert (
        "# Made from 1 document of the index at revision 1234, sample c0ffee.\n# sample = 12\n# language = a b\n"
        in text
    )
    assert _read(tmp_path, text) == ONTOLOGY
    named = ontology_file(ONTOLOGY, by="rules", origin=replace(origin, revision=None, n_documents=1_000))
    assert "# Made from 1,000 documents in the given paths, sample c0ffee.\n" in named


def test_counts_stand_beside_types(tmp_path: Path) -> None:
    counts = (TypeCount(name="Ship", n=1, examples=("Mari\ngold",)), TypeCount(name="null", n=1_234))
    text = ontology_file(ONTOLOGY, by="rules", counts=counts)
    assert '  Ship: "what sails"  # found 1 time by rules, such as Mari gold\n' in text
    assert "# found 1,234 times by rules\n" in text
    assert _read(tmp_path, text) == ONTOLOGY


def test_suggested_names_are_taken_over_by_taking_them_out_of_the_comment(tmp_path: Path) -> None:
    ontology = replace(ONTOLOGY, glossary=())
    text = ontology_file(ontology, by="rules", suggested=SUGGESTED)
    assert _read(tmp_path, text) == ontology
    head, mark, tail = text.partition("# glossary:\n")
    edited = head + mark[2:] + "".join(f"{line[2:]}\n" for line in tail.splitlines())
    assert _read(tmp_path, edited).glossary == SUGGESTED


def test_nothing_is_suggested_beside_a_glossary_of_the_users_own() -> None:
    assert "Palos:" not in ontology_file(ONTOLOGY, by="rules", suggested=SUGGESTED)


def test_a_file_edited_by_hand_is_read(tmp_path: Path) -> None:
    text = ontology_file(ONTOLOGY, by="rules").replace('domain: "Ledgers', 'domain: >-\n  Letters\n# "Ledgers')
    text = text.replace('  Ship: "what sails"', "  Ship: what sails the sea\n  Whale: an animal")
    found = _read(tmp_path, text)
    assert found.domain == "Letters"
    assert [rule.name for rule in found.types][:2] == ["Ship", "Whale"]
