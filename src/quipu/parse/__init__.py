"""Parsers: the bytes of a document become one text with its title, structure and metadata."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.decode import name_of, normalise
from quipu.parse.headings import MAX_HEADING
from quipu.parse.html import HtmlParser
from quipu.parse.markdown import MarkdownParser
from quipu.parse.text import PlainTextParser
from quipu.ports.parser import Parser

PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        media_type: parser
        for parser in (PlainTextParser(), MarkdownParser(), HtmlParser())
        for media_type in parser.media_types
    }
)
MEDIA_TYPE_BY_SUFFIX: Mapping[str, str] = MappingProxyType(
    {
        ".txt": "text/plain",
        ".text": "text/plain",
        ".log": "text/plain",
        ".rst": "text/plain",
        ".md": "text/markdown",
        ".markdown": "text/markdown",
        ".mdx": "text/markdown",
        ".html": "text/html",
        ".htm": "text/html",
        ".xhtml": "application/xhtml+xml",
    }
)


def media_type_of(path: Path) -> str | None:
    """Return the media type a file's suffix stands for, None where no parser reads it."""
    return MEDIA_TYPE_BY_SUFFIX.get(path.suffix.lower())


def parser_for(media_type: str) -> Parser:
    """Return the parser of `media_type` (its parameters are ignored); raises InvalidDocument where there is none."""
    parser = PARSERS.get(media_type.partition(";")[0].strip().lower())
    if parser is None:
        raise InvalidDocument(
            f"There is no parser for the media type {media_type!r}.",
            remedy=f"Readable are: {', '.join(sorted(PARSERS))}.",
        )
    return parser


def parse(source: SourceDocument) -> ParsedDocument:
    """Return the text, title, blocks and metadata of `source`.

    The title is the one given, else the document's own, else its file's name. Metadata given wins over the document's.
    Raises InvalidDocument, with the reason and a remedy, where the document cannot be read or holds no text.
    """
    parsed = parser_for(source.media_type).parse(source)
    if not parsed.text.strip():
        raise InvalidDocument(
            f"{name_of(source)} holds no text: nothing to index.",
            remedy="Check that it is the right document, or leave it out.",
        )
    title = " ".join(normalise(source.title or parsed.title).split()) or _title_from_name(source.source)
    return replace(parsed, title=_capped(title), metadata={**parsed.metadata, **source.metadata})


def _capped(title: str) -> str:
    """Return a title that fits on a few lines: it goes with every chunk."""
    return title if len(title) <= MAX_HEADING else f"{title[: MAX_HEADING - 1].rstrip()}…"


def _title_from_name(name: str) -> str:
    """Return a file's name without its suffix, with spaces for _ and -."""
    return " ".join(PurePosixPath(name.replace("\\", "/")).stem.replace("_", " ").replace("-", " ").split())
