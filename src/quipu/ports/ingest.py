"""What ingestion needs: FileTypes, a Parser (bytes to text) and an Extractor (chunk to entities and relations)."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

from quipu.model.document import ParsedDocument, SourceDocument
from quipu.model.extraction import ChunkInput, Extraction

OnPages = Callable[[int, int], None]  # gets how many pages of a document were read, and of how many
# Whom a parser tells, from any thread, how far it is. Parsers call each other, so this does not go through parameters.
ON_PAGES: ContextVar[OnPages | None] = ContextVar("on_pages", default=None)


def _no_media_type(_name: str, _head: bytes) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class FileTypes:
    """How the media type of a file is found: by its suffix, or by its name and its first bytes.

    `by_suffix` has each suffix that can be read, in lower case. `sniff` takes the name of a file and its first bytes,
    and returns "" for a file that no parser reads. `remedy_by_suffix` says what reads files of other suffixes.
    """

    by_suffix: Mapping[str, str]
    sniff: Callable[[str, bytes], str] = _no_media_type
    remedy_by_suffix: Mapping[str, str] = field(default_factory=dict)

    def with_suffixes(self, by_suffix: Mapping[str, str]) -> Self:
        """Return the same with more suffixes; those that it has stay as they are."""
        return replace(self, by_suffix={**by_suffix, **self.by_suffix})


class Parser(Protocol):
    """Parses documents of certain media types."""

    @property
    def media_types(self) -> frozenset[str]:
        """The media types this parser reads, for example {"text/markdown"}."""

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text, title, blocks and metadata of `source`.

        If the format has pages, a block's page is the page on which it begins. Between blocks on different pages, the
        text has one form feed per page break, and no form feeds elsewhere. The block of a table begins with its header
        row. Raises InvalidDocument, with the reason and a remedy, if the document cannot be read.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionResult:
    """The result for the input at `index`: an extraction, an error, or both.

    With both, the extraction holds what was read before the error. It is published, but the chunk counts as failed and
    can be retried. `n_dropped` records were dropped because the text or the ontology does not support them.
    """

    index: int
    extraction: Extraction | None
    error: str = ""
    n_dropped: int = 0


class Extractor(Protocol):
    """Extracts facts from chunks. `identity` changes whenever the same input may give a different extraction."""

    @property
    def identity(self) -> str:
        """Name and version, for example "local/5". It is part of each reply's cache key."""

    @property
    def description(self) -> str:
        """A short description for users, for example "local rules, no language model"."""

    @property
    def n_ahead(self) -> int:
        """How many inputs should be in progress at any time; 0 for an extractor that computes in this process."""

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return how many tokens are sent to a model to read a chunk once; 0 if no model is used."""

    async def check(self) -> None:
        """Raise Unavailable, with the remedy, if the extractor cannot work with the current configuration."""

    def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Yield one result per input as soon as it is ready, in any order. A failed input does not affect the others.

        Raises Unavailable or OverBudget if no further input can be read, after the results of the inputs in progress.
        Closing the generator early starts no further input and cancels those in progress.
        """
