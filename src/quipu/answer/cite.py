"""Cite: quotes to citations, each resolved to a span of its document."""

from collections.abc import Mapping

from quipu.answer.quotable import Quotable
from quipu.model.answer import Citation


def cite(quote: Quotable, source_by_document: Mapping[str, str]) -> Citation:
    """Return the citation of a quote: the number of its passage, and where in the document its words stand."""
    chunk = quote.passage.chunk
    return Citation(
        number=quote.passage.number,
        document_id=chunk.document_id,
        title=chunk.title,
        chunk_id=chunk.id,
        start=chunk.start + quote.start,
        end=chunk.start + quote.end,
        quote=quote.text,
        page=_page(quote),
        headings=chunk.headings,
        source=source_by_document.get(chunk.document_id, ""),
    )


def _page(quote: Quotable) -> int | None:
    """Return the page a quote begins on: its chunk's, and one more for each form feed before it (see ports.parser)."""
    chunk = quote.passage.chunk
    return None if chunk.page is None else chunk.page + chunk.text.count("\f", 0, quote.start)
