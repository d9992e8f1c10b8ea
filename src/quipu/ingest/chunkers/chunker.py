"""Chunker: the interface of every chunking method, and the text it cuts."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quipu.model.chunking import AUTO_TOKENS, Chunking
from quipu.model.document import Block, ParsedDocument

AUTO_TOKENS_OF_LARGE = 600
LARGE_BYTES = 100_000

CountTokens = Callable[[str], int]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSpan:
    """Where a chunk is in its document: characters [start, end) of the text.

    `headings` are the headings above all of its text. `page` is the page on which it begins. `header` is the header row
    of the table in which the chunk begins, if that row is before the chunk.
    """

    start: int
    end: int
    headings: tuple[str, ...] = ()
    page: int | None = None
    header: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkableText:
    """A parsed text with what a chunker needs: its blocks in order (at least one) and the token budget of a chunk.

    `table_bodies` are the tables whose header row every chunk repeats: (end of the header row, end of the table,
    header row), in order.
    """

    text: str
    blocks: Sequence[Block]
    max_tokens: int
    count: CountTokens
    table_bodies: Sequence[tuple[int, int, str]] = ()

    @classmethod
    def of(cls, parsed: ParsedDocument, count: CountTokens, max_tokens: int) -> "ChunkableText":
        """Return `parsed` for chunks of at most `max_tokens`. A header that would fill half a chunk is not repeated."""
        blocks = blocks_of(parsed)
        table_bodies = tuple(
            (block.start + len(block.header), block.end, block.header)
            for block in blocks
            if block.header and 2 * count(with_header(block.header, "")) <= max_tokens
        )
        return cls(text=parsed.text, blocks=blocks, max_tokens=max_tokens, count=count, table_bodies=table_bodies)

    def header_at(self, start: int) -> str:
        """Return the table header that a chunk beginning at `start` repeats; "" outside the bodies of tables."""
        index = bisect_right(self.table_bodies, start, key=lambda body: body[0]) - 1
        return self.table_bodies[index][2] if index >= 0 and start < self.table_bodies[index][1] else ""

    def n_tokens(self, start: int, end: int) -> int:
        """Return the tokens of a chunk of characters [start, end), including the header that it repeats."""
        return self.count(with_header(self.header_at(start), self.text[start:end]))

    def block_at(self, index: int) -> Block:
        """Return the block that holds the character at `index`, or the block before a gap between two blocks."""
        return self.blocks[max(0, bisect_right(self.blocks, index, key=lambda block: block.start) - 1)]

    def next_visible(self, index: int) -> int:
        """Return the position of the first visible character at or after `index`, or the length of the text."""
        while index < len(self.text) and self.text[index].isspace():
            index += 1
        return index


CutFunction = Callable[[ChunkableText, Chunking, Sequence[float]], list[Span]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunker:
    """A chunking method, registered under its name.

    `cut` is a pure function. It returns the characters [start, end) of each chunk; starts and ends increase. The caller
    cuts a chunk that is still over budget again. `auto_tokens` returns the budget for a document of a given size in
    bytes, for use where the user sets none. `after` names the source of the algorithm, `when` tells a user when to
    choose it. A method that `reads_vectors` receives the similarity of the text before and after each sentence.
    """

    name: str
    cut: CutFunction
    auto_tokens: Callable[[int], int]
    summary: str
    after: str
    when: str
    reads_vectors: bool = False


def tokens_for_size(n_bytes: int) -> int:
    """Return the automatic token budget of a chunk: 1,200, or 600 for documents over 100 kB.

    Smaller chunks make a passage of a long document easier to find. A document that grows past that size is cut again
    from its beginning, once.
    """
    return AUTO_TOKENS if n_bytes <= LARGE_BYTES else AUTO_TOKENS_OF_LARGE


def blocks_of(parsed: ParsedDocument) -> Sequence[Block]:
    """Return the blocks of a document; a text without blocks is one block."""
    return parsed.blocks or (Block(start=0, end=len(parsed.text)),)


def with_header(header: str, text: str) -> str:
    """Return a chunk as it is read: the header that it repeats, if any, above its text."""
    return f"{header}\n{text}" if header else text


def strip_span(text: str, start: int, end: int) -> Span:
    """Return the span without the white space at its ends; an empty span if it holds nothing else."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
