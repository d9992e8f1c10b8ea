"""reStructuredText: sections, lists, tables, code and directives as blocks; roles and links are reduced to their text.

Source: the reStructuredText Markup Specification of Docutils, and the directives of Sphinx. Unlike Docutils, nothing is
executed or included, an unknown directive is read as text, and an error in the markup is no error.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from textwrap import dedent

from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse.builder import DocumentBuilder, add_table, display_width, join_lines
from quipu.parse.decode import decode, display_name
from quipu.parse.rst_tables import GRID_BORDER, csv_table, grid_table, list_table, simple_table

_MAX_DEPTH = 20  # of indented blocks; deeper ones are read as code
_OBJECT_LEVEL = 50  # heading level of a described object; sections have lower ones
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+")
_EXPLICIT = re.compile(r"\.\.(?:\s|$)")
_DIRECTIVE = re.compile(r"\.\. +(?:\|[^|\n]{1,100}\| )?([A-Za-z][\w:+.-]{0,60})::(?:\s+(.*))?$")
_SUBSTITUTION = re.compile(r"\.\. +\|([^|\n]{1,100})\| (?:replace::\s*(.*)|image::.*)$")
_FOOTNOTE = re.compile(r"\.\. +(\[[^\]\n]{1,60}\])\s+(.*)$")
_FIELD = re.compile(r":((?!\s)[^:\n`]{1,80}):(?:\s+(.*))?$")
_BULLET = re.compile(r"([-*+•]|(?:\d{1,4}|[A-Za-z]|#)[.)]|\((?:\d{1,4}|[A-Za-z])\))\s+(?=\S)")
_BULLETS = "-*+•"
_INLINE = re.compile(
    r"``(?P<literal>[^`]+)``"
    r"|(?::(?P<role>[A-Za-z][\w:+.-]{0,40}):)?`(?P<text>[^`]{1,1000})`_{0,2}"
    r"|\*\*(?P<strong>[^*\s][^*]{0,500})\*\*"
    r"|(?<![\w*])\*(?P<emphasis>[^*\s][^*]{0,500})\*(?![\w*])"
    r"|\|(?P<substitution>[^|\s][^|\n]{0,60})\|_{0,2}"
    r"|(?<!\w)(?P<reference>[A-Za-z0-9][A-Za-z0-9.-]{0,60}[A-Za-z0-9])__?(?!\w)"
    r"|\\(?P<escaped>.)"
)
_LINK = re.compile(r"(.*?)\s*<([^<>]+)>$", re.DOTALL)
_PREFIX_BY_ROLE = {"pep": "PEP ", "rfc": "RFC ", "issue": "#", "pr": "#"}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IGNORED = _names(
    "toctree contents currentmodule module py:module py:currentmodule index highlight default-role role meta raw "
    "include rst-class sectnum target-notes tabularcolumns autosummary testsetup testcleanup title header footer"
)
_CODE = _names(
    "code-block sourcecode code parsed-literal prompt doctest testcode testoutput literalinclude productionlist "
    "graphviz math digraph uml ipython console"
)
_ADMONITIONS = _names("note warning tip hint important caution danger attention error seealso todo")
_PICTURES = _names("image figure")
_LEAD_BY_VERSION = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}
_OBJECTS = _names(
    "function class method classmethod staticmethod attribute data exception decorator property option envvar confval "
    "describe object macro type member var setting directive role cmdoption program-option autoclass autofunction "
    "automethod autodata autoattribute autoexception automodule"
)
_KEY_BY_FIELD = {"author": "author", "authors": "author", "date": "date", "version": "version", "keywords": "keywords"}


class RstParser:
    """Reads reStructuredText as it is used by Docutils and Sphinx."""

    media_types = frozenset({"text/x-rst", "text/prs.fallenstein.rst"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the blocks; the title is that of the only section of the highest level.

        Raises InvalidDocument if the bytes are not text.
        """
        lines = [line.expandtabs().rstrip() for line in decode(source).split("\n")]
        return _RstReader(display_name(source), lines).read()


PARSER = RstParser()


