"""Plain text: paragraphs separated by blank lines, under the headings that stand out by their form.

Many projects keep reStructuredText, AsciiDoc or Markdown in such files.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from quipu.model.document import Block, ParsedDocument, SourceDocument
from quipu.parse.asciidoc import AsciiDocParser
from quipu.parse.builder import MAX_HEADING, HeadingPath, check_block_count, join_lines
from quipu.parse.decode import decode, display_name
from quipu.parse.markdown import MarkdownParser
from quipu.parse.rst import RstParser
from quipu.text.references import NUMBERED_SECTION

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n)+")
_MAX_TITLE = 100
_RST_BLOCK = r"^\.\. +(?:[\w+.-]+:)?[\w+.-]+::(?:[ \t]|$)|^\.\. +_[^\n:]{1,100}:"  # or the target of a link
_RST_MARKUP = rf"{_RST_BLOCK}|(?<!\w):[a-z][\w:+.-]{{0,40}}:`[^`\n]"
_ASCIIDOC_BLOCK = (
    r"^\[(?:\[[\w-]{1,60}\]|(?:source|verse|listing|quote|NOTE|TIP|WARNING|IMPORTANT|CAUTION)(?:,[^\]\n]{0,60})?)\]$"
    r"|^\|===$|^(?:include|ifn?def|endif|image)::[^\s\[]{0,200}\[|\b(?:xref|link[a-z]{0,20}):[\w#./-]{1,200}\["
)
_ASCIIDOC_MARKUP = rf"{_ASCIIDOC_BLOCK}|^\+$|^={{1,5}} \w[^=\n]{{0,100}}$"
_MARKDOWN_BLOCK = r"\[[^\]\n]{1,200}\]\(https?://[^\s()]{1,500}\)"
_MARKDOWN_MARKUP = rf"{_MARKDOWN_BLOCK}|^```|^#{{1,6}} \w"
_LANGUAGES = (
    (_RST_BLOCK, _RST_MARKUP, RstParser),
    (_ASCIIDOC_BLOCK, _ASCIIDOC_MARKUP, AsciiDocParser),
    (_MARKDOWN_BLOCK, _MARKDOWN_MARKUP, MarkdownParser),
)
_MAX_HEADING_LINES = 4
_MIN_MARKUP = 3  # pieces in a file of that language
_ADORNMENT = re.compile(r"([=~^*#+-])\1{2,}|==")
_CHAPTER_LEVEL, _QUESTION_LEVEL = 20, 40  # underlined headings are above, numbered ones between
_CHAPTER = re.compile(
    rf"(?:{NUMBERED_SECTION.pattern}|(?:chapter|part|book|appendix|stave|act|глава|часть|том|приложение)\s+[a-zа-я])"
    r"(?:[.:,—–-].*)?|第[\d零〇一二三四五六七八九十百]{1,6}[章回节節卷部篇].*|[ivxl]{1,6}\.?",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\(?((?:\d{1,3}\.){0,5}\d{1,3}|[IVXL]{1,6})(?:[.)] *|(?<=\.\d) +|(?<=\.\d\d) +)[^\W\d_a-zа-яё]")
_QUESTION_MARK = re.compile(r"^\s*(?:Q|Question|В|Вопрос|问|問)\s*(?:[:：]|\d{1,3}[:：.])\s*", re.IGNORECASE)
_CAPITAL_LINE = re.compile(r"[^\W\d_][^=_{}<>\[\]$|]{2,58}[^=_{}<>$|\s.,;:!?]")  # if no letter in it is small
_COLUMNS = re.compile(r"\S(?:  +|\t|\|)\S")  # of a table
_NO_TITLE = re.compile(r"[.,;:。，；：]$|(?: ?\.){4}")


class PlainTextParser:
    """Reads text without markup. Blank lines separate paragraphs; a short first line on its own is the title.

    Headings are underlined, numbered or in capitals, or questions above their answers. A text that is reStructuredText,
    AsciiDoc or Markdown by its markup is read as such.
    """

    media_types = frozenset({"text/plain"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text, its headings and paragraphs. Raises InvalidDocument if the bytes are not text."""
        text = decode(source)
        for block, markup, parser in _LANGUAGES:
            if _has_markup(text, block, markup):
                return parser().parse(source)
        check_block_count(2 * sum(1 for _ in _BLANK_LINES.finditer(text)), display_name(source))
        return ParsedDocument(text=text, title=_title(text), blocks=tuple(_blocks(text)))


PARSER = PlainTextParser()


def _has_markup(text: str, block: str, markup: str) -> bool:
    """Return whether a text has markup that only one language has (`block`), and several pieces of its `markup`."""
    pieces = re.finditer(markup, text, re.MULTILINE)
    return bool(re.search(block, text, re.MULTILINE)) and len([*islice(pieces, _MIN_MARKUP)]) == _MIN_MARKUP


