"""AsciiDoc: sections, lists, terms, tables, code and other blocks; macros and links are reduced to their text.

Source: the AsciiDoc language as Asciidoctor documents it, and the underlined titles of older files. Nothing is included
or executed, every branch of a condition is read, and an error in the markup is no error.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from textwrap import dedent

from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse.builder import DocumentBuilder, add_table, display_width, join_lines
from quipu.parse.decode import decode, display_name

_MAX_DEPTH = 20  # of blocks inside blocks; deeper ones are read as code
_MAX_VALUE = 200  # characters of an attribute that are put in its place
_MAX_VALUES = 1_000  # places in one paragraph
_MAX_COLUMNS = 100
_SECTION = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?$")
_UNDERLINE = re.compile(r"([=~^+-])\1+")
_UNDERLINES = "=-~^+"  # by level
_ATTRIBUTE = re.compile(r":(!?[\w-]{1,60}!?):(?:\s+(.*))?$")
_AUTHOR = re.compile(r"(\w[^<>;:|\[\]]{1,100}?)(?:\s+<[^<>\s]{1,100}>)?(?:;|$)")
_LEFT_OUT = re.compile(r"//(?!/)|(?:include|ifn?def|ifeval|endif|toc|audio|video)::[^\[]*\[.*\]$|'{3,}$|<{3,}$|\+$")
_PICTURE = re.compile(r"image::[^\s\[]{1,500}\[([^\],]{0,300})[^\]]{0,300}\]$")
_STYLE = re.compile(r"\[((?:(?:[^\W\d]|[.,#\"'%{])[^\[\]]*)?|\[[^\[\]]*\])\]$")
_CAPTION = re.compile(r"\.(?![\s.])(.{1,200})$")
_FENCE = re.compile(r"-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|[|,]={3,}|```\w{0,20}")
_CODE = re.compile(r"(?:source|listing|literal|verse|,)(?![\w-])")  # "[,python]" is short for "[source,python]"
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION)(?:: +|$)")
_ITEM = re.compile(r"\s*(\*{1,6}|-|\.{1,6}|\d{1,4}\.|[a-z]\.|<(?:\d{1,3}|\.)>)\s+(\S.*)$")
_TERM = re.compile(r"\s*(\S.{0,300}?)(?::{2,4}|;;)(?:\s+(\S.*))?$")
_CELL = re.compile(r"(?:(?<!\S)(?:(\d{1,2})(?:\.\d{1,2})?([+*])|\.\d{1,2}\+)?[<^>.]{0,4}[adehlmsv]?)?(?<!\\)\|")
_COLUMNS = re.compile(r"cols=\"?([^\"\]]{1,300})")
_REPEATED = re.compile(r"\s*(\d{1,2})\*")
_ATTRIBUTE_REFERENCE = re.compile(r"\{([\w-]{1,60})\}")
_INLINE = re.compile(
    r"`[^`\n]{1,500}`"
    r"|(?:link:)?\b(?P<url>(?:https?|ftp)://[^\s\[\]<>]{1,500})\[(?P<label>[^\]]{0,500})\]"
    r"|<<(?P<anchor>[^<>,]{1,200})(?:,(?P<reference>[^<>]{1,300}))?>>"
    r"|\\?(?<![\w:])(?P<macro>xref|mailto|kbd|btn|menu|footnote|image|icon|pass|stem|latexmath|asciimath|link[a-z]{0,20})"
    r":(?P<target>[^\s\[\]:][^\s\[\]]{0,300})?\[(?P<text>[^\]]{0,500})\]"
    r"|\(\(\([^()]{1,200}\)\)\)|\(\((?P<indexed>[^()]{1,200})\)\)"
    r"|\[\[[^\]\n]{1,200}\]\]"
    r"|(?:\[[.#][^\]\n]{1,100}\])?(?<!\w)\#(?P<marked>(?!\s)[^#\n]{1,300})(?<!\s)\#(?!\w)"
    r"|(?<![\w*])\*{1,2}(?P<strong>[^*\s][^*\n]{0,300})(?<!\s)\*{1,2}(?![\w*])"
    r"|(?<![\w_])_{1,2}(?P<emphasis>[^_\s][^_\n]{0,300})(?<!\s)_{1,2}(?![\w_])"
    r"|(?<![\w+])\+(?P<plain>[^+\s][^+\n]{0,300})(?<!\s)\+(?![\w+])"
)
_CHARACTER_BY_NAME = {
    "nbsp": " ", "sp": " ", "empty": "", "zwsp": "", "amp": "&", "lt": "<", "gt": ">", "plus": "+", "asterisk": "*",
    "caret": "^", "tilde": "~", "backtick": "`", "apos": "'", "quot": '"', "startsb": "[", "endsb": "]", "vbar": "|",
    "backslash": "\\", "two-colons": "::", "two-semicolons": ";;", "litdd": "--", "cpp": "C++",
}  # fmt: skip
_KEY_BY_ATTRIBUTE = {"author": "author", "revdate": "date", "revnumber": "version", "keywords": "keywords"}


class AsciiDocParser:
    """Reads AsciiDoc as it is written for Asciidoctor and for asciidoc.py."""

    media_types = frozenset({"text/asciidoc", "text/x-asciidoc"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the blocks; the title is that of the only section of the highest level.

        Raises InvalidDocument if the bytes are not text.
        """
        lines = [line.expandtabs().rstrip() for line in decode(source).split("\n")]
        return _AsciiDocReader(display_name(source)).read(lines)


