"""Markdown: the source text as it is, with the blocks and headings markdown-it finds in it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.token import Token

from quipu.model.document import Block, Metadata, ParsedDocument, SourceDocument
from quipu.parse.apart import read_markup_apart
from quipu.parse.decode import decode, name_of
from quipu.parse.front_matter import split_front_matter
from quipu.parse.headings import MAX_HEADING, HeadingPath

_KINDS = {
    "heading_open": "heading",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
}


# What is read in this process; of the worst kind, markers within markers, a character takes 600 bytes.
_MAX_CHARACTERS_HERE = 1_000_000
_MAX_HEADING_MARKUP = 10 * MAX_HEADING  # characters; finding the markup of more takes the square of the time


class MarkdownParser:
    """Reads CommonMark with tables; front matter becomes metadata, the text stays as written, markers included."""

    media_types = frozenset({"text/markdown"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the body, its blocks and the front matter. Raises InvalidDocument for bytes or YAML it cannot read."""
        text = decode(source)
        front = split_front_matter(text, name_of(source))
        body = text[front.body_start :]
        is_large = len(body) > _MAX_CHARACTERS_HERE
        parsed = read_markup_apart("markdown", body, name_of(source)) if is_large else read_markup(body)
        return replace(parsed, title=_title(front.metadata) or parsed.title, metadata=front.metadata)


PARSER = MarkdownParser()


def read_markup(markup: str) -> ParsedDocument:
    """Return the text, title and blocks of Markdown without front matter, all in this process."""
    outline = _Outline(markup)
    blocks = tuple(outline.blocks())
    return ParsedDocument(text=markup, title=outline.title, blocks=blocks)


def _title(metadata: Metadata) -> str:
    title = metadata.get("title")
    return str(title) if isinstance(title, str | int | float) else ""


class _Outline:
    """The top-level blocks of one Markdown text."""

    def __init__(self, text: str) -> None:
        self.title = ""
        self._text = text
        # Finding inline markup is most of the work of markdown-it; it is needed for headings alone.
        self._inline = MarkdownIt("commonmark")
        self._structure = MarkdownIt("commonmark").enable("table")
        self._structure.core.ruler.disable("inline")
        self._line_starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        self._path = HeadingPath()

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in order; lines markdown-it has no token for (link definitions) are paragraphs."""
        done = 0
        tokens = self._structure.parse(self._text)
        for index, token in enumerate(tokens):
            if token.level == 0 and token.map and token.nesting >= 0:
                first, last = token.map
                yield from self._block(done, first, "paragraph")
                yield from (
                    self._heading(tokens, index)
                    if token.type == "heading_open"
                    else self._block(first, last, _KINDS.get(token.type, "paragraph"))
                )
                done = last
        yield from self._block(done, len(self._line_starts) - 1, "paragraph")

    def _heading(self, tokens: Sequence[Token], index: int) -> Iterator[Block]:
        level = int(tokens[index].tag[1:])
        text = self._plain(tokens[index + 1].content)
        first, last = tokens[index].map or (0, 0)
        for block in self._block(first, last, "heading"):
            yield Block(start=block.start, end=block.end, kind="heading", headings=self._path.above(level))
        if 0 < len(text) <= MAX_HEADING:
            self._path.enter(level, text)
            self.title = self.title or (text if level == 1 else "")

    def _block(self, first: int, last: int, kind: str) -> Iterator[Block]:
        """Yield the block of lines [first, last) without the space around it, unless it is empty."""
        start = self._line_starts[first]
        end = min(self._line_starts[last], len(self._text))
        lines = self._text[start:end]
        if lines.strip():
            left = start + len(lines) - len(lines.lstrip())
            yield Block(
                start=left,
                end=start + len(lines.rstrip()),
                kind=kind,
                headings=self._path.above(),
                header=lines.strip().partition("\n")[0] if kind == "table" else "",
            )

    def _plain(self, markup: str) -> str:
        """Return the words of a heading without its markup, on one line."""
        if len(markup) > _MAX_HEADING_MARKUP:
            return markup
        (inline,) = self._inline.parseInline(markup)
        words = (" " if token.type == "softbreak" else token.content for token in inline.children or ())
        return " ".join("".join(words).split())
