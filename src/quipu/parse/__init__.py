"""Parsers: the bytes of a document become one text with its title, structure and metadata."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.decode import name_of, normalise
from quipu.parse.draft import refuse_blocks_over
from quipu.parse.formats import FORMATS, Format
from quipu.parse.headings import MAX_HEADING
from quipu.parse.signature import refuse_disguised

PARSERS: Mapping[str, Format] = MappingProxyType(
    {media_type: each for each in FORMATS for media_type in each.media_types}
)
MEDIA_TYPE_BY_SUFFIX: Mapping[str, str] = MappingProxyType(
    {suffix: media_type for each in FORMATS for media_type, suffixes in each.types for suffix in suffixes}
)
_BLANK = b"\xef\xbb\xbf \t\r\n\v\f\0"


def media_type_of(path: Path) -> str | None:
    """Return the media type a file's suffix stands for, None where no parser reads it."""
    return MEDIA_TYPE_BY_SUFFIX.get(path.suffix.lower())


def parser_for(media_type: str) -> Format:
    """Return the format of `media_type` (its parameters are ignored); raises InvalidDocument where there is none."""
    found = PARSERS.get(media_type.partition(";")[0].strip().lower())
    if found is None:
        readable = sorted(known for known, each in PARSERS.items() if each.is_read)
        raise InvalidDocument(
            f"There is no parser for the media type {media_type!r}.", remedy=f"Readable are: {', '.join(readable)}."
        )
    return found


def parse(source: SourceDocument) -> ParsedDocument:
    """Return the text, title, blocks and metadata of `source`.

    The title is the one given, else the document's own, else its file's name. Metadata given wins over the document's.
    Raises InvalidDocument, with the reason and a remedy, where the document cannot be read or holds no text.
    """
    parser = parser_for(source.media_type)
    parsed = _read(source, parser) if source.content.strip(_BLANK) else _EMPTY
    refuse_blocks_over(len(parsed.blocks), name_of(source))
    if not parsed.text.strip():
        raise InvalidDocument(
            f"{name_of(source)} holds no text: nothing to index.",
            remedy="Check that it is the right document, or leave it out.",
        )
    title = " ".join(normalise(source.title or parsed.title).split()) or _title_from_name(source.source)
    return replace(parsed, title=_capped(title), metadata={**parsed.metadata, **source.metadata})


_EMPTY = ParsedDocument(text="", title="", blocks=())


def _read(source: SourceDocument, parser: Format) -> ParsedDocument:
    if parser.is_read:
        refuse_disguised(source, parser.signature)
    try:
        return parser.parse(source)
    except RecursionError as error:
        raise InvalidDocument(
            f"{name_of(source)} nests deeper than can be read.", remedy="Save it as text, or leave it out."
        ) from error


def _capped(title: str) -> str:
    """Return a title that fits on a few lines: it goes with every chunk."""
    return title if len(title) <= MAX_HEADING else f"{title[: MAX_HEADING - 1].rstrip()}…"


def _title_from_name(name: str) -> str:
    """Return a file's name without its suffix, with spaces for _ and -."""
    return " ".join(PurePosixPath(name.replace("\\", "/")).stem.replace("_", " ").replace("-", " ").split())
