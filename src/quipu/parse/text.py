"""Plain text: paragraphs separated by blank lines. Many projects keep reStructuredText in such files."""

import re
from itertools import islice

from quipu.model.document import Block, ParsedDocument, SourceDocument
from quipu.parse.builder import check_block_count
from quipu.parse.decode import decode, display_name
from quipu.parse.rst import RstParser

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n)+")
_MAX_TITLE = 100
_DIRECTIVE = r"^\.\. +(?:[\w+.-]+:)?[\w+.-]+::(?:[ \t]|$)|^\.\. +_[^\n:]{1,100}:"  # or the target of a link
_RST_BLOCK = re.compile(_DIRECTIVE, re.MULTILINE)
_RST_MARKUP = re.compile(rf"{_DIRECTIVE}|(?<!\w):[a-z][\w:+.-]{{0,40}}:`[^`\n]", re.MULTILINE)
_MIN_MARKUP = 3  # of a file that is reStructuredText
_ADORNMENT = re.compile(r"([=~^*#+_-])\1{2,}")


class PlainTextParser:
    """Reads text without markup. Blank lines separate paragraphs; a short first line on its own is the title.

    A text that is reStructuredText by its markup is read as such.
    """

    media_types = frozenset({"text/plain"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text and its paragraphs. Raises InvalidDocument if the bytes are not text."""
        text = decode(source)
        if _is_rst(text):
            return RstParser().parse(source)
        check_block_count(sum(1 for _ in _BLANK_LINES.finditer(text)), display_name(source))
        return ParsedDocument(text=text, title=_title(text), blocks=tuple(_paragraphs(text)))


PARSER = PlainTextParser()


def _is_rst(text: str) -> bool:
    """Return whether a text is reStructuredText: it has directives or targets, and these and roles are several."""
    return bool(_RST_BLOCK.search(text)) and len([*islice(_RST_MARKUP.finditer(text), _MIN_MARKUP)]) == _MIN_MARKUP


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
