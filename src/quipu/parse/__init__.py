"""Parsers: the bytes of a document become one text with a title, blocks and metadata."""

import re
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from types import MappingProxyType

from quipu.errors import InvalidDocument
from quipu.model.document import Metadata, ParsedDocument, SourceDocument
from quipu.parse.builder import MAX_HEADING, check_block_count
from quipu.parse.decode import display_name, in_utf8, normalise
from quipu.parse.formats import FORMATS, IMAGES, IMAGES_REMEDY, Format, check_signature, sniff_text_type
from quipu.ports.ingest import FileTypes

PARSERS: Mapping[str, Format] = MappingProxyType(
    {media_type: file_format for file_format in (*FORMATS, IMAGES) for media_type in file_format.media_types}
)
MEDIA_TYPE_BY_SUFFIX: Mapping[str, str] = MappingProxyType(
    {suffix: media_type for file_format in FORMATS for media_type, suffixes in file_format.types for suffix in suffixes}
)
IMAGE_TYPE_BY_SUFFIX: Mapping[str, str] = MappingProxyType(  # of files that are pictures, if a model reads them
    {suffix: media_type for media_type, suffixes in IMAGES.types for suffix in suffixes}
)
SCANNED = ("application/pdf", "application/gzip")  # media types of documents that may have scanned pages
ILLUSTRATED = tuple(  # media types of documents whose pictures a model can describe
    media_type
    for file_format in (*FORMATS, IMAGES)
    for media_type in file_format.media_types
    if file_format.module in ("pdf", "docx", "pptx", "html", "markdown", "mail", "epub", "gzip")
)
_GZIP = b"\x1f\x8b"
MEDIA_TYPE_BY_NAME = dict.fromkeys(("makefile", "dockerfile", "rakefile", "gemfile", "jenkinsfile"), "text/x-source")
_TITLE_MARKS = re.compile(r"^(?:#{1,6}|={1,6}|\*{1,6})\s+|\s*(?:[¶🔗]|\s#{1,6}|\s={1,6}|\s\*{1,6})$")
_NO_TITLE = re.compile(
    r"untitled(?: document)?|\(?anonymous\)?|no title|document\d*|(?:skip|jump) to .{0,40}|(?:new )?page\d*",
    re.IGNORECASE,
)
_FIRST_LINE_WITHIN = 2_000  # characters
_MAX_FIRST_LINE = 80
_BLANK = b"\xef\xbb\xbf \t\r\n\v\f\0"


def sniff_media_type(name: str, head: bytes) -> str:
    """Return the media type of a file by its first bytes; "" if no parser reads it, or what is packed inside."""
    if not head.startswith(_GZIP):
        return MEDIA_TYPE_BY_NAME.get(name.lower()) or sniff_text_type(head)
    try:
        inner = zlib.decompressobj(31).decompress(head, len(head))
    except zlib.error:
        return ""
    is_read = not inner.startswith(_GZIP) and sniffed_or_known_type(name.removesuffix(".gz"), inner)
    return "application/gzip" if is_read else ""


def sniffed_or_known_type(name: str, head: bytes) -> str:
    """Return the media type of a file by its suffix, otherwise by its first bytes; "" if no parser reads it."""
    return MEDIA_TYPE_BY_SUFFIX.get(PurePosixPath(name).suffix.lower()) or sniff_media_type(name, head)


FILE_TYPES = FileTypes(MEDIA_TYPE_BY_SUFFIX, sniff_media_type, dict.fromkeys(IMAGE_TYPE_BY_SUFFIX, IMAGES_REMEDY))


def parser_for(media_type: str) -> Format:
    """Return the format of `media_type`, whose parameters are ignored. Raises InvalidDocument if there is none."""
    file_format = PARSERS.get(media_type.partition(";")[0].strip().lower())
    if file_format is None:
        readable = sorted(name for name, candidate in PARSERS.items() if candidate.is_read and candidate is not IMAGES)
        raise InvalidDocument(
            f"There is no parser for the media type {media_type!r}.", remedy=f"Readable are: {', '.join(readable)}."
        )
    return file_format


