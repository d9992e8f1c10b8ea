"""Descriptions of entities."""

from quipu.ingest.local import extract_chunk
from quipu.model.extraction import ChunkInput, ExtractedEntity


def _entity(text: str, name: str, title: str = "") -> ExtractedEntity:
    entities = extract_chunk(ChunkInput(text=text, title=title)).entities
    return next(entity for entity in entities if entity.name == name)


def test_the_sentence_that_defines_a_name_is_preferred_to_the_first() -> None:
    entity = _entity("Many visit Hallstatt in May. Hallstatt (Austria) is a village by a lake.", "Hallstatt")

    assert entity.description == "Hallstatt (Austria) is a village by a lake."
    assert entity.is_definition


def test_without_a_definition_the_first_sentence_that_names_it_is_taken() -> None:
    entity = _entity("Nothing here. Many visit Hallstatt\nin May.", "Hallstatt")

    assert entity.description == "Many visit Hallstatt in May."
    assert not entity.is_definition


def test_definitions_are_known_in_russian_and_chinese() -> None:
    assert _entity("Фотосинтез — это процесс.", "Фотосинтез", "Фотосинтез").is_definition
    assert _entity("郑和（Zheng He）是明代的航海家。", "郑和").is_definition


def test_a_long_sentence_is_cut_at_a_word() -> None:
    entity = _entity("Hallstatt is a village with " + "wonderful " * 60 + "views.", "Hallstatt")

    assert len(entity.description) <= 300
    assert entity.description.endswith(" wonderful…")


def test_a_title_the_text_does_not_name_has_no_description() -> None:
    entity = _entity("It is steep.", "Mount Etna", "Mount Etna")

    assert (entity.description, entity.start, entity.end) == ("", 0, 0)
