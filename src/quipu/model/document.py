"""Documents: the source a caller adds with its metadata, its parsed text, and the record that the index keeps."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from quipu.errors import InvalidInput
from quipu.model.chat import Image
from quipu.model.chunking import Chunking
from quipu.model.ids import digest

MetadataValue = str | int | float | bool | None | tuple[str, ...]
Metadata = Mapping[str, MetadataValue]
UNSURE = " (unsure)"  # follows the encoding in the metadata `assumed_encoding` if another is nearly as probable


PDF_TYPE = "application/pdf"
UNREAD_PAGES, UNREAD_REASON, UNSURE_PAGES = "unread_pages", "unread_reason", "unsure_pages"  # metadata of scans
VALID_FROM, VALID_UNTIL, DATE = "valid_from", "valid_until", "date"  # metadata fields
_NAME_JOINTS = re.compile(r"[_.-]+")
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2})([T ].*)?)?)?")


class DocumentStatus(StrEnum):
    """The state of a document: `queued → parsing → extracting → ready | partial | failed`, or `removing`."""

    QUEUED = "queued"
    PARSING = "parsing"
    EXTRACTING = "extracting"
    READY = "ready"
    PARTIAL = "partial"
    FAILED = "failed"
    REMOVING = "removing"


_MAX_INTEGER = 2**63 - 1  # databases cannot compare larger numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDocument:
    """A document as the caller adds it: its bytes, its stable id and its attributes.

    `chunking` says how to divide it into chunks. None means: use the rules and settings in force when it is added.
    """

    id: str
    content: bytes
    source: str = ""
    media_type: str = "text/plain"
    title: str = ""
    metadata: Metadata = field(default_factory=dict)
    chunking: Chunking | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A unit of the parsed text, for example a paragraph: `text[start:end]` of a ParsedDocument.

    `kind` is "heading", "paragraph", "list", "table" or "code". `headings` is the path of headings above the block,
    outermost first. `page` counts from 1 if the format has pages. `header` is the header row of a table, exactly as
    it appears at the start of the block.
    """

    start: int
    end: int
    kind: str = "paragraph"
    headings: tuple[str, ...] = ()
    page: int | None = None
    header: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture in a document: its file, its alternative text ("" if it has none), and the text around it.

    `is_page` says that it shows a whole page, whose text is wanted.
    """

    image: Image
    alt: str = ""
    before: str = ""
    after: str = ""
    is_page: bool = False

    @property
    def key(self) -> str:
        """What names it within its document: the same file twice is one picture."""
        return self.image.hash


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotePlace:
    """Where a quote stands on a page of a PDF: the boxes of its lines, and the size of the page in points (1/72 inch).

    A box is the left, top, right and bottom edge, as shares of width and height. There are none where the page does not
    show the quote, or where it is a scan that is turned. What a model said of a picture has the boxes of all pictures
    of the page.
    """

    page: int
    n_pages: int
    width: float
    height: float
    boxes: tuple[tuple[float, float, float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePicture:
    """A page of a PDF as a picture (PNG) in which a quote is marked, and its place."""

    place: QuotePlace
    png: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """The result of parsing a SourceDocument: one text, its title, its blocks in order and its metadata."""

    text: str
    title: str
    blocks: tuple[Block, ...]
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document of the index. It is live if its status is `ready` or `partial`, otherwise work on it continues.

    `error` says what failed and what to do. For a `partial` document it is the error of the first failed chunk.
    `n_failed_chunks` counts chunks that were not read completely. `text_hash` and `original_hash` name the whole text
    and the file that the index keeps; "" if it keeps none. What it says holds from `holds_from` to `holds_until` ("":
    no end), see `model.validity`.
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
    text_hash: str = ""
    original_hash: str = ""
    holds_from: str = ""
    holds_until: str = ""

    @property
    def extractor(self) -> str:
        """A description of the extractor that read the document; "" if none has, or if it was not recorded."""
        return extractor_name(self.content_hash)

    @property
    def warning(self) -> str:
        """Which scanned pages are not in the text and why, and which may be misread; "" where there are none."""
        unread, reason, unsure = (self.metadata.get(name) for name in (UNREAD_PAGES, UNREAD_REASON, UNSURE_PAGES))
        warnings = [f"Scanned pages that are not in the text: {unread}. {reason or ''}".strip()] if unread else []
        warnings += [f"Scanned pages that may be misread: {unsure}."] if unsure else []
        return " ".join(warnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierVersion:
    """A version of a document that was replaced or removed, and whose words the index still keeps.

    `since` and `ended_at` are when the index got it and when it ended, in UTC. `holds_from` and `holds_until` are the
    dates that it states, "" where it states none.
    """

    document_id: str
    title: str
    since: str
    ended_at: str
    is_removed: bool
    holds_from: str
    holds_until: str
    n_chunks: int

    @property
    def cursor(self) -> str:
        """The cursor of a page that ends with this version."""
        return json.dumps([self.document_id, self.since, self.ended_at], ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeResult:
    """What a purge deleted: the earlier versions of documents, and how many rows of cached replies and leftovers.

    In a dry run, `versions` are those that would be deleted.
    """

    versions: tuple[EarlierVersion, ...] = ()
    n_rows: int = 0


class DocumentOrder(StrEnum):
    """The order of a listing: by id, by title, or the last updated first. Equal ones are ordered by id."""

    ID = "id"
    TITLE = "title"
    UPDATED = "updated"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentListing:
    """Which documents a listing has, in which order, and which page of them.

    With `statuses`, only documents with one of these. With `prefix`, only those whose id, title or source begins with
    it. With `text_hashes`, only those whose whole text is one of these, but not those named by `without`. `k` is the
    length of the page, None: all. `after` is the cursor of the last document of the page before.
    """

    statuses: tuple[DocumentStatus, ...] = ()
    prefix: str = ""
    text_hashes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    order: DocumentOrder = DocumentOrder.ID
    k: int | None = None
    after: str = ""

    def cursor(self, document: Document) -> str:
        """Return the cursor of a document: its id and the value by which it is ordered, if that is another."""
        if self.order is DocumentOrder.ID:
            return document.id
        value = document.title if self.order is DocumentOrder.TITLE else document.updated_at
        return json.dumps([value, document.id], ensure_ascii=False)

    def place_after(self) -> tuple[str, str] | None:
        """Return the value and the id of the document that ended the page before; None for the first page.

        Raises InvalidInput for a text that is no cursor of this order.
        """
        if not self.after:
            return None
        if self.order is DocumentOrder.ID:
            return self.after, self.after
        try:
            value, document_id = json.loads(self.after)
        except (ValueError, TypeError):
            value = document_id = None
        if not isinstance(value, str) or not isinstance(document_id, str):
            raise InvalidInput(
                f"{self.after!r} is not a cursor of documents ordered by {self.order}.",
                remedy="Give the cursor of the last document of the page before, or none.",
            )
        return value, document_id


# A content hash consists of a digest of content and chunking, a short digest of the extractor, and the extractor's
# description, separated by spaces. Old indexes have a single digest of everything and no description.
_N_EXTRACTOR_DIGITS = 12
_EXTRACTOR_OFFSET = len(digest()) + 1
EXTRACTOR_NAME_OFFSET = _EXTRACTOR_OFFSET + _N_EXTRACTOR_DIGITS + 1


def join_content_hash(content: str, extractor: str, name: str) -> str:
    """Return the content hash for this digest of the content and an extractor with this identity and description."""
    return f"{content} {digest(extractor)[:_N_EXTRACTOR_DIGITS]} {name}"


def is_same_content(first: str, second: str) -> bool:
    """Return whether two content hashes have the same content and chunking, with any extractor."""
    return first[:_EXTRACTOR_OFFSET] == second[:_EXTRACTOR_OFFSET]


def is_same_extraction(first: str, second: str) -> bool:
    """Return whether two content hashes have the same content, chunking and extractor. Descriptions may differ."""
    return first[:EXTRACTOR_NAME_OFFSET] == second[:EXTRACTOR_NAME_OFFSET]


def extractor_name(content_hash: str) -> str:
    """Return the extractor's description from a content hash; "" if it was not recorded."""
    return content_hash[EXTRACTOR_NAME_OFFSET:]


