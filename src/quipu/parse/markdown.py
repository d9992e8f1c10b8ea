"""Markdown: the text stays as written; markdown-it finds its blocks and headings, and front matter is metadata."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from quipu.errors import InvalidDocument
from quipu.model.document import Block, Metadata, ParsedDocument, SourceDocument, flatten_metadata
from quipu.parse.builder import MAX_HEADING, HeadingPath
from quipu.parse.decode import decode, display_name
from quipu.parse.markup_process import read_markup_in_process
from quipu.parse.pictures import CODE, as_markdown, replace_pictures

_KINDS = {
    "heading_open": "heading",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
}
# A longer text is parsed in a process of its own: nested markers, the worst case, take 600 bytes per character.
_MAX_CHARACTERS_IN_PROCESS = 1_000_000
_MAX_HEADING_MARKUP = 10 * MAX_HEADING  # characters; the time to find inline markup is quadratic
_FRONT_MATTER_START = re.compile(r"---[ \t]*\n(?=[ \t\n]*(?:#|---|[\"']?[^\s:#\"'-][^:\n]*:(?:\s|$)))")
_FRONT_MATTER_END = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_MAX_YAML_DEPTH = 50
_MAX_FRONT_MATTER = 100_000  # characters; they take about a second
_TAG = r"</?(?:a|b|br|center|details|div|em|font|i|kbd|p|picture|small|source|span|strong|summary|u)\b[^<>]*>"
_UNSEEN = rf"(?:<!--(?>.*?-->)|\[(?:<!---->)*\]\([^()\s]+\)|{_TAG})"
# What is code, a heading, a link, lines that show nothing with the blank ones below them, or marks within a line.
_HTML = re.compile(
    rf"(?P<code>{CODE}|^(?: {{4}}|\t)[^\n]*$)"
    r"|^ {0,3}<h(?P<level>[1-6])\b[^<>]*>(?P<heading>(?:(?!</?h[1-6]).){0,500}?)</h[1-6]>[ \t]*$"
    r"|<a\b[^<>]*\bhref=\"(?P<address>[^\"<>\s]+)\"[^<>]*>(?P<link>[^<>\n]{1,300})</a>"
    rf"|(?P<lines>^ {{0,3}}(?:{_UNSEEN}(?>(?:[ \t]*\n)*)(?>(?: {{0,3}}(?=<))?))+(?<=\n))|{_UNSEEN}",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_REMEDY = "Correct the lines between the two --- at its start, or remove them."


class MarkdownParser:
    """Reads CommonMark with tables. Front matter becomes metadata; the text keeps its markers, without HTML.

    A file that is a picture is read as the Markdown that a model makes of it.
    """

    media_types = frozenset({"text/markdown"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the body, its blocks and the front matter. Raises InvalidDocument for invalid text or YAML."""
        text = decode(as_markdown(source) if source.media_type.startswith("image/") else source)
        front = split_front_matter(text, display_name(source))
        parsed = parse_markdown(text[front.body_start :], display_name(source))
        return replace(parsed, title=_title(front.metadata) or parsed.title, metadata=front.metadata)


PARSER = MarkdownParser()


def parse_markdown(markup: str, name: str) -> ParsedDocument:
    """Return the text, title and blocks of Markdown without front matter; long text is read in another process.

    Tags and comments of HTML are left out, and pictures are their alternative text. Raises InvalidDocument, with the
    document's `name`, if this takes too much memory or time.
    """
    if "![" in markup or "<img" in markup.lower():
        markup = replace_pictures(markup, without="<!---->")
    if "<" in markup and (text := without_html(markup)).strip():
        markup = text
    is_large = len(markup) > _MAX_CHARACTERS_IN_PROCESS
    return read_markup_in_process("markdown", markup, name) if is_large else read_markup(markup)


def without_html(markup: str) -> str:
    """Return Markdown without comments and tags of HTML, which no reader sees; those in code, and of tables, stay."""
    last = max(0, markup.rfind("-->"))  # what is behind a comment that does not end stays, so the time is linear
    end = last + len(markup[last:].partition("<!--")[0])
    return _HTML.sub(_without_html, markup[:end]) + markup[end:]


def _without_html(match: re.Match[str]) -> str:
    if match["code"] is not None:
        return match[0]
    if match["level"]:
        return f"{'#' * int(match['level'])} {' '.join(re.sub(f'(?is){_UNSEEN}', ' ', match['heading']).split())}"
    if match["link"]:
        return f"[{match['link'].strip()}]({match['address']})"
    is_below_text = match["lines"] is not None and match.string[max(0, match.start() - 2) : match.start()].strip()
    return "\n" * bool(is_below_text) or " " * match[0].lower().startswith(("<br", "</br"))


def read_markup(markup: str) -> ParsedDocument:
    """Return the text, title and blocks of Markdown without front matter; runs in the current process."""
    reader = _MarkdownBlocks(markup)
    blocks = tuple(reader.blocks())
    return ParsedDocument(text=markup, title=reader.title, blocks=blocks)


def _title(metadata: Metadata) -> str:
    title = metadata.get("title")
    return str(title) if isinstance(title, str | int | float) else ""