def _blocks(text: str) -> Iterator[Block]:
    """Yield the runs of `text` between blank lines; a heading at the start of one is a block of its own."""
    path = HeadingPath()
    underlines: list[str] = []
    borders = [0, *(place for match in _BLANK_LINES.finditer(text) for place in match.span()), len(text)]
    spans = [span for span in zip(borders[::2], borders[1::2], strict=True) if text[slice(*span)].strip()]
    above = ""
    for (start, end), (below_start, below_end) in pairwise([*spans, (len(text), len(text))]):
        paragraph, below = text[start:end], text[below_start:below_end]
        lines = paragraph.split("\n", _MAX_HEADING_LINES)
        heading = _underlined_heading(lines, underlines) or _lone_heading(above, lines, below)
        n_characters = 0
        if heading:
            level, title, n_lines = heading
            n_characters = len("\n".join(lines[:n_lines]))
            yield Block(start=start, end=start + n_characters, kind="heading", headings=path.above(level))
            path.enter(level, title.rstrip(":："))
        body = paragraph[n_characters:]
        if body.strip():
            body_start = end - len(body.lstrip())
            yield Block(start=body_start, end=body_start + len(body.strip()), headings=path.above())
        above = paragraph


def _underlined_heading(lines: Sequence[str], underlines: list[str]) -> tuple[int, str, int] | None:
    """Return the level, the text and the number of lines of an underlined heading that begins a paragraph.

    `underlines` are the styles of underlined headings by level; a new one is added.
    """
    has_overline = len(lines) > 1 and _ADORNMENT.fullmatch(lines[0].strip()) is not None
    title, underline = (line.strip() for line in [*lines[has_overline:], "", ""][:2])
    if not (_is_title(title) and _ADORNMENT.fullmatch(underline)):
        return None
    style = underline[0] * (2 if has_overline else 1)
    underlines += [] if style in underlines else [style]
    return 1 + underlines.index(style), title, 3 if has_overline else 2


def _lone_heading(above: str, lines: Sequence[str], below: str) -> tuple[int, str, int] | None:
    """Return the level, the text and the number of lines of a heading that stands alone, or above indented lines.

    It is in capitals, of a chapter, numbered, or a question. `above` and `below` are the paragraphs around its own.
    """
    first = lines[0].strip()
    is_alone = len(lines) == 1 and bool(below)
    is_above_text = is_alone or (len(lines) > 1 and _indent(lines[1]) > 1)
    is_chapter = _is_title(first) and _CHAPTER.fullmatch(first) is not None
    if is_above_text and _is_title(first) and first.isupper() and _CAPITAL_LINE.fullmatch(lines[0]) and not is_chapter:
        return _CHAPTER_LEVEL + 1, first, 1
    if not below or len(lines) > _MAX_HEADING_LINES:
        return None
    if is_alone and is_chapter:
        return _CHAPTER_LEVEL, first, 1
    title = join_lines(lines)
    depth = _numbered_depth(title)
    is_numbered = len(lines) <= min(depth, 2) and len(title) <= 2 * _MAX_TITLE and not _NO_TITLE.search(title)
    if is_numbered and depth not in map(_numbered_depth, (above, below)):  # else it is an item of a list
        return _CHAPTER_LEVEL + depth, title, len(lines)
    question = _QUESTION_MARK.sub("", title[:MAX_HEADING])
    is_question = is_alone and title[-1] in "?？" and _indent(lines[0]) == 0 < _indent(below)
    if question and len(title) <= MAX_HEADING and (is_question or question != title):
        return _QUESTION_LEVEL, question, len(lines)
    return None


def _is_title(line: str) -> bool:
    return len(line) <= _MAX_TITLE and bool(re.search(r"[^\W\d_]", line)) and not _COLUMNS.search(line)


def _numbered_depth(text: str) -> int:
    """Return how many numbers a section has whose title begins `text`: 2 for "1.2 Title"; 0 for other text."""
    match = _NUMBERED.match(text.lstrip())
    return 1 + match[1].count(".") if match else 0


def _indent(text: str) -> int:
    """Return the number of columns before the text."""
    line = text.split("\n", 1)[0].expandtabs()
    return len(line) - len(line.lstrip())


def _title(text: str) -> str:
    """Return the first line if it is short, has no full stop at its end, and is underlined or alone; else ""."""
    first, second, third = [*text.lstrip().split("\n", 3), "", "", ""][:3]
    if _ADORNMENT.fullmatch(first.strip()):
        first, second = second, third
    first = first.strip()
    is_underlined = _ADORNMENT.fullmatch(second.strip()) is not None
    is_alone = is_underlined or (not second.strip() and len(text.strip()) > len(first))
    return first if is_alone and len(first) <= _MAX_TITLE and not first.endswith((".", "。")) else ""
