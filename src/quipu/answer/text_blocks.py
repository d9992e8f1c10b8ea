"""Text blocks: the paragraphs, headings, list items, table rows and pieces of code of a passage, by its lines.

The index stores the text of a chunk, not its blocks, so they are recovered here: by Markdown and reStructuredText
markup, by indentation, and for other formats by blank lines. Rules, diagrams, badges and templates are noise.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache, partial
from itertools import takewhile

from quipu.text.questions import is_licence
from quipu.text.sentences import ASKED, MAX_QUESTION_LINES, lines_to_answer

MAX_ROWS_OF_SECTION = 30  # of a table, below the row that divides it
MAX_HEADING_CHARS = 80  # of a line that is a heading only by standing alone
MAX_TERM_CHARS = 60  # of a line whose explanation is indented below it
MAX_NUMBERED_HEADING_CHARS = 250  # of a line that begins with the number of a section
MIN_TEXT_SHARE = 0.25  # of a block with tags: with less it is a badge, a picture or a frame
MIN_CONTENTS_LINES = 3
MIN_LETTER_SHARE = 0.45  # of a block that is not code: a text has about 0.8, a drawing 0.1


class BlockKind(StrEnum):
    """What a block is. An ITEM is one item of a list, a ROW one row of a table.

    A LICENCE is quoted only for a question about one, NOISE never.
    """

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    ITEM = "item"
    ROW = "row"
    CODE = "code"
    LICENCE = "licence"
    NOISE = "noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock:
    """Characters [start, end) of a passage's text.

    `heading` is the index of the heading above, `lead` that of the block that introduces this one: the sentence before
    a list or code, the header of a table, the less indented block above. Both are -1 where there is none.
    """

    start: int
    end: int
    kind: BlockKind
    indent: int = 0
    heading: int = -1
    lead: int = -1


@dataclass(frozen=True, slots=True)
class _TextLine:
    start: int
    end: int  # without the line break
    text: str

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())


FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*([\w-]*)")
_CODE_MARK = re.compile(r"[=;{}()<>\[\]]")
_SENTENCE = re.compile(r"^[^\W\d_a-zа-яё][^\n{}()\[\];=<>$\\]{40,}[.!?:。！？：]$", re.MULTILINE)  # in no code
_HASH_HEADING = re.compile(r"\s{0,3}#{1,6}\s+\S|={1,5} \S.* ={1,5}$")
_RULE = re.compile(r"\s*([=\-~^\"'`#*+_.:])\1{2,}\s*$")
_ITEM = re.compile(r"\s*(?:[-*+•‣◦▪●]\s+|\(?(?:\d{1,3}|[a-zа-я])[.)）、]\s*(?=\D))")
_ROW = re.compile(r"\s*\|.*\||[^|]*\S \| \S")
_PIPED = re.compile(r"\{\{[^{}\n]*\|[^{}\n]*\}\}|`[^`\n]*\|[^`\n]*`")
_ROW_RULE = re.compile(r"\s*[|+:=\-\s]+$")
_COMMAND = re.compile(r"\s*(?:\$ |>>> |#!|sudo |import |from \S+ import |def |class |git |pip |apt )")
_SYMBOLS = re.compile(r"[{}()\[\];=<>$\\/&#\"'_]")
_TERMINAL = re.compile(r"[.!?。！？:：;；,，…]['\"»”)\]]*$")
_QUESTION = re.compile(r"[^\W\d_a-zа-яё][^?？]{9,}[?？]")  # as a heading; in a story, quotation marks come first
_VALUE = re.compile(r"[:：]\s*[`'\"“«\d]")  # "Default: `None`" stands alone, but belongs to what is above it
_DRAWING = re.compile("[─━│┃┌┐└┘├┤┬┴┼╭╮╯╰═║█▌▐░▒▓]{1}|[+|] *-{3,} *[+|]|-{2,}>|<-{2,}")
_LINKS = re.compile(r"!?\[[^\]\n]*\]\([^)\n]*\)|\[!\[.*|https?://\S+")
_TARGET = re.compile(r"\]\([^)\n]*\)|https?://\S+")  # of a link: the address, not the words that lead there
_LINK_ITEM = re.compile(r"\s*\S+\s+\[[^\]!]*[^\W\d_]{2}[^\]]*\]\([^)\n]*\)")
_TAG = re.compile(
    r"</?(?:a|br|col|div|em|h[1-6]|hr|img|li|ol|p|picture|source|span|strong|table|t[dhr]|tbody|thead|ul)\b[^<>]*(?:>|\Z)",
    re.IGNORECASE,
)
_CONTENTS = re.compile(r"^\W*\d+(?:\.\d+)+\.?\s+\S|(?:\.{4,}|(?:\. ){4,})\s*\d+(?!\S)", re.MULTILINE)
_SECTION_NUMBER = re.compile(r"\d+(?:\.\d+)+\.?\s+[^\W\d_]")
_STARTS_OTHER = (_ITEM, FENCE, _HASH_HEADING, ASKED)  # a paragraph ends before a line that begins so
_DIAGRAM_LANGUAGES = frozenset(("mermaid", "plantuml", "dot", "graphviz"))
_TEMPLATE = re.compile(
    r"\s*(?:\{%|\{\{|<!--|\[[^\]\n^][^\]\n]*\]:[ \t]*\S+(?:[ \t]+[\"'(][^\n]*)?(?:\n|\Z)"
    r"|:\w+:(?:\s|$)|---\s*$|\.\. (?:_|toctree|contents|image|figure|include|raw|currentmodule|meta"
    r"|code-block|sourcecode|version\w+|deprecated))"
)


@lru_cache(maxsize=512)  # the same passages answer many questions
def read_blocks(text: str) -> tuple[TextBlock, ...]:
    """Return the blocks of `text` in order, each with its heading and what introduces it."""
    raw_blocks = list(_raw_blocks(text))
    blocks = list(_with_announced_links(text, raw_blocks, [_classified(text, block) for block in raw_blocks]))
    if not any(block.kind is BlockKind.HEADING for block in blocks):
        blocks = [_as_heading(text, blocks, place) for place in range(len(blocks))]
    return tuple(_linked(text, blocks))


def ends_sentence(text: str) -> bool:
    """Return whether a text ends with a mark that closes a sentence or a part of it."""
    return _TERMINAL.search(text) is not None


def block_below(blocks: Sequence[TextBlock], below: int, chosen: int) -> int:
    """Return the index of the block that may follow in the quote, 0 for none: a heading begins another subject."""
    following = below + 1
    if following == len(blocks) or blocks[following].kind is BlockKind.LICENCE:
        return 0
    is_part_of_heading = blocks[chosen].kind is BlockKind.HEADING and following == chosen + 1
    return 0 if blocks[following].kind is BlockKind.HEADING and not is_part_of_heading else following


def is_table_rule(line: str) -> bool:
    """Return whether a line is the rule below the header of a table in Markdown."""
    return "-" in line and _ROW_RULE.fullmatch(line) is not None


def _lines(text: str) -> list[_TextLine]:
    lines: list[_TextLine] = []
    start = 0
    for part in re.split(r"[\n\f]", text):
        lines.append(_TextLine(start, start + len(part.rstrip()), part.rstrip()))
        start += len(part) + 1
    return lines


def _raw_blocks(text: str) -> Iterator[TextBlock]:
    """Yield the blocks as the lines show them; whether a paragraph is code or noise is decided later."""
    lines = _lines(text)
    place = _n_lines_of_cut_code(lines)
    if place:
        yield TextBlock(start=0, end=lines[place - 1].end, kind=BlockKind.CODE)
    while place < len(lines):
        line = lines[place]
        n_lines, kind = _block_at(lines, place) if line.text else (1, None)
        if kind is not None:
            last = lines[place + n_lines - 1]
            is_cut = place == 0 and n_lines > 1 and kind is BlockKind.PARAGRAPH  # its own indentation is in no chunk
            indent = lines[1].indent if is_cut else line.indent
            yield TextBlock(start=line.start + line.indent, end=last.end, kind=kind, indent=indent)
        place += n_lines


def _block_at(lines: list[_TextLine], place: int) -> tuple[int, BlockKind]:
    """Return how many lines the block at a line has, and its kind."""
    line = lines[place]
    if fence := FENCE.match(line.text):
        n_lines = _n_fenced(lines, place, fence[1])
        if not fence[2] and _closes_code(lines[place + 1 : place + n_lines]):
            return 1, BlockKind.NOISE
        return n_lines, BlockKind.NOISE if fence[2].lower() in _DIAGRAM_LANGUAGES else BlockKind.CODE
    if _HASH_HEADING.match(line.text):
        return 1, BlockKind.HEADING
    if n_lines := _n_lines_of_question(lines, place):
        return n_lines, BlockKind.HEADING
    following = lines[place + 1].text if place + 1 < len(lines) else ""
    if _RULE.fullmatch(line.text):
        is_overline = place + 2 < len(lines) and following and lines[place + 2].text.strip() == line.text.strip()
        return (3, BlockKind.HEADING) if is_overline else (1, BlockKind.NOISE)
    if _RULE.fullmatch(following) and len(following.strip()) >= len(line.text.strip()) / 2 and not _is_row(line.text):
        return 2, BlockKind.HEADING
    if _is_row(line.text):
        return 1, BlockKind.NOISE if _ROW_RULE.fullmatch(line.text) else BlockKind.ROW
    return _n_lines_of_text(lines, place), BlockKind.ITEM if _ITEM.match(line.text) else BlockKind.PARAGRAPH


def _n_lines_of_cut_code(lines: list[_TextLine]) -> int:
    """Return how many lines stand above the fence of code that begins in an earlier chunk; 0 if none does."""
    place = next((place for place, line in enumerate(lines) if line.text.lstrip().startswith("```")), 0)
    fence = FENCE.fullmatch(lines[place].text)
    above = "\n".join(line.text for line in lines[:place])
    if fence is None or fence[2] or _SENTENCE.search(above) or not _CODE_MARK.search(above):
        return 0
    return place if _closes_code(lines[place + 1 : place + _n_fenced(lines, place, fence[1])]) else 0


def _closes_code(below: list[_TextLine]) -> bool:
    """Return whether a fence without a language ends code of an earlier chunk, by the lines to the next such fence."""
    return not below or not below[0].text or any(_opens_code(line.text) for line in below)


def _n_lines_of_question(lines: list[_TextLine], place: int) -> int:
    """Return how many lines the question of a record has ("Q: …", then "A: …"), 0 where no answer follows it."""
    if not ASKED.match(lines[place].text):
        return 0
    n_lines = lines_to_answer([line.text for line in lines[place + 1 : place + 1 + MAX_QUESTION_LINES]])
    return sum(bool(line.text) for line in lines[place : place + n_lines])


def _is_row(line: str) -> bool:
    """Return whether a line is a row of a table: it has cells, not only a pipe inside code or a template."""
    return "|" in line and _ROW.match(_PIPED.sub("", line)) is not None


def _opens_code(line: str) -> bool:
    """Return whether a line opens fenced code and names its language."""
    fence = FENCE.fullmatch(line.rstrip())
    return fence is not None and bool(fence[2])


def _n_fenced(lines: list[_TextLine], place: int, fence: str) -> int:
    for end in range(place + 1, len(lines)):
        if lines[end].text.strip().startswith(fence) and not lines[end].text.strip(" `~"):
            return end + 1 - place
    return len(lines) - place


def _n_lines_of_text(lines: list[_TextLine], place: int) -> int:
    """Return how many lines a paragraph or an item has.

    It ends at a blank line, before an item, a table, a fence or a heading, and where the indentation of a paragraph of
    one line grows: that line is a term, and its explanation follows.
    """
    first = lines[place]
    is_item = _ITEM.match(first.text) is not None
    for end in range(place + 1, len(lines)):
        line = lines[end]
        is_wrapped = place == 0 and len(first.text) > MAX_TERM_CHARS  # the passage begins in the middle of a paragraph
        is_term = end == place + 1 and not is_item and not is_wrapped and line.indent >= first.indent + 2
        starts_other = _is_row(line.text) or any(pattern.match(line.text) for pattern in _STARTS_OTHER)
        if not line.text or starts_other or is_term or _RULE.fullmatch(line.text) or line.indent + 2 <= first.indent:
            return end - place
    return len(lines) - place


def _classified(text: str, block: TextBlock) -> TextBlock:
    """Return a block whose kind tells code and noise from text."""
    content = text[block.start : block.end]
    if block.kind is BlockKind.PARAGRAPH and _is_numbered_heading(text, block):
        return replace(block, kind=BlockKind.HEADING)
    if block.kind is BlockKind.PARAGRAPH and _TEMPLATE.match(content):
        return replace(block, kind=BlockKind.NOISE)
    if block.kind is not BlockKind.HEADING and is_licence(content):
        return replace(block, kind=BlockKind.LICENCE)
    if block.kind in (BlockKind.PARAGRAPH, BlockKind.ITEM):
        bare = (
            _LINKS.sub("", _TAG.sub("", content)) if "<" in content or "](" in content or "://" in content else content
        )
        letters = sum(map(str.isalpha, bare))
        n_visible = len("".join(_TARGET.sub("", content).split()))
        if _DRAWING.search(content) or _is_markup(content) or _is_contents(content):
            return replace(block, kind=BlockKind.NOISE)
        if block.kind is BlockKind.PARAGRAPH and _is_code(content, block.indent):
            return replace(block, kind=BlockKind.CODE)
        if letters < 3 or (letters < MIN_LETTER_SHARE * n_visible and not any(c.isdigit() for c in content)):
            return replace(block, kind=BlockKind.NOISE)
    return block


def _with_announced_links(text: str, raw: Sequence[TextBlock], blocks: Sequence[TextBlock]) -> Iterator[TextBlock]:
    """Yield the blocks; items that are hardly more than links are no noise in a list that a line announces.

    Without such a line, a list of links is a menu.
    """
    is_announced = False
    for before, block in zip(raw, blocks, strict=True):
        content = text[block.start : block.end]
        is_link = before.kind is BlockKind.ITEM and block.kind is BlockKind.NOISE and _LINK_ITEM.match(content)
        yield before if is_announced and is_link else block
        is_paragraph = block.kind is BlockKind.PARAGRAPH
        is_announced = content.endswith((":", "：")) if is_paragraph else is_announced and before.kind is BlockKind.ITEM


def _is_numbered_heading(text: str, block: TextBlock) -> bool:
    """Return whether a block is one line alone that begins with the number of a section, as "2.6. Can I …?"."""
    following = text[block.end : block.end + 3].replace("\r", "")
    line = text[block.start : block.end]
    return (
        _SECTION_NUMBER.match(line) is not None
        and len(line) <= MAX_NUMBERED_HEADING_CHARS
        and "\n" not in line
        and not line.endswith((".", ":", ";", ",", "。", "：", "；"))
        and following.count("\n") > 1
    )


def _is_markup(content: str) -> bool:
    """Return whether a block is hardly more than HTML tags."""
    if "<" not in content:
        return False
    bare = _TAG.sub("", content)
    return len(bare) < len(content) and sum(map(str.isalpha, bare)) < MIN_TEXT_SHARE * len(content)


def _is_contents(content: str) -> bool:
    """Return whether a block is a piece of a table of contents: numbers of sections, or dots before those of pages."""
    n_lines = len(_CONTENTS.findall(content))
    return n_lines >= MIN_CONTENTS_LINES or n_lines == content.count("\n") + 1 > 1


def _is_code(content: str, indent: int) -> bool:
    if _COMMAND.match(content):
        return True
    return indent >= 2 and len(_SYMBOLS.findall(content)) > 0.08 * len(content)


def _as_heading(text: str, blocks: list[TextBlock], place: int) -> TextBlock:
    """Return a block as a heading if it is a short line between blank lines, a question or without an end mark."""
    block = blocks[place]
    line = text[block.start : block.end]
    is_bare = (
        block.kind is BlockKind.PARAGRAPH
        and block.indent == 0
        and len(line) <= MAX_HEADING_CHARS
        and "\n" not in line
        and not (place and text[: blocks[place - 1].end].endswith((":", "：")))  # what a line announces
        and (not _TERMINAL.search(line) or _QUESTION.fullmatch(line) is not None)
        and not _VALUE.search(line)
        and sum(c.isdigit() for c in line) * 4 < len(line)
        and place + 1 < len(blocks)
        and text.count("\n", block.end, blocks[place + 1].start) > 1
    )
    return replace(block, kind=BlockKind.HEADING) if is_bare else block


def _linked(text: str, blocks: list[TextBlock]) -> Iterator[TextBlock]:
    """Yield the blocks with the index of their heading and of the block that introduces them."""
    above: list[tuple[str, int]] = []  # the headings that the next block is under, by their marks, outermost first
    outer: list[int] = []  # blocks that less indented blocks below may close
    first_by_kind = {BlockKind.ITEM: 0, BlockKind.ROW: 0}  # where a run of the kind and of noise begins
    for place, block in enumerate(blocks):
        while outer and blocks[outer[-1]].indent >= block.indent:
            outer.pop()
        first = first_by_kind.get(block.kind, place)
        mark = ""
        if block.kind is BlockKind.HEADING:
            mark = _level_mark(text[block.start : block.end])
            above = list(takewhile(partial(_is_outer, mark), above))
        heading = above[-1][1] if above else -1
        yield replace(block, heading=heading, lead=_lead_of(text, blocks, place, first, outer[-1] if outer else -1))
        for kind in first_by_kind:
            if block.kind not in (kind, BlockKind.NOISE):
                first_by_kind[kind] = place + 1
        if block.kind is BlockKind.HEADING:
            above.append((mark, place))
            outer.clear()
        elif block.kind is not BlockKind.NOISE:
            outer.append(place)


def _level_mark(heading: str) -> str:
    """Return what shows the level of a heading: "##" before it, or the rule below it; "" where nothing does."""
    if _HASH_HEADING.match(heading):
        return heading.split(maxsplit=1)[0]
    *above, last = heading.split("\n")
    return f"{len(above)} {last.strip()[0]}" if above and _RULE.fullmatch(last) else ""


def _is_outer(mark: str, heading: tuple[str, int]) -> bool:
    """Return whether a heading stays above when one with `mark` begins.

    Fewer "#" are a higher level. Rules have no order of their own: the one that was used first is the higher level.
    """
    outer = heading[0]
    is_counted = outer[:1] in ("#", "=") and outer[0] == mark[:1]
    return len(outer) < len(mark) if is_counted else outer != mark


def _is_section(row: str) -> bool:
    """Return whether only the first cell of a table row is filled: it is the title of the rows below."""
    cells = row.strip().strip("|").split("|")
    return len(cells) > 1 and bool(cells[0].strip()) and not any(cell.strip() for cell in cells[1:])


def _lead_of(text: str, blocks: list[TextBlock], place: int, first: int, outer: int) -> int:
    """Return the index of the block that introduces the one at `place`, whose run begins at `first`; -1 if none."""
    kind = blocks[place].kind
    if kind is BlockKind.HEADING:
        return -1
    while first < place and blocks[first].kind is BlockKind.NOISE:
        first += 1
    if kind is BlockKind.ROW:
        sections = (
            row
            for row in range(place - 1, max(first, place - MAX_ROWS_OF_SECTION), -1)
            if _is_section(text[blocks[row].start : blocks[row].end])
        )
        return next(sections, first if first < place else -1)
    if outer >= 0:
        return outer
    while first and blocks[first - 1].kind is BlockKind.NOISE:
        first -= 1
    before = blocks[first - 1] if first else None
    introduces = before is not None and before.kind in (BlockKind.PARAGRAPH, BlockKind.ITEM)
    if introduces and before is not None:
        return first - 1 if kind is BlockKind.CODE or text[before.start : before.end].endswith((":", "：")) else -1
    return -1