PARSER = AsciiDocParser()


class _AsciiDocReader:
    """Reads lines into a builder. A rule reads one element at a line and returns the line after."""

    def __init__(self, name: str) -> None:
        self._builder = DocumentBuilder(name)
        self._titles: list[tuple[int, str]] = []  # level and text of each section
        self._metadata: dict[str, MetadataValue] = {}
        self._values = dict(_CHARACTER_BY_NAME)  # of attributes
        self._lead = ""  # text to put before the next paragraph, such as the term that it explains
        self._style = ""  # of the next block, such as "source,python"
        self._markers: list[tuple[str, int]] = []  # of the open lists, outermost first, with the number of their items
        self._is_attached = False  # whether the next block belongs to the list item before it
        self._rules: tuple[Callable[[Sequence[str], int], int], ...] = (
            self._directive, self._section, self._list, self._terms, self._paragraph
        )  # fmt: skip

    def read(self, lines: Sequence[str]) -> ParsedDocument:
        """Return the document."""
        self._read(lines, 0)
        top = min(self._titles, default=(0, ""))[0]
        titles = [text for level, text in self._titles if level == top]
        return self._builder.build(titles[0] if len(titles) == 1 else "", self._metadata)

    def _read(self, lines: Sequence[str], depth: int) -> None:
        last_by_fence = {line: position for position, line in enumerate(lines) if _FENCE.fullmatch(line)}
        position = 0
        while position < len(lines):
            line = lines[position]
            if not _FENCE.fullmatch(line):
                position = next(end for rule in self._rules if (end := rule(lines, position)) > position)
            elif last_by_fence.get(closing := "```" if line.startswith("```") else line, 0) > position:
                end = lines.index(closing, position + 1)
                self._block(line, lines[position + 1 : end], depth)
                position = end + 1
            else:
                position += 1
        self._end_lead()

    def _block(self, fence: str, content: Sequence[str], depth: int) -> None:
        """Read the lines between two fences."""
        style, self._style = self._style, ""
        if fence.startswith("/") or (fence.startswith("+") and "math" not in style and "stem" not in style):
            return  # a comment, or what goes as it is into HTML
        if fence.startswith("|"):
            self._table(content, style)
        elif fence.startswith((",", "-" * 3, ".", "`", "+")) or _CODE.match(style) or depth == _MAX_DEPTH:
            self._add_code(content, fence.strip("`,") if fence[0] == "`" else _language(style))
        else:
            self._admonish(style)
            self._read(content, depth + 1)

    def _directive(self, lines: Sequence[str], start: int) -> int:
        """Read a line that is not text: blank, a comment, an attribute, a style, a caption, a picture."""
        line = lines[start]
        if attribute := _ATTRIBUTE.match(line):
            self._set(attribute[1].lower(), self._inline(attribute[2] or ""))
        elif picture := _PICTURE.match(line):
            self._end_lead()
            self._builder.add(self._inline(picture[1].strip('"')))
        elif style := _STYLE.match(line):
            self._style = self._style or style[1].strip("[")
        elif caption := _CAPTION.match(line):
            self._end_lead()
            self._lead = self._inline(caption[1]) + "\n"
        elif line and not _LEFT_OUT.match(line):
            return start
        self._is_attached = line == "+" or (self._is_attached and line != "")
        return start + 1

    def _set(self, name: str, value: str) -> None:
        if len(value) <= _MAX_VALUE:
            self._values[name] = value
        if name in _KEY_BY_ATTRIBUTE and value:
            self._metadata[_KEY_BY_ATTRIBUTE[name]] = value

    def _section(self, lines: Sequence[str], start: int) -> int:
        """Read a title after "==" or above a line; below the title of the document stand its author and version."""
        line, below = [*lines[start : start + 2], ""][:2]
        section = _SECTION.match(line)
        if section is None and not _is_underlined(line, below):
            return start
        level = len(section[1]) if section else _UNDERLINES.index(below[0]) + 1
        text = self._inline(section[2] if section else line).replace("`", "")
        is_first = not self._titles
        self._titles.append((level, text))
        self._end_lead()
        self._style, self._markers = "", []
        self._builder.add_heading(text, level)
        end = start + (1 if section else 2)
        if level == 1 and is_first:
            if end < len(lines) and not _ATTRIBUTE.match(lines[end]) and (author := _AUTHOR.match(lines[end])):
                self._metadata["author"] = author[1]
            while end < len(lines) and lines[end] and not _ATTRIBUTE.match(lines[end]):
                end += 1
        return end

    def _list(self, lines: Sequence[str], start: int) -> int:
        """Read the items of a list up to a block that is attached to one of them, or to its end."""
        entries = []
        position = start
        while position < len(lines) and (entry := _ITEM.match(lines[position])):
            end = _text_end(lines, position + 1)
            entries.append(self._entry(entry[1], self._text([entry[2], *lines[position + 1 : end]])))
            position = end
            if (after := _after_blank(lines, end)) < len(lines) and _ITEM.match(lines[after]):
                position = after
        if entries:
            self._end_lead()
            self._style, self._is_attached = "", False
            self._builder.add("\n".join(entries), "list")
        return position

    def _entry(self, marker: str, text: str) -> str:
        kind = marker if marker[0] in "*-." else marker[-1]
        kinds = [open_kind for open_kind, _ in self._markers]
        depth = kinds.index(kind) if kind in kinds else len(kinds)
        number = self._markers[depth][1] + 1 if depth < len(kinds) else 1
        self._markers[depth:] = [(kind, number)]
        if marker[0] in "*-.":
            marker = f"{number}." if marker[0] == "." else "-"
        return f"{'  ' * depth}{marker.replace('<.>', f'<{number}>')} {text}"

    def _terms(self, lines: Sequence[str], start: int) -> int:
        """Read terms and the first paragraph that explains them."""
        terms = []
        end = start
        text = ""
        while not text and end < len(lines) and (term := _TERM.match(lines[end])) and not _ITEM.match(lines[end]):
            terms.append(self._inline(term[1]))
            text = term[2] or ""
            end = _after_blank(lines, end + 1) if not text else end + 1
        if not terms:
            return start
        self._end_lead()
        self._style = ""
        after = _text_end(lines, end)
        if text or after > end:
            self._builder.add(f"{', '.join(terms)}\n{self._text([text, *lines[end:after]])}")
            self._end_list()
            return after
        self._lead = f"{', '.join(terms)}:\n"  # a list, code or another block explains them
        return end

    def _paragraph(self, lines: Sequence[str], start: int) -> int:
        """Read lines up to a blank one; those that are indented, or have the style of code, are code."""
        end = start + 1
        while end < len(lines) and not _is_end(lines[end]):
            end += 1
        style, self._style = self._style, ""
        if lines[start].startswith(" ") or _CODE.match(style):
            self._add_code(lines[start:end], _language(style))
            return end
        self._admonish(style)
        text = self._text(lines[start:end])
        if admonition := _ADMONITION.match(text):
            text = f"{admonition[1].capitalize()}: {text[admonition.end() :]}"
        lead, self._lead = self._lead, ""
        self._builder.add(lead + text)
        self._end_list()
        return end

    def _table(self, content: Sequence[str], style: str) -> None:
        """Read the rows of a table; the first is its header where it is marked as such, or a blank line follows it."""
        self._end_lead()
        first = next((line for line in content if line), "")
        columns = _COLUMNS.search(style)
        parts = re.split("[,;]", columns[1]) if columns else []
        n_columns = sum(int(repeated[1]) if (repeated := _REPEATED.match(part)) else 1 for part in parts)
        n_columns = min(n_columns or len([*_cells([first])]), _MAX_COLUMNS)
        cells = [self._text(cell.split("\n")) for cell in _cells(content)]
        rows = [cells[start : start + n_columns] for start in range(0, len(cells), max(n_columns, 1))]
        is_header_apart = [*content[:2], ""][1] == "" and 1 < n_columns == len([*_cells([first])]) < len(cells)
        add_table(self._builder, rows, has_header="header" in style or is_header_apart)
        self._end_list()

    def _add_code(self, lines: Sequence[str], language: str = "") -> None:
        self._end_lead()
        self._builder.add_code(dedent("\n".join(lines)).strip("\n"), language)
        self._end_list()

    def _admonish(self, style: str) -> None:
        if admonition := _ADMONITION.match(style.partition(",")[0]):
            self._lead += f"{admonition[1].capitalize()}: "

    def _end_lead(self) -> None:
        lead, self._lead = self._lead.strip(), ""
        self._builder.add(lead)

    def _end_list(self) -> None:
        if not self._is_attached:
            self._markers = []
        self._is_attached = False

    def _text(self, lines: Sequence[str]) -> str:
        """Return wrapped lines as one without markup, which includes the " +" of a line break."""
        return self._inline(join_lines(line.removesuffix(" +") for line in lines))

    def _inline(self, text: str) -> str:
        text = _ATTRIBUTE_REFERENCE.sub(
            lambda name: self._values.get(name[1].lower(), name[0]), text, count=_MAX_VALUES
        )
        return _INLINE.sub(_plain, text)


