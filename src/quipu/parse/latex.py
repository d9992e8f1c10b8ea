"""LaTeX: sections, paragraphs, lists, tables, code and formulas; commands are reduced to the text in their braces."""

import re
from collections.abc import Sequence

from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse.builder import DocumentBuilder, add_table
from quipu.parse.decode import decode, display_name

_LEVEL_BY_COMMAND = {
    "part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5, "paragraph": 6, "subparagraph": 7,
}  # fmt: skip
_COMMENT = re.compile(r"(?<!\\)%[^\n]*")
_ARGUMENT = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]{0,500}\}){0,500}\}){0,2000})\}"
_HEADING = re.compile(
    r"\\(part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?\s*(?:\[[^\]\n]{0,300}\])?\s*" + _ARGUMENT
)
_ENVIRONMENT = re.compile(r"\\(begin|end)\{([A-Za-z*]{1,40})\}")
_VERBATIM = frozenset(["verbatim", "lstlisting", "minted", "Verbatim", "alltt", "comment"])
_TABLES = frozenset(["tabular", "tabular*", "tabularx", "longtable", "array"])
_TABLES_WITH_WIDTH = frozenset(["tabular*", "tabularx"])
_LISTS = frozenset(["itemize", "enumerate", "description"])
_OPTIONS = re.compile(r"\s*(?:\[[^\]\n]{0,300}\]|\{[^{}\n]{0,300}\})+")
_COLUMNS = re.compile(rf"\s*(?:\[[^\]\n]{{0,300}}\]\s*)?{_ARGUMENT}")  # the width or the columns of a table
_ROW_END = re.compile(r"\\\\\*?(?:\[[^\]\n]{0,30}\])?")
_DROPPED = re.compile(
    r"\\(?:label|cite[a-z]*|ref|eqref|pageref|index|bibliography(?:style)?|input|include(?:graphics)?|usepackage|vspace|hspace"
    r"|setlength|setcounter|hypersetup|newcommand|renewcommand|pagestyle|thispagestyle|documentclass|centering|maketitle"
    r"|tableofcontents|newpage|clearpage|noindent|hline|toprule|midrule|bottomrule|appendix|small|large|footnotesize)"
    r"\*?(?![A-Za-z])(?:\[[^\]\n]{0,300}\])?(?:\{[^{}\n]{0,300}\})*"
)
_LINK = re.compile(r"\\href\{([^{}\n]{1,500})\}\{([^{}\n]{1,500})\}")
_COMMAND = re.compile(r"\\[A-Za-z]{1,40}\*?(?:\[[^\]\n]{0,200}\])?[ \t]?")
_ESCAPED = re.compile(r"\\([&%$#_{}])")
_PREAMBLE = re.compile(r"\\(title|author|date)\s*(?:\[[^\]\n]{0,300}\])?\s*" + _ARGUMENT)
_PREAMBLE_WITHIN = 50_000  # characters
_ITEM = re.compile(r"\\item\b[ \t]*")
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")


class LatexParser:
    """Reads LaTeX sources. Formulas stay as written; files that are included are not read."""

    media_types = frozenset({"text/x-tex", "application/x-tex"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the blocks, and the title, author and date of the preamble. Raises InvalidDocument for other bytes."""
        text = decode(source)
        preamble = {
            match[1]: _plain(match[2]) for match in _PREAMBLE.finditer(_COMMENT.sub("", text[:_PREAMBLE_WITHIN]))
        }
        _, begin, body = text.partition("\\begin{document}")
        body = (body if begin else text).partition("\\end{document}")[0]
        reader = _LatexReader(display_name(source))
        reader.read(body)
        metadata: dict[str, MetadataValue] = {key: preamble[key] for key in ("author", "date") if preamble.get(key)}
        return reader.builder.build(preamble.get("title", ""), metadata)


PARSER = LatexParser()


class _LatexReader:
    """Reads the body of a document into `builder`."""

    def __init__(self, name: str) -> None:
        self.builder = DocumentBuilder(name)

    def read(self, body: str) -> None:
        """Read environments that are kept whole, and the text between them."""
        position = 0
        while opening := _ENVIRONMENT.search(body, position):
            name = opening[2]
            if opening[1] == "end" or name not in _VERBATIM | _TABLES | _LISTS:
                self._text(body[position : opening.start()])
                position = opening.end()
                continue
            self._text(body[position : opening.start()])
            end, position = _closing(body, opening.end(), name)
            self._environment(name, body[opening.end() : end])
        self._text(body[position:])

    def _environment(self, name: str, content: str) -> None:
        if name == "comment":
            return
        if name in _VERBATIM:
            code = _OPTIONS.sub("", content, count=1) if content.startswith(("[", "{")) else content
            self.builder.add_code(code.strip("\n"))
        elif name in _TABLES:
            self._table(content, n_arguments=2 if name in _TABLES_WITH_WIDTH else 1)
        else:
            lead, *entries = _ITEM.split(_COMMENT.sub("", content))
            self._text(lead)
            self.builder.add("\n".join(_list_lines(entries, is_numbered=name == "enumerate")), "list")

    def _table(self, content: str, n_arguments: int) -> None:
        for _ in range(n_arguments):
            argument = _COLUMNS.match(content)
            content = content[argument.end() if argument else 0 :]
        rows = _ROW_END.split(_COMMENT.sub("", content))
        cells = ([_plain(cell) for cell in re.split(r"(?<!\\)&", row)] for row in rows)
        add_table(self.builder, cells, has_header=any("\\midrule" in row for row in rows[1:2]))

    def _text(self, text: str) -> None:
        """Read headings and paragraphs."""
        text = _COMMENT.sub("", text)
        position = 0
        for heading in _HEADING.finditer(text):
            self._paragraphs(text[position : heading.start()])
            self.builder.add_heading(_plain(heading[2]), _LEVEL_BY_COMMAND[heading[1]])
            position = heading.end()
        self._paragraphs(text[position:])

    def _paragraphs(self, text: str) -> None:
        for paragraph in _BLANK_LINES.split(text):
            self.builder.add(_plain(paragraph))


def _list_lines(entries: Sequence[str], *, is_numbered: bool) -> list[str]:
    lines = []
    for number, entry in enumerate(entries, 1):
        label, _, rest = entry[1:].partition("]") if entry.startswith("[") else ("", "", entry)
        text = _plain(_ENVIRONMENT.sub("", rest))
        marker = f"{number}. " if is_numbered else "- "
        lines.append(marker + (f"{_plain(label)}: {text}" if label else text))
    return lines


def _closing(body: str, start: int, name: str) -> tuple[int, int]:
    """Return where the content of the environment that begins at `start` ends, and where its closing ends."""
    depth = 1
    for match in re.compile(rf"\\(begin|end)\{{{re.escape(name)}\}}").finditer(body, start):
        depth += 1 if match[1] == "begin" and name not in _VERBATIM else -1
        if match[1] == "end" and depth <= 0:
            return match.start(), match.end()
    return len(body), len(body)


def _plain(text: str) -> str:
    """Return `text` on one line without commands and braces; formulas stay."""
    text = _LINK.sub(r"\2 (\1)", _DROPPED.sub("", text))
    text = _ESCAPED.sub(
        lambda match: match[1] if match[1] not in "{}" else "", _COMMAND.sub("", text.replace("\\\\", " "))
    )
    text = text.replace("``", "“").replace("''", "”").replace("---", "—").replace("--", "–").replace("~", " ")
    return " ".join(text.replace("{", "").replace("}", "").split())
