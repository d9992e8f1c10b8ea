"""Plain text: paragraphs separated by blank lines."""

import re

from quipu.model.document import Block, ParsedDocument, SourceDocument
from quipu.parse.builder import check_block_count
from quipu.parse.decode import decode, display_name

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n)+")
_MAX_TITLE = 100
_ADORNMENT = re.compile(r"([=~^*#+_-])\1{2,}")


class PlainTextParser:
    """Reads text without markup. Blank lines separate paragraphs; a short first line on its own is the title."""

    media_types = frozenset({"text/plain"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text and its paragraphs. Raises InvalidDocument if the bytes are not text."""
        text = decode(source)
        check_block_count(sum(1 for _ in _BLANK_LINES.finditer(text)), display_name(source))
        return ParsedDocument(text=text, title=_title(text), blocks=tuple(_paragraphs(text)))


PARSER = PlainTextParser()


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