def parse(source: SourceDocument) -> ParsedDocument:
    """Return the text, title, blocks and metadata of `source`.

    The title is `source.title`, otherwise the document's own, otherwise the name of its file. Metadata in `source`
    replaces the document's own. If the encoding of a text had to be assumed, the metadata `assumed_encoding` names it.
    Raises InvalidDocument, with a remedy, if the document cannot be read or has no text.
    """
    parser = parser_for(source.media_type)
    text_source, encoding = in_utf8(source) if parser.is_text else (source, "")
    parsed = _read(text_source, parser) if source.content.strip(_BLANK) else _EMPTY
    check_block_count(len(parsed.blocks), display_name(source))
    if not parsed.text.strip():
        raise InvalidDocument(
            f"{display_name(source)} holds no text, so there is nothing to index.",
            remedy="Check that it is the right document, or leave it out.",
        )
    title = " ".join(normalise(source.title).split()) or _own_title(parsed) or _title_from_name(source.source)
    if title and not source.title and not _has_letter(title):
        title = _first_line(parsed) or title
    assumed = {"assumed_encoding": encoding} if encoding else {}
    return replace(
        parsed, title=_shorten_title(title), metadata={**_normal(parsed.metadata), **assumed, **source.metadata}
    )


def parse_in_languages(languages: str, source: SourceDocument) -> ParsedDocument:
    """Parse as `parse` does; scanned pages of documents that name no languages of their own are read in `languages`."""
    if "ocr" in source.metadata or source.media_type not in SCANNED:
        return parse(source)
    parsed = parse(replace(source, metadata={**source.metadata, "ocr": languages}))
    return replace(parsed, metadata={name: value for name, value in parsed.metadata.items() if name != "ocr"})


def _normal(metadata: Metadata) -> Metadata:
    """Return the metadata of a document without control characters in their texts."""
    return {name: normalise(value) if isinstance(value, str) else value for name, value in metadata.items()}


_EMPTY = ParsedDocument(text="", title="", blocks=())


def _read(source: SourceDocument, parser: Format) -> ParsedDocument:
    if parser.is_read and parser is not IMAGES:
        check_signature(source, parser.signature)
    try:
        return parser.parse(source)
    except RecursionError as error:
        raise InvalidDocument(
            f"{display_name(source)} nests deeper than the parser can read.", remedy="Save it as text, or leave it out."
        ) from error


def _shorten_title(title: str) -> str:
    """Return at most MAX_HEADING characters of the title, because it is repeated with every chunk."""
    return title if len(title) <= MAX_HEADING else f"{title[: MAX_HEADING - 1].rstrip()}…"


def _own_title(parsed: ParsedDocument) -> str:
    """Return the title of the document without marks of markup; "" for a number, a placeholder or a link of a page."""
    title = " ".join(normalise(parsed.title).split())
    title = _TITLE_MARKS.sub("", title) or title
    return title if _has_letter(title) and not _NO_TITLE.fullmatch(title) else ""


def _has_letter(title: str) -> bool:
    return any(map(str.isalpha, title))


def _first_line(parsed: ParsedDocument) -> str:
    """Return the first line with a letter, for a document whose file has only a number for a name."""
    lines = (" ".join(line.split()) for line in parsed.text[:_FIRST_LINE_WITHIN].split("\n"))
    line = next(filter(_has_letter, lines), "")
    return line if len(line) <= _MAX_FIRST_LINE else f"{line[:_MAX_FIRST_LINE].rpartition(' ')[0] or line[:40]}…"


def _title_from_name(name: str) -> str:
    """Return the name of a file without its suffix; "_" and "-" become spaces."""
    return " ".join(PurePosixPath(name.replace("\\", "/")).stem.replace("_", " ").replace("-", " ").split())
