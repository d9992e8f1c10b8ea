"""Answers: text with numbered citations, each resolved to a document and a span of characters."""

from dataclasses import dataclass

from quipu.model.evidence import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """The source of a statement: characters [start, end) of the document's text, and the words there.

    The document's text is what its parser kept of it: of Markdown the body after the front matter, of HTML the readable
    text. `quipu show document ID` prints it. `page` is the one the words begin on, where the format has pages.
    """

    number: int
    document_id: str
    title: str
    chunk_id: str
    start: int
    end: int
    quote: str
    page: int | None = None
    headings: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a query.

    `generator` names what wrote `text` ("extractive", or a model); `is_supported` is False where nothing in the index
    supports an answer. `context` is the packed evidence the answer was made from, `prompt` what a model would be sent.
    """

    text: str
    generator: str
    citations: tuple[Citation, ...]
    trace: Trace
    is_supported: bool = True
    context: str = ""
    prompt: str = ""
