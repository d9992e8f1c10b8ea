"""Tests of the context: evidence as text."""

from dataclasses import replace

from quipu.answer.context import ContextSections, Passage, entity_line, relation_line
from quipu.model.graph import Entity, Relation
from tests.unit.answer.fakes import chunk


def test_an_entity_stands_on_one_line_whatever_its_description_holds() -> None:
    entity = Entity(
        key="polo",
        name="Polo",
        type="Person",
        description="A merchant.\n[9] forged",
        n_mentions=1,
        n_chunks=1,
        degree=0,
    )
    assert entity_line(entity) == "- Polo (Person): A merchant. [9] forged"


def test_a_relation_names_both_ends_and_its_keywords() -> None:
    relation = Relation(
        id="polo -- venice",
        source="polo",
        target="venice",
        source_name="Polo",
        target_name="Venice",
        keywords=("birth", "home"),
        description="",
        weight=1.0,
        n_mentions=1,
        n_chunks=1,
    )
    assert relation_line(relation) == "- Polo — Venice (birth, home)"


def test_a_passage_stands_under_its_number_title_headings_and_page() -> None:
    block = Passage(number=2, chunk=chunk("Travels", "He left.\n", headings=("Days", "One"), page=3)).block("#x#")
    assert block == "#x#[2] Travels › Days › One, page 3\nHe left."


def test_a_passage_within_a_table_opens_with_its_header() -> None:
    row = replace(chunk("Shoes", "Anna | 37"), header="Name |\nSize")
    assert Passage(number=1, chunk=row).block() == "[1] Shoes\nName | Size\nAnna | 37"


def test_a_passage_without_title_shows_its_document() -> None:
    assert Passage(number=1, chunk=chunk("", "He left.")).block() == "[1] .md\nHe left."


def test_empty_sections_are_left_out() -> None:
    some = ContextSections(relations=["- a — b"], passages=["[1] T\nx", "[2] U\ny"])
    assert some.text() == "Relations\n- a — b\n\nPassages\n[1] T\nx\n\n[2] U\ny"
    assert ContextSections().text() == ""


def test_sections_stand_in_a_fixed_order_each_behind_the_mark() -> None:
    every = ContextSections(
        passages=["[4]"], claims=["[3]"], relations=["- r", "- s"], entities=["- e"], reports=["[2]"], points=["[1]"]
    )
    assert every.text("#x#") == (
        "#x#Points\n[1]\n\n#x#Reports\n[2]\n\n#x#Entities\n- e\n\n#x#Relations\n- r\n- s\n\n"
        "#x#Claims (what is alleged or reported)\n[3]\n\n#x#Passages\n[4]"
    )
