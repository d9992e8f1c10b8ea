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
