"""Reading documents: Parser (bytes to text) and Extractor (chunk to entities and relations)."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from quipu.model.document import ParsedDocument, SourceDocument
from quipu.model.extraction import ChunkInput, Extraction


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionResult:
    """The outcome for the input at `index`: an extraction, the error that stood in its way, or both.

    Both: what could be read before the error. It is published, and the chunk counts as failed, to be tried again.
    `n_dropped` records were left out, since the text or the ontology does not bear them out.
    """

    index: int
    extraction: Extraction | None
    error: str = ""
    n_dropped: int = 0


class Extractor(Protocol):
    """Reads chunks. `identity` changes whenever the same input may give another extraction."""

    @property
    def identity(self) -> str:
        """Name and version, as in "local/1"; part of the key under which replies are kept."""
        ...

    @property
    def description(self) -> str:
        """One plain phrase that tells a user what read the documents, as in "local rules, no language model"."""
        ...

    @property
    def n_ahead(self) -> int:
        """How many inputs should be waiting for an outcome at any time; 0 for one that computes in this process."""
        ...

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return how many tokens are sent to a model to read a chunk once; 0 where none is asked."""
        ...

    async def check(self) -> None:
        """Raise Unavailable, with the remedy, where nothing can be extracted as things stand."""
        ...

    def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Yield one outcome for each input, in any order, as each arrives; one bad input fails alone.

        Raises Unavailable or OverBudget where no further input can be read, after the outcomes of those under way.
        Closed before its end, it begins nothing more and gives up what is under way.
        """
        ...
