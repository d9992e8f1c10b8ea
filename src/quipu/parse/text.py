"""Plain text: paragraphs separated by blank lines. Many projects keep reStructuredText or AsciiDoc in such files."""

import re
from itertools import islice

from quipu.model.document import Block, ParsedDocument, SourceDocument
from quipu.parse.asciidoc import AsciiDocParser
from quipu.parse.builder import check_block_count
from quipu.parse.decode import decode, display_name
from quipu.parse.rst import RstParser

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n)+")
_MAX_TITLE = 100
_RST_BLOCK = r"^\.\. +(?:[\w+.-]+:)?[\w+.-]+::(?:[ \t]|$)|^\.\. +_[^\n:]{1,100}:"  # or the target of a link
_RST_MARKUP = rf"{_RST_BLOCK}|(?<!\w):[a-z][\w:+.-]{{0,40}}:`[^`\n]"
_MIN_MARKUP = 3  # of a file that is reStructuredText or AsciiDoc
_ASCIIDOC_BLOCK = (
    r"^\[(?:\[[\w-]{1,60}\]|(?:source|verse|listing|quote|NOTE|TIP|WARNING|IMPORTANT|CAUTION)(?:,[^\]\n]{0,60})?)\]$"
    r"|^\|===$|^(?:include|ifn?def|endif|image)::[^\s\[]{0,200}\[|\b(?:xref|link[a-z]{0,20}):[\w#./-]{1,200}\["
)
_ASCIIDOC_MARKUP = rf"{_ASCIIDOC_BLOCK}|^\+$|^={{1,5}} \w[^=\n]{{0,100}}$"
_ADORNMENT = re.compile(r"([=~^*#+_-])\1{2,}")


class PlainTextParser:
    """Reads text without markup. Blank lines separate paragraphs; a short first line on its own is the title.

    A text that is reStructuredText or AsciiDoc by its markup is read as such.
    """

    media_types = frozenset({"text/plain"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text and its paragraphs. Raises InvalidDocument if the bytes are not text."""
        text = decode(source)
        if _has_markup(text, _RST_BLOCK, _RST_MARKUP):
            return RstParser().parse(source)
        if _has_markup(text, _ASCIIDOC_BLOCK, _ASCIIDOC_MARKUP):
            return AsciiDocParser().parse(source)
        check_block_count(sum(1 for _ in _BLANK_LINES.finditer(text)), display_name(source))
        return ParsedDocument(text=text, title=_title(text), blocks=tuple(_paragraphs(text)))


PARSER = PlainTextParser()


def _has_markup(text: str, block: str, markup: str) -> bool:
    """Return whether a text has markup that only one language has (`block`), and several pieces of its `markup`."""
    pieces = re.finditer(markup, text, re.MULTILINE)
    return bool(re.search(block, text, re.MULTILINE)) and len([*islice(pieces, _MIN_MARKUP)]) == _MIN_MARKUP


def _paragraphs(text: str) -> list[Block]:
    """Return the runs of `text` between blank lines."""
    blocks = []
    start = 0
    for end, following in [*(match.span() for match in _BLANK_LINES.finditer(text)), (len(text), len(text))]:
        paragraph = text[start:end]
        if paragraph.strip():
            text_start = start + len(paragraph) - len(paragraph.lstrip())
            blocks.append(Block(start=text_start, end=text_start + len(paragraph.strip())))
        start = following
    return blocks


def _title(text: str) -> str:
    """Return the first line if it is short, has no full stop at its end, and is underlined or alone; else ""."""
    first, second, third = [*text.lstrip().split("\n", 3), "", "", ""][:3]
    if _ADORNMENT.fullmatch(first.strip()):
        first, second = second, third
    first = first.strip()
    is_underlined = _ADORNMENT.fullmatch(second.strip()) is not None
    is_alone = is_underlined or (not second.strip() and len(text.strip()) > len(first))
    return first if is_alone and len(first) <= _MAX_TITLE and not first.endswith((".", "。")) else ""
