"""The local extractor as a whole: what one chunk gives, and the promises of the port."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from quipu.ingest.local import LocalExtractor
from quipu.ingest.local.extraction import extract_chunk
from quipu.model.extraction import ChunkInput, ExtractedEntity, Extraction
from quipu.model.graph import ENTITY_TYPES
from quipu.ports.ingest import ExtractionResult, Extractor
from quipu.text.names import entity_key

PASSAGE = """\
Ada Lovelace was born in London in 1815 as the daughter of Lord Byron. She corresponded with Charles Babbage, who
designed the Analytical Engine. The World Health Organization (WHO) was founded much later, in Geneva.
"""


def _names(extraction: Extraction) -> list[str]:
    return [entity.name for entity in extraction.entities]


async def _extract(chunks: list[ChunkInput]) -> list[ExtractionResult]:
    return [extracted async for extracted in LocalExtractor().extract(chunks)]


def test_it_is_named_so_that_nobody_thinks_a_model_read_the_documents() -> None:
    extractor: Extractor = LocalExtractor()

    assert (extractor.identity, extractor.description) == ("local/5", "local rules, no language model")


def test_entities_are_given_in_order_with_the_title_first() -> None:
    extraction = extract_chunk(ChunkInput(text=PASSAGE, title="Analytical Engine"))

    assert _names(extraction) == [
        "Analytical Engine",
        "Ada Lovelace",
        "London",
        "Lord Byron",
        "Charles Babbage",
        "World Health Organization",
        "WHO",
        "Geneva",
    ]


def test_a_span_holds_the_name_in_the_text() -> None:
    for entity in extract_chunk(ChunkInput(text=PASSAGE, title="Analytical Engine")).entities:
        assert PASSAGE[entity.start : entity.end] == entity.name


def test_an_expansion_is_an_alias_and_its_relations_count_for_the_full_name() -> None:
    extraction = extract_chunk(ChunkInput(text=PASSAGE))

    assert [(alias.name, alias.alias) for alias in extraction.aliases] == [("World Health Organization", "WHO")]
    ends = {(relation.source, relation.target) for relation in extraction.relations}
    assert ("World Health Organization", "Geneva") in ends
    assert not any("WHO" in pair for pair in ends)


def test_two_names_of_one_thing_have_one_type() -> None:
    kinds = {entity.name: entity.type for entity in extract_chunk(ChunkInput(text=PASSAGE)).entities}

    assert kinds["WHO"] == kinds["World Health Organization"] == "Organization"


def test_an_empty_chunk_gives_nothing_but_its_title() -> None:
    assert extract_chunk(ChunkInput(text="")) == Extraction()
    assert _names(extract_chunk(ChunkInput(text="", title="Silk Road"))) == ["Silk Road"]


def test_a_long_chunk_keeps_at_most_forty_entities_and_twenty_four_relations() -> None:
    text = " ".join(f"Captain Brown{n:03d}x met Lady Green{n:03d}x in Port White{n:03d}x." for n in range(120))
    text = text.translate(str.maketrans("0123456789", "abcdefghij"))

    extraction = extract_chunk(ChunkInput(text=text))

    assert len(extraction.entities) == 40
    assert len(extraction.relations) == 24


async def test_each_input_yields_one_outcome_under_its_index() -> None:
    chunks = [ChunkInput(text=f"Mount Number{'x' * n} is a mountain.") for n in range(40)]

    found = await _extract(chunks)

    assert [extracted.index for extracted in found] == list(range(40))
    assert [extracted.extraction for extracted in found] == [extract_chunk(chunk) for chunk in chunks]


async def test_the_event_loop_runs_on_while_chunks_are_read() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticker = asyncio.create_task(tick())
    await _extract([ChunkInput(text=PASSAGE)] * 64)
    ticker.cancel()

    assert ticks > 4


_PIECES = """
Battle_of the Министерство Северный ветер 中国 郑和 大学 (WHO) «Луна » 2020 \nAnna: is_a King's и на ， 。 是
\n##_ said J. R. XIV
"""
_TEXTS = st.one_of(
    st.text(max_size=400),
    st.text(alphabet="AbcДежЖ王国的在和《》“”()（）«»\"'’.,:：;#- \n1№İßſ·", max_size=400),
    st.lists(
        st.sampled_from([piece.replace("_", " ") for piece in _PIECES.split()]),
        max_size=60,
    ).map(" ".join),
)


@given(text=_TEXTS, title=st.text(max_size=60), headings=st.lists(st.text(max_size=20), max_size=2))
def test_any_text_is_read_and_every_promise_holds(text: str, title: str, headings: list[str]) -> None:
    chunk = ChunkInput(text=text, title=title, headings=tuple(headings))

    extraction = extract_chunk(chunk)

    assert extraction == extract_chunk(chunk)
    keys = [entity_key(entity.name) for entity in extraction.entities]
    assert len(keys) == len(set(keys))
    assert all(keys)
    for entity in extraction.entities:
        assert entity.type in ENTITY_TYPES
        assert len(entity.description) <= 300
        assert (entity.start, entity.end) == (0, 0) or entity_key(text[entity.start : entity.end]) == entity_key(
            entity.name
        )
    for relation in extraction.relations:
        assert entity_key(relation.source) != entity_key(relation.target)
        assert {entity_key(relation.source), entity_key(relation.target)} <= set(keys)
        assert relation.weight >= 1
        assert len(relation.keywords) <= 3
    for alias in extraction.aliases:
        assert entity_key(alias.name) != entity_key(alias.alias)


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


FEES = """The fees of members are in Table 3.

Table 3: Fees of the library

Membership | Fee | Sponsor
Adult | 25 | Norwich Bank
Student | 12 | Anna Berg

As Table 3 shows, Lord Byron paid nothing.
"""


def test_a_numbered_table_is_an_entity_with_its_columns_related_to_its_cells_and_to_what_refers_to_it() -> None:
    extraction = extract_chunk(ChunkInput(text=FEES, title="Library rules"))

    table = next(entity for entity in extraction.entities if entity.name == "Table 3 (Library rules)")
    assert (table.type, table.description) == ("Data", "Fees of the library: Membership | Fee | Sponsor")
    names = {relation.target for relation in extraction.relations if relation.source == table.name}
    assert {"Norwich Bank", "Anna Berg", "Lord Byron"} <= names


def test_the_tables_of_two_documents_are_two_entities() -> None:
    names = [_names(extract_chunk(ChunkInput(text="See Table 3 for it.", title=title))) for title in ("Rules", "Fees")]

    assert [tables[-1] for tables in names] == ["Table 3 (Rules)", "Table 3 (Fees)"]


def test_tables_are_named_in_russian_and_chinese_too() -> None:
    assert "Таблица 2 (Отчёт)" in _names(extract_chunk(ChunkInput(text="Смотри таблицу 2 ниже.", title="Отчёт")))
    assert "表 2 (报告)" in _names(extract_chunk(ChunkInput(text="结果见表2。", title="报告")))
    assert _names(extract_chunk(ChunkInput(text="We laid a table 3 metres long.", title=""))) == []
