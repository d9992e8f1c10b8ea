"""Tests of overviews: what a document, or all documents, are about."""

import pytest

from quipu.answer import read_answer_input
from quipu.answer.overview import OverviewPart, overview_parts
from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.providers.local import ByteTokenizer
from tests.unit.retrieve.fakes import Library, page

SALT = "Salt is carried over the steppe by camels, a month each way."
SILK = "Silk is woven by the river and sold in Tabriz every autumn."


async def _overview(library: Library, question: str) -> list[OverviewPart]:
    async with library.view() as view:
        material = await read_answer_input(Query(text=question), Evidence(), view, ByteTokenizer())
    return overview_parts(material.quote_sources)


async def test_documents_are_grouped_by_the_first_folder_that_not_all_share(library: Library) -> None:
    await library.publish(page("/home/docs/salt/a", SALT), page("/home/docs/salt/b", SALT), page("/home/docs/c", SILK))
    count, *groups = await _overview(library, "What is this about?")
    assert count.label == "3 documents."
    assert [group.label.partition(":")[0] for group in groups] == ["salt (2 documents)", "c"]


async def test_an_overview_of_a_document_begins_with_its_first_paragraph(library: Library) -> None:
    await library.publish(page("Salt", SALT), page("Silk", SILK))
    first = (await _overview(library, "What is Silk about?"))[0]
    assert (first.label, first.quote and first.quote.text) == ("Silk", SILK)


async def test_without_anything_to_quote_there_is_no_overview(library: Library) -> None:
    await library.publish(page("Salt", SALT), page("prices.csv", "a | b\n1 | 2\n3 | 4"))
    assert await _overview(library, "What is prices.csv about?") == []


async def test_a_title_that_the_topic_names_whole_beats_documents_that_share_the_name_of_the_product(
    library: Library,
) -> None:
    await library.publish(
        page("Caravan Ledger", SALT), page("Packing animals", SILK), page("Caravan Ledger guide: prices", SALT)
    )
    first = (await _overview(library, "What does the Caravan Ledger guide say about packing animals? Summarise."))[0]
    assert first.label == "Packing animals"


async def test_an_overview_begins_with_a_sentence_and_not_with_a_menu_or_a_licence(library: Library) -> None:
    menu = "Home Tutorial Reference FAQ Releases Portability\n\nThis text may be redistributed by anyone for a fee."
    await library.publish(page("Silk", f"{menu}\n\n{SILK}"))
    first = (await _overview(library, "What is Silk about?"))[0]
    assert first.quote and first.quote.text == SILK


async def test_the_sections_are_those_of_the_highest_levels_that_fit(library: Library) -> None:
    parts = "\n\n".join(f"# Part {n}\n\n{SALT}\n\n## {'Detail ' * 12}{n}\n\n{SILK}" for n in range(8))
    await library.publish(page("Ledger", parts))
    sections = next(part.label for part in await _overview(library, "What is the Ledger about?") if not part.quote)
    assert sections == "Sections: " + " · ".join(f"Part {n}" for n in range(8))


TALE = (
    f"# Part 1\n\n{SALT}\n\n## Chapter 1\n\n{SALT}\n\n## Chapter 2\n\n{SILK}\n\n### Looms\n\n{SILK} Looms.\n\n"
    f"# Part 2\n\n{SALT}"
)


@pytest.mark.parametrize(
    ("question", "label"),
    [
        ("What happens in chapter two of the Tale?", "The Tale › Chapter 2"),
        ("Summarise part II of the Tale.", "The Tale › Part 2"),
        ("What is the chapter on looms in the Tale about?", "The Tale › Looms"),
        ("What is the Tale about?", "The Tale"),
    ],
)
async def test_an_overview_of_a_section_says_what_stands_below_its_heading(
    library: Library, question: str, label: str
) -> None:
    await library.publish(page("The Tale", TALE), page("Salt", SALT))
    parts = await _overview(library, question)
    assert parts[0].label == label
    quoted = {part.quote.text for part in parts if part.quote}
    assert (SILK in quoted) == label.endswith("Chapter 2")
    assert (SALT in quoted) == (not label.endswith(("Chapter 2", "Looms")))


async def test_a_section_that_no_document_has_is_not_answered_by_another(library: Library) -> None:
    await library.publish(page("The Tale", TALE), page("Salt", SALT))
    assert await _overview(library, "What happens in chapter 9 of the Tale?") == []


async def test_a_heading_without_words_is_no_section_of_an_overview(library: Library) -> None:
    await library.publish(page("Silk", f"{SILK}\n\n# #\n\n{SALT}"), page("Salt", SALT))
    first = (await _overview(library, "What is Silk about?"))[0]
    assert first.quote and first.quote.text == SILK


async def test_of_a_section_without_a_paragraph_its_first_block_is_shown(library: Library) -> None:
    await library.publish(page("The Tale", f"{SALT}\n\n## Install\n\n```\npip install tale\n```\n\n## Use\n\n{SILK}"))
    parts = await _overview(library, "Summarise the install section of the Tale.")
    assert [part.quote.text for part in parts if part.quote] == ["```\npip install tale\n```"]


async def test_a_document_that_is_named_by_its_number_is_read_whole(library: Library) -> None:
    await library.publish(page("Chapter 9 of the Tale", TALE), page("Salt", SALT))
    parts = await _overview(library, "What happens in chapter nine of the Tale?")
    assert parts[0].label == "Chapter 9 of the Tale"
    assert parts[1].label.startswith("Sections: Part 1") and parts[1].label.endswith("Part 2")