class _RstReader:
    """Reads the lines of one document into a builder. A rule reads one element at a line and returns the line after."""

    def __init__(self, name: str, lines: Sequence[str]) -> None:
        self._lines = lines
        self._builder = DocumentBuilder(name)
        self._titles: list[str] = []  # of the sections of the highest level
        self._metadata: dict[str, MetadataValue] = {}
        self._styles: list[tuple[str, bool]] = []  # of section titles by level: adornment, and whether it is above too
        self._lead = ""  # text to put before the next paragraph, such as the marker of a list item
        matches = filter(None, map(_SUBSTITUTION.match, lines))
        self._substitutions: dict[str, str] = {match[1]: match[2] or "" for match in matches}
        self._rules: tuple[Callable[[Sequence[str], int, int], int], ...] = (
            self._section, self._explicit, self._fields, self._table, self._list, self._quote,
            self._definition, self._paragraph,
        )  # fmt: skip

    def read(self) -> ParsedDocument:
        """Return the document."""
        self._read(self._lines, 0)
        title = self._titles[0] if len(self._titles) == 1 else ""  # several are the parts of an untitled document
        return self._builder.build(title, self._metadata)

    def _read(self, lines: Sequence[str], depth: int) -> None:
        if depth > _MAX_DEPTH:
            self._add_code("\n".join(lines))
            return
        position = 0
        while position < len(lines):
            if not lines[position]:
                position += 1
                continue
            position = next(end for rule in self._rules if (end := rule(lines, position, depth)) > position)
        self._end_lead()

    def _add(self, text: str) -> None:
        lead, self._lead = self._lead, ""
        self._builder.add(lead + text)

    def _add_code(self, text: str, language: str = "") -> None:
        self._end_lead()
        self._builder.add_code(dedent(text).strip("\n"), language)

    def _end_lead(self) -> None:
        lead, self._lead = self._lead.strip(), ""
        if lead.strip(_BULLETS):
            self._builder.add(lead)

    def _section(self, lines: Sequence[str], start: int, depth: int) -> int:
        """Read a section title with its adornment, or a transition, which is a lone adornment."""
        if depth:
            return start
        line, *following = [*lines[start : start + 3], "", ""][:3]
        is_above = _ADORNMENT.fullmatch(line) is not None
        title, below = (following[0].strip(), following[1]) if is_above else (line, following[0])
        is_title = bool(title) and below[:1] == (line[0] if is_above else below[:1]) and _is_underline(title, below)
        if is_title and not title[0].isspace() and (is_above or not _EXPLICIT.match(title)):
            style = (below[0], is_above)
            if style not in self._styles:
                self._styles.append(style)
            level = self._styles.index(style) + 1
            text = self._inline(title).replace("`", "")
            if level == 1:
                self._titles.append(text)
            self._builder.add_heading(text, level)
            return start + (3 if is_above else 2)
        return start + 1 if is_above and len(line) >= 4 and not following[0] else start

    def _explicit(self, lines: Sequence[str], start: int, depth: int) -> int:
        """Read a directive or a footnote; comments, link targets and substitutions are left out."""
        line = lines[start]
        if line.startswith("__ "):
            return start + 1
        if not _EXPLICIT.match(line):
            return start
        end = _indented_end(lines, start + 1)
        body = _dedented(lines[start + 1 : end])
        if directive := _DIRECTIVE.match(line):
            if not line[2:].lstrip().startswith("|"):
                self._directive(directive[1].lower(), directive[2] or "", body, depth)
        elif footnote := _FOOTNOTE.match(line):
            self._lead = f"{footnote[1]} "
            self._read([footnote[2], *body], depth + 1)
        return end

    def _directive(self, name: str, argument: str, body: list[str], depth: int) -> None:
        options, content = _split_options(body)
        kind = name.rpartition(":")[2]
        if name in _IGNORED or (kind == "setting" and not any(content)):  # it marks the section that follows
            return
        if kind in _CODE:
            self._add_code("\n".join(content), argument)
        elif name == "list-table":
            self._add_table(list_table(content), argument)
        elif name == "csv-table":
            self._add_table(csv_table(content, options.get("header", "")), argument)
        elif kind == "glossary":
            self._read(_with_joined_terms(content), depth + 1)
        elif kind in _OBJECTS:
            self._object(argument, content, depth)
        else:
            self._text_directive(name, argument, content, depth)

    def _text_directive(self, name: str, argument: str, content: list[str], depth: int) -> None:
        """Read a note, a change, a picture's caption, or any other directive as the text in it."""
        if name in _LEAD_BY_VERSION:
            version, _, text = argument.partition(" ")
            self._lead = f"{_LEAD_BY_VERSION[name]} {version}: "
            content = [text, *content]
        elif name in _ADMONITIONS:
            self._lead = f"{name.replace('seealso', 'see also').capitalize()}: "
            content = [argument, *content]
        elif argument and name not in _PICTURES:
            self._add(self._inline(argument))
        self._read(content, depth + 1)

    def _object(self, signature: str, content: list[str], depth: int) -> None:
        """Read the description of a function, setting or the like under its signature as a heading."""
        while content and content[0] and signature.endswith(("\\", ",")):
            signature = f"{signature} {content.pop(0).strip()}"
        self._end_lead()
        self._builder.add_heading(signature.replace("\\", ""), _OBJECT_LEVEL + depth)
        self._read(content, depth + 1)
        self._builder.path.leave(_OBJECT_LEVEL + depth)

    def _fields(self, lines: Sequence[str], start: int, depth: int) -> int:
        """Read a list of fields such as ":author: Ann". At the start of the document they are metadata."""
        end = start
        entries = []
        while end < len(lines) and (field := _FIELD.match(lines[end])):
            after = _indented_end(lines, end + 1)
            value = " ".join([field[2] or "", *map(str.strip, lines[end + 1 : after])]).strip()
            entries.append((field[1], self._inline(value)))
            end = after
        if entries and not depth and not self._builder.has_body:
            self._metadata |= {
                _KEY_BY_FIELD[key.lower()]: text for key, text in entries if key.lower() in _KEY_BY_FIELD
            }
        elif entries:
            self._end_lead()
            self._builder.add("\n".join(f"{key}: {text}".strip(": ") for key, text in entries), "list")
        return end

    def _table(self, lines: Sequence[str], start: int, _depth: int) -> int:
        table = grid_table(lines, start) or simple_table(lines, start)
        if table is None:
            return start
        self._add_table(table.rows, has_header=table.has_header)
        return table.end

    def _add_table(self, rows: Sequence[Sequence[str]], caption: str = "", *, has_header: bool = False) -> None:
        self._end_lead()
        if caption:
            self._builder.add(self._inline(caption))
        add_table(self._builder, ([self._inline(cell) for cell in row] for row in rows), has_header=has_header)

    def _list(self, lines: Sequence[str], start: int, depth: int) -> int:
        """Read a list. It is one block, unless an item holds code, a table or a directive."""
        if not _BULLET.match(lines[start]):
            return start
        items: list[list[str]] = []
        end = start
        is_numbered = lines[start][0] not in _BULLETS
        while end < len(lines) and (marker := _BULLET.match(lines[end])) and is_numbered == (marker[1] not in _BULLETS):
            after = _indented_end(lines, end + 1)
            items.append([f"{marker[1]} ", lines[end][marker.end() :], *_cut(lines[end + 1 : after], marker.end())])
            end = after
            while end < len(lines) and not lines[end]:
                end += 1
        if not any(_is_structured(entry) for entry in items):
            entries = (line for entry in items for line in self._entry_lines(entry))
            self._end_lead()
            self._builder.add("\n".join(entries), "list")
            return end
        for marker_text, *content in items:
            self._lead = marker_text
            self._read(content, depth + 1)
        return end

    def _entry_lines(self, entry: Sequence[str]) -> Iterator[str]:
        """Yield the lines of a list item; wrapped lines are joined, and nested lists are indented."""
        marker, *lines = entry
        text: list[str] = []
        indent = ""
        for line in lines:
            if text and (not line or _BULLET.match(line.lstrip())):
                yield indent + marker + self._inline(join_lines(text))
                indent, marker, text = "  ", "", []
            text.append(line)
            if not line:
                text.clear()
        if text:
            yield indent + marker + self._inline(join_lines(text))

    def _quote(self, lines: Sequence[str], start: int, depth: int) -> int:
        if not lines[start].startswith(" "):
            return start
        end = _indented_end(lines, start)
        self._read(_dedented(lines[start:end]), depth + 1)
        return end

    def _definition(self, lines: Sequence[str], start: int, depth: int) -> int:
        """Read a term and the indented lines below it."""
        if not lines[start + 1 : start + 2] or not lines[start + 1].startswith(" ") or lines[start].endswith("::"):
            return start
        end = _indented_end(lines, start + 1)
        self._end_lead()
        self._lead = f"{self._inline(lines[start])}\n"
        self._read(_dedented(lines[start + 1 : end]), depth + 1)
        return end

    def _paragraph(self, lines: Sequence[str], start: int, _depth: int) -> int:
        end = start + 1
        while end < len(lines) and lines[end] and not lines[end].startswith(" "):
            end += 1
        text = [line.removeprefix("| ") for line in lines[start:end]]
        if text[0].startswith(">>> "):
            end = next((position for position in range(start, len(lines)) if not lines[position]), len(lines))
            self._add_code("\n".join(lines[start:end]))
            return end
        has_literal = text[-1].endswith("::")
        if has_literal:
            text[-1] = text[-1].removesuffix("::").rstrip() + (":" if not text[-1].endswith(" ::") else "")
        if (joined := join_lines(text)).strip(": "):
            self._add(self._inline(joined))
        if not has_literal:
            return end
        literal_end = _indented_end(lines, end)
        self._add_code("\n".join(lines[end:literal_end]))
        return literal_end

    def _inline(self, text: str) -> str:
        """Return `text` without inline markup."""
        return _INLINE.sub(self._plain, text)

    def _plain(self, match: re.Match[str]) -> str:
        kind = match.lastgroup
        content: str = match[kind] if kind else match[0]
        if kind == "literal":
            return f"`{content}`"
        if kind == "substitution":
            return self._substitutions.get(content, content)
        if kind != "text":
            return content.strip() if kind == "escaped" else content
        if link := _LINK.fullmatch(content):
            is_url = link[2].startswith(("http://", "https://"))
            return f"{link[1]} ({link[2]})" if is_url and link[1] and link[1] != link[2] else link[1] or link[2]
        if content.startswith("~"):
            return content[1:].rpartition(".")[2]
        if content.startswith("/"):  # a document
            return content.rpartition("/")[2]
        return _PREFIX_BY_ROLE.get(match["role"] or "", "") + content.removeprefix("!")


