"""Citations resolve to the words in the document."""

from quipu.answer.cite import cite
from quipu.answer.pack import Passage
from quipu.answer.quotable import known_names, quotables
from tests.unit.answer.fakes import chunk


def test_a_citation_names_document_chunk_and_span() -> None:
    text = "He left the city.\nHe came back to the city by the sea after forty days."
    passage = Passage(number=7, chunk=chunk("Travels", text, headings=("Days",), page=3))
    _, quote = quotables([passage], known_names([]))
    citation = cite(quote, {"Travels.md": "/letters/Travels.md"})
    document = " " * 100 + text
    assert document[citation.start : citation.end] == citation.quote == text.splitlines()[1]
    assert (citation.number, citation.document_id, citation.chunk_id) == (7, "Travels.md", "chunk of Travels")
    assert (citation.title, citation.headings, citation.page) == ("Travels", ("Days",), 3)
    assert citation.source == "/letters/Travels.md"


def test_a_citation_names_the_page_the_quote_is_on_not_the_one_its_chunk_begins_on() -> None:
    text = "He left the city.\n\f\f\nHe came back to the city by the sea after forty days."
    paged = Passage(number=1, chunk=chunk("Travels", text, page=3))
    assert [cite(quote, {}).page for quote in quotables([paged], known_names([]))] == [3, 5]
    unpaged = Passage(number=1, chunk=chunk("Travels", text))
    assert [cite(quote, {}).page for quote in quotables([unpaged], known_names([]))] == [None, None]
