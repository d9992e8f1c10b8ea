"""Plain text: paragraphs between blank lines."""

import re

from quipu.model.document import Block, ParsedDocument, SourceDocument
from quipu.parse.decode import decode, name_of
from quipu.parse.draft import refuse_blocks_over

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n)+")
_MAX_TITLE = 100


class PlainTextParser:
    """Reads text without markup: paragraphs between blank lines; a short first line that stands alone is the title."""

    media_types = frozenset({"text/plain"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text and its paragraphs. Raises InvalidDocument where the bytes are no text."""
        text = decode(source)
        refuse_blocks_over(sum(1 for _ in _BLANK_LINES.finditer(text)), name_of(source))
        return ParsedDocument(text=text, title=_title(text), blocks=tuple(_paragraphs(text)))


PARSER = PlainTextParser()


def _paragraphs(text: str) -> list[Block]:
    """Return the runs of `text` between blank lines."""
    blocks = []
    start = 0
    for end, following in [*(match.span() for match in _BLANK_LINES.finditer(text)), (len(text), len(text))]:
        paragraph = text[start:end]
        if paragraph.strip():
            left = start + len(paragraph) - len(paragraph.lstrip())
            blocks.append(Block(start=left, end=left + len(paragraph.strip())))
        start = following
    return blocks


def _title(text: str) -> str:
    """Return the first line where it is short, ends without a full stop and is followed by a blank line."""
    first, _, rest = text.lstrip().partition("\n")
    following = rest.partition("\n")[0]
    stands_alone = bool(rest.strip()) and not following.strip()
    return (
        first.strip() if stands_alone and len(first) <= _MAX_TITLE and not first.rstrip().endswith((".", "。")) else ""
    )