def _is_underline(title: str, line: str) -> bool:
    return _ADORNMENT.fullmatch(line) is not None and len(line) >= min(display_width(title), 4)


def _indented_end(lines: Sequence[str], start: int) -> int:
    """Return the end of the indented and blank lines from `start` on, without blank lines at their end."""
    end = start
    for position in range(start, len(lines)):
        if lines[position].startswith(" "):
            end = position + 1
        elif lines[position]:
            break
    return end


def _dedented(lines: Sequence[str]) -> list[str]:
    return dedent("\n".join(lines)).split("\n")


def _cut(lines: Sequence[str], width: int) -> list[str]:
    """Return lines without their common indentation, of which `width` is that of the text around them."""
    n_cut = min([width, *(len(line) - len(line.lstrip()) for line in lines if line)])
    return [line[n_cut:] for line in lines]


def _with_joined_terms(lines: Sequence[str]) -> list[str]:
    """Return the lines of a glossary; the terms that one explanation has are on one line."""
    joined: list[str] = []
    for line in lines:
        if line[:1].strip() and joined and joined[-1][:1].strip():
            joined[-1] += f", {line}"
        else:
            joined.append(line)
    return joined


def _is_structured(entry: Sequence[str]) -> bool:
    """Return whether a list item holds more than text and lists."""
    return any(
        line.endswith("::") or line.lstrip().startswith((".. ", ">>> ")) or GRID_BORDER.match(line.strip())
        for line in entry
    )


def _split_options(body: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options at the start of a directive's body, such as ":alt: A map", and the lines after them."""
    options: dict[str, str] = {}
    position = 0
    while position < len(body) and (field := _FIELD.match(body[position])):
        options[field[1]] = field[2] or ""
        position += 1
    return options, list(body[position:])
