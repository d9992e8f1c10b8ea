"""Parser: bytes in, one text with its structure out."""

from typing import Protocol

from quipu.model.document import ParsedDocument, SourceDocument


class Parser(Protocol):
    """Reads the media types it lists."""

    @property
    def media_types(self) -> frozenset[str]:
        """The media types this parser reads, as in {"text/markdown"}."""
        ...

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text, title, blocks and metadata of `source`.

        Where the format has pages, each block is on the page it begins on, and between blocks of different pages the
        text has one form feed for each page turned; there are no others in it. A table's block begins with its header.
        Raises InvalidDocument, with the reason and a remedy, where nothing can be read.
        """
        ...
