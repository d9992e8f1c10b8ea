"""Manuscript: a parsed text as chunkers see it, with what a chunk of it would cost in tokens."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quipu.model.document import Block, ParsedDocument

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manuscript:
    """A text, its blocks in order (at least one), the budget of a chunk, and how tokens are counted.

    `bodies` are the tables whose header is repeated: (end of the header row, end of the table, header), in order.
    """

    text: str
    blocks: Sequence[Block]
    max_tokens: int
    count: Count
    bodies: Sequence[tuple[int, int, str]] = ()

    def header_at(self, start: int) -> str:
        """Return the header that a chunk beginning at `start` repeats; "" outside the bodies of tables."""
        index = bisect_right(self.bodies, start, key=lambda body: body[0]) - 1
        return self.bodies[index][2] if index >= 0 and start < self.bodies[index][1] else ""

    def n_tokens(self, start: int, end: int) -> int:
        """Return the tokens of a chunk of characters [start, end), the header it repeats included."""
        return self.count(with_header(self.header_at(start), self.text[start:end]))

    def block_at(self, index: int) -> Block:
        """Return the block the character at `index` is in, or the one before where it is between two."""
        return self.blocks[max(0, bisect_right(self.blocks, index, key=lambda block: block.start) - 1)]

    def visible_from(self, index: int) -> int:
        """Return the place of the first visible character at or after `index`, or the length of the text."""
        while index < len(self.text) and self.text[index].isspace():
            index += 1
        return index


def manuscript_of(parsed: ParsedDocument, count: Count, max_tokens: int) -> Manuscript:
    """Return `parsed` for chunks of at most `max_tokens`. A header that would fill half of one is not repeated."""
    blocks = blocks_of(parsed)
    bodies = tuple(
        (block.start + len(block.header), block.end, block.header)
        for block in blocks
        if block.header and 2 * count(with_header(block.header, "")) <= max_tokens
    )
    return Manuscript(text=parsed.text, blocks=blocks, max_tokens=max_tokens, count=count, bodies=bodies)


def blocks_of(parsed: ParsedDocument) -> Sequence[Block]:
    """Return the blocks of a document; a text without any is one."""
    return parsed.blocks or (Block(start=0, end=len(parsed.text)),)


def with_header(header: str, text: str) -> str:
    """Return what is read of a chunk: the header it repeats, if any, and its text below."""
    return f"{header}\n{text}" if header else text
