r"""Manual pages: roff with the macros of man(7) or mdoc(7) becomes headings, paragraphs, options, code and tables.

Only what pages are written in is read: requests that compute or place text are left out. An option and what it does
are one block. References: groff_man(7), mdoc(7), tbl(1).
"""

import re
from collections.abc import Iterator, Sequence

from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse.builder import DocumentBuilder, add_table
from quipu.parse.decode import decode, display_name
from quipu.parse.roff_text import MacroText, plain_text, split_arguments

_PARAGRAPHS = frozenset(["PP", "P", "LP", "Pp", "HP", "sp", "RS", "RE", "ti", "in", "bp", "Lp", "SY", "YS", "Bd", "Ed"])
_FONTS = frozenset(["B", "I", "R", "SM", "SB"])
_MIXED_FONTS = frozenset(["BI", "BR", "IB", "IR", "RB", "RI"])
_CODE_FROM, _CODE_TO = frozenset(["nf", "EX", "Vb"]), frozenset(["fi", "EE", "Ve"])
_SKIPPED_TO = {"de": "..", "de1": "..", "am": "..", "ig": "..", "EQ": ".EN", "PS": ".PE"}
_END_ARGUMENT = {"de": 1, "de1": 1, "am": 1, "ig": 0}  # the place of the argument that names another end
_MAX_DEPTH = 20  # of conditions within conditions; what is deeper is left out
_MAX_TAG = 200  # characters of the tag of a definition
_BULLET, _BULLETS = "•", frozenset("•*-o·")
_LITERAL_DISPLAYS = ("-literal", "-unfilled")
_LINE = re.compile(r"[.'][ \t]*(\S*)[ \t]*(.*)")
_CONDITION = re.compile(r"[ \t]*(!?(?:\\n\(..|\\n\[[^]\n]*\]|\\n.|'[^'\n]*'[^'\n]*'|\([^)\n]*\)|\S)\S*)[ \t]*(.*)")
_TBL_TAB = re.compile(r"tab[ \t]*\((.)\)")


