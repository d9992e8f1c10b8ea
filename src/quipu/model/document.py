"""Documents: what a caller hands in, what a parser makes of it, what the index keeps of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from quipu.model.chunking import Chunking
from quipu.model.ids import digest

MetadataValue = str | int | float | bool | None | tuple[str, ...]
Metadata = Mapping[str, MetadataValue]


class DocumentStatus(StrEnum):
    """Where a document stands: `queued → parsing → extracting → ready | partial | failed`, or `removing`."""

    QUEUED = "queued"
    PARSING = "parsing"
    EXTRACTING = "extracting"
    READY = "ready"
    PARTIAL = "partial"
    FAILED = "failed"
    REMOVING = "removing"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDocument:
    """A document as handed in: its bytes, its stable id and what the caller says about it.

    `chunking` says how to cut it; None leaves that to the rules and settings in force when it is added.
    """

    id: str
    data: bytes
    source: str = ""
    media_type: str = "text/plain"
    title: str = ""
    metadata: Metadata = field(default_factory=dict)
    chunking: Chunking | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A run of the parsed text that belongs together: `text[start:end]` of a ParsedDocument.

    `headings` is the path of headings above it, outermost first; `page` counts from 1 where the format has pages.
    `header` is the header row of a table, as it stands at the start of the block.
    """

    start: int
    end: int
    kind: str = "paragraph"  # heading | paragraph | list | table | code
    headings: tuple[str, ...] = ()
    page: int | None = None
    header: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """What a parser makes of a SourceDocument: one text, its title, its blocks in order, its metadata."""

    text: str
    title: str
    blocks: tuple[Block, ...]
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document the index knows: live (`ready`, `partial`) or on its way (any other status).

    `error` says what went wrong and what to do, of one that is `partial` with its first failed chunk;
    `n_failed_chunks` counts the chunks that could not be read, or not all of them.
    """

    id: str
    title: str
    status: DocumentStatus
    source: str = ""
    media_type: str = "text/plain"
    metadata: Metadata = field(default_factory=dict)
    content_hash: str = ""
    version: int = 0
    n_chunks: int = 0
    n_failed_chunks: int = 0
    error: str = ""
    added_at: str = ""
    updated_at: str = ""

    @property
    def reader(self) -> str:
        """Who read it, in words; "" where nobody has, or that was not noted."""
        return extractor_name(self.content_hash)


_N_READER = 12  # of its digest
_READ_AT = len(digest()) + 1
EXTRACTOR_NAME_OFFSET = _READ_AT + _N_READER + 1  # where the reader's name begins


def join_content_hash(content: str, reader: str, name: str) -> str:
    """Return the hash of a document with this digest of content, read by what has this identity and name."""
    return f"{content} {digest(reader)[:_N_READER]} {name}"


def is_same_content(one: str, other: str) -> bool:
    """Say whether two hashes are of one content, cut in one way, whoever read it."""
    return one[:_READ_AT] == other[:_READ_AT]


def is_same_extraction(one: str, other: str) -> bool:
    """Say whether two hashes are of one content read by the same, by whatever name."""
    return one[:EXTRACTOR_NAME_OFFSET] == other[:EXTRACTOR_NAME_OFFSET]


def extractor_name(content_hash: str) -> str:
    """Return who read a document, in words; "" where that was not noted."""
    return content_hash[EXTRACTOR_NAME_OFFSET:]