def _plain(match: re.Match[str]) -> str:
    """Return the text that inline markup stands for."""
    if match["url"]:
        label = match["label"].partition(",")[0].rstrip("^").strip('"')
        return f"{label} ({match['url']})" if label and label != match["url"] else match["url"]
    if match["anchor"]:
        return (match["reference"] or match["anchor"].lstrip("#")).strip()
    if match["macro"]:
        return _macro(match["macro"], match["target"] or "", match["text"].strip())
    if match[0].startswith(("`", "\\")):
        return match[0].removeprefix("\\")
    kinds = ("indexed", "marked", "strong", "emphasis", "plain")
    return next((match[kind] for kind in kinds if match[kind]), "")


def _macro(name: str, target: str, text: str) -> str:
    if name == "footnote":
        return f" ({text})"
    if name == "menu":
        return " > ".join([target, *re.split(r"\s*>\s*", text)] if text else [target])
    if text.isdecimal():  # a manual page, as in linkgit:git-log[1]
        return f"{target}({text})"
    return text.partition(",")[0].strip('"') if name in ("image", "icon") else text.rstrip("^") or target


def _language(style: str) -> str:
    """Return the language of a style such as "source,python"."""
    return [*map(str.strip, style.split(",")), ""][1] if _CODE.match(style) and "verse" not in style else ""