def flatten_metadata(values: Mapping[object, object]) -> dict[str, MetadataValue]:
    """Return `values` as flat metadata.

    Dates become text in ISO form, lists of scalars become tuples of text, and nested keys become "a.b". A list that
    holds lists or mappings becomes JSON text. Raises RecursionError for values nested too deeply.
    """
    return dict(_flatten("", values))


def _flatten(prefix: str, values: Mapping[object, object]) -> Iterator[tuple[str, MetadataValue]]:
    for key, value in values.items():
        name = prefix + _text(key)
        if isinstance(value, Mapping):
            yield from _flatten(f"{name}.", value)
        else:
            yield name, _value(value)


def _value(value: object) -> MetadataValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _MAX_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if not isinstance(value, list | tuple | set):
        return _text(value)
    elements = sorted(value, key=_text) if isinstance(value, set) else value
    if any(isinstance(element, Mapping | list | tuple | set) for element in elements):
        return json.dumps(_plain(value), ensure_ascii=False)
    return tuple(_text(element) for element in elements)


def _plain(value: object) -> object:
    """Return `value` with mappings and lists as in JSON, and other scalars than integers, booleans and null as text."""
    if isinstance(value, Mapping):
        return {_text(key): _plain(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    return value if value is None or isinstance(value, bool | int) else _text(value)


def _text(value: object) -> str:
    """Return a scalar as text that every store accepts: without NUL and lone surrogates."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    text = value.isoformat() if isinstance(value, date) else str(value)
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def is_date(text: str) -> bool:
    """Return whether a text is a date of the calendar in ISO 8601: a year, a month, a day or any time of one."""
    match = _DATE.fullmatch(text)
    if not match:
        return False
    year, month, day = (int(part or 1) for part in match.groups()[:3])
    try:
        date(year or 4, month, day)  # the year 0000 has a 29 February, as the year 4
    except ValueError:
        return False
    return True


def searched_title(document_id: str, title: str) -> str:
    """Return what full text has of a document in each of its chunks: its title, and the name of its file.

    An id with a suffix is the path of a file. A name that the title contains is not repeated.
    """
    name, suffix, _ = document_id.rpartition("/")[2].rpartition(".")
    words = _NAME_JOINTS.sub(" ", name) if suffix else ""
    return title if words.casefold() in title.casefold() else f"{title} {words}".strip()


def stated_start(metadata: Metadata) -> str:
    """Return since when a document says that it holds: its `valid_from`, else its `date`; "" where it has neither."""
    return _date_in(metadata, VALID_FROM) or _date_in(metadata, DATE)


def stated_end(metadata: Metadata) -> str:
    """Return the last date at which a document says that it holds, its `valid_until`; "" where it has none."""
    return _date_in(metadata, VALID_UNTIL)


def _date_in(metadata: Metadata, name: str) -> str:
    """Return the first date in a metadata field, "" if there is none that can be read."""
    value = metadata.get(name)
    values = value if isinstance(value, tuple) else (value,)
    return next((str(single) for single in values if is_date(str(single))), "")