class RoffParser:
    """Reads manual pages."""

    media_types = frozenset({"text/troff"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the page; its title is its name and section, such as "ssh(1)". Raises InvalidDocument."""
        text = decode(source)
        reader = _PageReader(display_name(source))
        reader.read(text.split("\n"))
        return reader.builder.build(reader.title, reader.metadata)


PARSER = RoffParser()


class _PageReader:
    """Reads lines into `builder`: each request either ends the block that is open, or adds to it."""

    def __init__(self, name: str) -> None:
        self.builder = DocumentBuilder(name)
        self.title = ""
        self.metadata: dict[str, MetadataValue] = {}
        self._text = MacroText()
        self._strings: dict[str, str] = {}  # that the page defines
        self._tag: list[str] = []  # of the definition that is open
        self._words: list[str] = []  # of the block that is open
        self._code: list[str] | None = None
        self._waits_for = ""  # what the next text is: "tag", more of a tag until "Xc", or a macro of headings
        self._was_true = True  # the last condition of .ie
        self._depth = 0  # of conditions

    def read(self, lines: Sequence[str]) -> None:
        """Read all lines."""
        remaining = iter(lines)
        for line in remaining:
            self._line(line, remaining)
        self._end_code()
        self._end_block()

    def _line(self, line: str, remaining: Iterator[str]) -> None:
        if not line.startswith((".", "'")):
            self._add_text(plain_text(line, self._strings), is_blank=not line.strip())
            return
        match = _LINE.match(line)
        name, rest = (match[1], match[2]) if match else ("", "")
        if name.startswith('\\"') or not name:
            return
        if name in _SKIPPED_TO:
            ends = split_arguments(rest, self._strings)[_END_ARGUMENT[name] :] if name in _END_ARGUMENT else []
            _skip_to(f".{ends[0]}" if ends else _SKIPPED_TO[name], remaining)
        elif name in ("if", "ie", "el"):
            self._conditional(name, rest, remaining)
        elif name == "TS":
            self._table(remaining)
        elif name == "ds":
            string, _, value = rest.partition(" ")
            self._strings[string] = plain_text(value.removeprefix('"'), self._strings)
        else:
            self._request(name, rest)

    def _conditional(self, name: str, rest: str, remaining: Iterator[str]) -> None:
        r"""Read or leave out what a condition holds for: a line, or lines between \{ and \}."""
        if name == "el":
            is_true, body = not self._was_true, rest
        else:
            match = _CONDITION.match(rest)
            condition, body = (match[1], match[2]) if match else ("", "")
            is_true = condition == "n" or condition.startswith((r"\n(.g", r"\n[.g]"))
            self._was_true = is_true
        lines = [body.replace(r"\{", "").rstrip("\\").strip()]
        depth = rest.count(r"\{") - rest.count(r"\}")
        while depth > 0 and (line := next(remaining, None)) is not None:
            depth += line.count(r"\{") - line.count(r"\}")
            lines.append(line.replace(r"\}", "") if depth <= 0 else line)
        if is_true and self._depth < _MAX_DEPTH:
            self._depth += 1
            inner = iter([line for line in lines if line.strip(" .")])
            for line in inner:
                self._line(line, inner)
            self._depth -= 1

    def _request(self, name: str, rest: str) -> None:
        arguments = split_arguments(rest, self._strings)
        if name in ("SH", "SS", "Sh", "Ss"):
            self._end_block()
            self._waits_for = name
            if arguments:
                self._heading(" ".join(arguments) if name.isupper() else self._text.render(arguments))
        elif name in ("TH", "Dt", "Dd"):
            self._titles(name, arguments)
        elif name in ("TP", "TQ", "IP", "It", "Bl", "El"):
            self._item(name, arguments)
        elif not self._breaks(name, arguments):
            self._add_text(self._styled(name, arguments))

    def _breaks(self, name: str, arguments: Sequence[str]) -> bool:
        """Begin or end code or a paragraph; return whether the request does so."""
        if name in _CODE_FROM or (name == "Bd" and arguments[:1] and arguments[0] in _LITERAL_DISPLAYS):
            self._begin_code()
        elif name in _CODE_TO or (name == "Ed" and self._code is not None):
            self._end_code()
        elif name in ("Dl", "D1"):
            self._end_block()
            self.builder.add_code(self._text.render(arguments))
        elif name == "RS" and self._begins_definition():
            self._tag, self._words = [_filled(self._words)], []
        elif name in _PARAGRAPHS:
            self._end_paragraph()
            self._add_text(" ".join(arguments) if name == "SY" else "")
        elif name == "br":
            self._words.append("\n")
        elif name == "Xc" and self._waits_for == name:
            self._waits_for = ""
        else:
            return False
        return True

    def _styled(self, name: str, arguments: Sequence[str]) -> str:
        """Return the text of a request that sets it in fonts, or of a macro of mdoc; "" for all others."""
        if name in _FONTS:
            return " ".join(arguments)
        if name in _MIXED_FONTS:
            return "".join(arguments)
        if name in ("UR", "MT"):
            return f"<{''.join(arguments)}>"
        if name == "OP":
            return f"[{' '.join(arguments)}]"
        if name == "MR":
            return f"{arguments[0]}({''.join(arguments[1:2])}){''.join(arguments[2:])}" if arguments else ""
        return self._text.render([name, *arguments]) if self._text.knows(name) else ""

    def _titles(self, name: str, arguments: Sequence[str]) -> None:
        if name == "Dd":
            date = " ".join(argument for argument in arguments if not argument.startswith("$"))
            self._set_date(date)
        elif arguments:
            section = f"({arguments[1]})" if len(arguments) > 1 else ""
            page = arguments[0].lower() if arguments[0].isupper() and " " not in arguments[0] else arguments[0]
            self.title = self.title or f"{page}{section}"
            self._set_date(arguments[2] if name == "TH" and len(arguments) > 2 else "")

    def _set_date(self, date: str) -> None:
        if any(map(str.isdigit, date)):
            self.metadata["date"] = date

    def _heading(self, text: str) -> None:
        level = 1 if self._waits_for.lower() == "sh" else 2
        self._waits_for = ""
        self.builder.add_heading(text.capitalize() if text == text.upper() else text, level)

    def _item(self, name: str, arguments: Sequence[str]) -> None:
        """Begin a definition, whose tag is given here or in the next line, or an item of a list."""
        self._end_code()
        if name == "Bl":
            self._end_paragraph()
        elif name == "El":
            self._end_block()
        elif name == "TQ":
            self._waits_for = "tag"
        elif name == "TP":
            self._end_block()
            self._waits_for = "tag"
        else:
            self._end_block()
            tag = (self._text.render(arguments) or _BULLET) if name == "It" else "".join(arguments[:1])
            self._tag = [_BULLET if tag in _BULLETS else tag] if tag else []
            if name == "It" and arguments[-1:] == ["Xo"]:
                self._waits_for = "Xc"  # the tag goes on until there

    def _add_text(self, text: str, *, is_blank: bool = False) -> None:
        if self._code is not None:
            self._code.append(text)
        elif is_blank:
            self._end_paragraph()
        elif text and self._waits_for == "Xc":
            self._tag.append(f"{self._tag.pop() if self._tag else ''} {text}".strip())
        elif text and self._waits_for == "tag":
            self._tag.append(text)
            self._waits_for = ""
        elif text and self._waits_for:
            self._heading(text)
        elif text:
            self._words.append(text)

    def _begin_code(self) -> None:
        if self._code is None:
            self._end_block()
            self._code = []

    def _end_code(self) -> None:
        if self._code is not None:
            code = "\n".join(self._code).strip("\n")
            self._code = None
            self.builder.add_code(code)

    def _begins_definition(self) -> bool:
        """Return whether the open paragraph is the tag of what is indented now, as DocBook writes definitions."""
        text = _filled(self._words).removesuffix("...")
        return bool(text) and not self._tag and len(text) <= _MAX_TAG and not text.endswith((".", ":", ";"))

    def _end_paragraph(self) -> None:
        """End a paragraph, but not a definition that has only its tag so far."""
        if self._words:
            self._end_block()

    def _end_block(self) -> None:
        """Add the open block: a paragraph, an item of a list, or a definition under its tag."""
        body = _filled(self._words)
        tag = ", ".join(self._tag)
        self._words, self._tag, self._waits_for = [], [], ""
        if tag == _BULLET:
            self.builder.add(f"{_BULLET} {body}", "list")
        elif tag:
            self.builder.add(f"{tag}\n{body}".rstrip())
        else:
            self.builder.add(body)

    def _table(self, remaining: Iterator[str]) -> None:
        """Read a table of tbl(1): options, formats up to a full stop, then rows."""
        self._end_block()
        lines = list(_until(".TE", remaining))
        tab, position = "\t", 0
        if lines and lines[0].rstrip().endswith(";"):
            tab = match[1] if (match := _TBL_TAB.search(lines[0])) else tab
            position = 1
        while position < len(lines) and not lines[position].rstrip().endswith("."):
            position += 1
        add_table(self.builder, self._rows(lines[position + 1 :], tab))

    def _rows(self, lines: Sequence[str], tab: str) -> list[list[str]]:
        """Return the cells of the rows of a table; a cell between T{ and T} has several lines."""
        rows: list[list[str]] = []
        text: list[str] | None = None
        for line in lines:
            if text is not None:
                if not line.startswith("T}"):
                    text.append(self._line_text(line))
                    continue
                rows[-1][-1] = " ".join(text)
                text = None
                rows[-1] += self._cells(line, tab)[1:]
            elif line.startswith((".", "'")) or not line.strip("_= \t"):
                continue
            else:
                rows.append(self._cells(line, tab))
            if rows[-1][-1] == "T{":
                text = []
        return rows

    def _cells(self, line: str, tab: str) -> list[str]:
        return [plain_text(cell, self._strings) for cell in line.split(tab)]

    def _line_text(self, line: str) -> str:
        """Return the text of a line, which may be a request that sets it in a font."""
        request = _LINE.match(line)
        if request is None:
            return plain_text(line, self._strings)
        return self._styled(request[1], split_arguments(request[2], self._strings))


def _filled(words: Sequence[str]) -> str:
    """Return words as one text, with line breaks where the page breaks lines."""
    return "\n".join(" ".join(line.split()) for line in " ".join(words).split("\n")).strip()


def _skip_to(end: str, remaining: Iterator[str]) -> None:
    for _ in _until(end, remaining):
        pass


def _until(end: str, remaining: Iterator[str]) -> Iterator[str]:
    """Yield the lines before the line `end`, and take it."""
    for line in remaining:
        if line.rstrip() == end:
            return
        yield line