def _is_underlined(title: str, line: str) -> bool:
    """Return whether a line makes the one above it a title: it is as long, with a difference of up to two."""
    if not _UNDERLINE.fullmatch(line) or title.startswith(" ") or not re.search(r"\w", title):
        return False
    width = display_width(title)
    return width > 2 and abs(width - len(line)) <= 2


def _is_end(line: str) -> bool:
    """Return whether a line ends the paragraph before it."""
    return bool(not line or _FENCE.fullmatch(line) or _LEFT_OUT.match(line) or _STYLE.fullmatch(line))


def _text_end(lines: Sequence[str], start: int) -> int:
    """Return the end of the text of a list item whose second line is `start`."""
    for position in range(start, len(lines)):
        line = lines[position]
        if _is_end(line) or _ITEM.match(line) or _TERM.match(line) or _CAPTION.match(line) or _SECTION.match(line):
            return position
    return len(lines)


def _after_blank(lines: Sequence[str], start: int) -> int:
    return next((position for position in range(start, len(lines)) if lines[position]), len(lines))


def _cells(lines: Sequence[str]) -> Iterator[str]:
    """Yield the cells of a table's lines; one that covers several columns is followed by empty ones."""
    text = "\n".join(lines)
    marks = [*_CELL.finditer(text)]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        cell = text[mark.end() : following.start() if following else len(text)].strip().replace("\\|", "|")
        n_more = int(mark[1] or 1) - 1
        yield from [cell, *[cell if mark[2] == "*" else ""] * n_more]