class _MarkdownBlocks:
    """The top-level blocks of one Markdown text."""

    def __init__(self, text: str) -> None:
        self._headings: list[tuple[int, str]] = []  # level and text of each
        self._has_lead = False  # there is text above the first heading
        self._text = text
        # Inline markup takes markdown-it most of its time, and only headings need it.
        self._inline = MarkdownIt("commonmark")
        self._structure = MarkdownIt("commonmark").enable("table")
        self._structure.core.ruler.disable("inline")
        self._line_starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        self._path = HeadingPath()

    @property
    def title(self) -> str:
        """The first heading of level 1, otherwise the first heading if it is above all others and any text.

        The empty string before `blocks` was read.
        """
        if title := next((text for level, text in self._headings if level == 1), ""):
            return title
        (top, title), *others = self._headings or [(1, "")]
        return title if not self._has_lead and all(level > top for level, _ in others) else ""

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in order. Lines without a token in markdown-it (link definitions) become paragraphs."""
        next_line = 0
        tokens = self._structure.parse(self._text)
        for index, token in enumerate(tokens):
            if token.level == 0 and token.map and token.nesting >= 0:
                first, last = token.map
                yield from self._block(next_line, first, "paragraph")
                yield from (
                    self._heading(tokens, index)
                    if token.type == "heading_open"
                    else self._block(first, last, _KINDS.get(token.type, "paragraph"))
                )
                next_line = last
        yield from self._block(next_line, len(self._line_starts) - 1, "paragraph")

    def _heading(self, tokens: Sequence[Token], index: int) -> Iterator[Block]:
        level = int(tokens[index].tag[1:])
        text = self._plain(tokens[index + 1].content)
        first, last = tokens[index].map or (0, 0)
        for block in self._block(first, last, "heading"):
            yield Block(start=block.start, end=block.end, kind="heading", headings=self._path.above(level))
        if 0 < len(text) <= MAX_HEADING:
            self._path.enter(level, text)
            self._headings.append((level, text))

    def _block(self, first: int, last: int, kind: str) -> Iterator[Block]:
        """Yield the block of lines [first, last) without surrounding white space; nothing if it is empty."""
        start = self._line_starts[first]
        end = min(self._line_starts[last], len(self._text))
        lines = self._text[start:end]
        if lines.strip():
            self._has_lead = self._has_lead or (not self._headings and kind not in ("heading", "code"))
            text_start = start + len(lines) - len(lines.lstrip())
            yield Block(
                start=text_start,
                end=start + len(lines.rstrip()),
                kind=kind,
                headings=self._path.above(),
                header=lines.strip().partition("\n")[0] if kind == "table" else "",
            )

    def _plain(self, markup: str) -> str:
        """Return the text of a heading on one line, without its markup."""
        if len(markup) > _MAX_HEADING_MARKUP:
            return markup
        (inline,) = self._inline.parseInline(markup)
        words = (" " if token.type == "softbreak" else token.content for token in inline.children or ())
        return " ".join("".join(words).split())


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The metadata at the start of a text, and the position where the body begins."""

    body_start: int = 0
    metadata: Metadata = field(default_factory=dict)


def split_front_matter(text: str, name: str) -> FrontMatter:
    """Return the front matter of `text` and the start of its body: no metadata and 0 if there is no front matter.

    Raises InvalidDocument, with the line and the problem, if the text begins like front matter but is not valid YAML.
    `name` is the name of the document for this message.
    """
    opening = _FRONT_MATTER_START.match(text)
    closing = _FRONT_MATTER_END.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return FrontMatter()
    if closing.start() - opening.end() > _MAX_FRONT_MATTER:
        raise InvalidDocument(
            f"The front matter of {name} is longer than {_MAX_FRONT_MATTER:,} characters.", remedy=_REMEDY
        )
    return FrontMatter(closing.end(), _parse_yaml(text[opening.end() : closing.start()], name))


def _parse_yaml(text: str, name: str) -> Metadata:
    try:
        _refuse_yaml_bombs(text, name)
        values = yaml.safe_load(text)
        if values is None:
            return {}
        if not isinstance(values, Mapping):
            raise InvalidDocument(f"The front matter of {name} is not a list of `key: value` lines.", remedy=_REMEDY)
        return flatten_metadata(values)
    except yaml.YAMLError as error:
        raise InvalidDocument(
            f"The front matter of {name} is not valid YAML{_error_position(error)}.", remedy=_REMEDY
        ) from error
    except (
        ValueError,
        TypeError,
        OverflowError,
    ) as error:  # for example the date 2024-13-45, which the YAML library accepts
        raise InvalidDocument(f"The front matter of {name} has an unusable value: {error}.", remedy=_REMEDY) from error


def _refuse_yaml_bombs(text: str, name: str) -> None:
    """Raise InvalidDocument for deep nesting, and for aliases, with which a few lines can expand to gigabytes."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_YAML_DEPTH:
            raise InvalidDocument(f"The front matter of {name} nests more than {_MAX_YAML_DEPTH} deep.", remedy=_REMEDY)
        if isinstance(event, yaml.AliasEvent):
            raise InvalidDocument(
                f"The front matter of {name} uses the YAML alias *{event.anchor}.", remedy="Write the value out."
            )


def _error_position(error: yaml.YAMLError) -> str:
    """Return the line (in the file: the dashes are line 1) and the problem, if the error states them."""
    mark = getattr(error, "problem_mark", None)
    line = f", line {mark.line + 2}" if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None)
    return f"{line}: {problem}" if problem else line
