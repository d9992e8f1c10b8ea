"""Tests of overviews: what a document, or all documents, are about."""

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
