"""Rich Text (RTF): paragraphs, headings by outline level, and table rows; pictures, styles and fields are left out.

Source: Rich Text Format Specification 1.9.1, Microsoft 2008.
"""

import re
from dataclasses import dataclass, replace

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.builder import DocumentBuilder, add_table
from quipu.parse.decode import display_name

_TOKEN = re.compile(rb"\\([a-z]{1,32})(-?\d{1,10})?[ ]?|\\'([0-9a-fA-F]{2})|\\([^a-z'])|([{}])|[\r\n]+|([^\\{}\r\n]+)")
_MAX_DEPTH = 1_000
_DESTINATIONS_LEFT_OUT = frozenset(
    [
        *("fonttbl", "colortbl", "stylesheet", "listtable", "listoverridetable", "info", "pict", "object", "header"),
        *(
            "footer",
            "headerl",
            "headerr",
            "headerf",
            "footerl",
            "footerr",
            "footerf",
            "fldinst",
            "themedata",
            "datastore",
        ),
        *(
            "xmlnstbl",
            "generator",
            "rsidtbl",
            "latentstyles",
            "bkmkstart",
            "bkmkend",
            "pntext",
            "listtext",
            "nonshppict",
        ),
    ]
)
_TEXT_BY_WORD = {
    "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“",
    "rdblquote": "”", "bullet": "•", "emspace": " ", "enspace": " ",
}  # fmt: skip
_TEXT_BY_SYMBOL = {b"~": "\u00a0", b"_": "\u2011", b"\\": "\\", b"{": "{", b"}": "}"}
_CODEC_BY_FONT_CHARSET = {
    0: "cp1252", 128: "cp932", 129: "cp949", 134: "gb18030", 136: "big5", 161: "cp1253", 162: "cp1254", 177: "cp1255",
    178: "cp1256", 186: "cp1257", 204: "cp1251", 238: "cp1250",
}  # fmt: skip


class RtfParser:
    """Reads the text of RTF files in any code page."""

    media_types = frozenset({"application/rtf", "text/rtf"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the blocks. Raises InvalidDocument if the bytes are not RTF."""
        if not source.content.lstrip().startswith(b"{\\rtf"):
            raise InvalidDocument(
                f"{display_name(source)} is not Rich Text: it does not begin with {{\\rtf.",
                remedy="Save it again as .rtf or .docx, or give it the right suffix.",
            )
        return _RtfReader(display_name(source)).read(source.content)


PARSER = RtfParser()


@dataclass(frozen=True, slots=True)
class _Group:
    """The state of a group: whether its text is left out, its codec, and bytes that stand for a Unicode character."""

    is_left_out: bool = False
    codec: str = "cp1252"
    n_fallback: int = 1


class _RtfReader:
    """Reads the tokens of one file into a builder."""

    def __init__(self, name: str) -> None:
        self._builder = DocumentBuilder(name)
        self._group = _Group()
        self._outer: list[_Group] = []
        self._codec = "cp1252"  # of the file
        self._codec_by_font: dict[int, str] = {}
        self._font = 0  # that the font table describes at the moment
        self._bytes = bytearray()  # of characters that are not yet decoded
        self._text: list[str] = []
        self._cells: list[str] = []
        self._rows: list[list[str]] = []
        self._outline_level: int | None = None
        self._n_skipped = 0  # bytes still to be left out after a Unicode character

    def read(self, content: bytes) -> ParsedDocument:
        """Return the document."""
        for token in _TOKEN.finditer(content):
            word, argument, code, symbol, brace, text = token.groups()
            if word:
                self._word(word.decode(), int(argument) if argument else None)
            elif code or text:
                self._add_bytes(bytes.fromhex(code.decode()) if code else text)
            elif brace:
                self._brace(brace)
            elif symbol == b"*":
                self._group = replace(self._group, is_left_out=True)
            elif symbol in _TEXT_BY_SYMBOL:
                self._add_text(_TEXT_BY_SYMBOL[symbol])
        self._end_paragraph()
        self._end_table()
        return self._builder.build()

    def _brace(self, brace: bytes) -> None:
        self._decode()
        if brace == b"{" and len(self._outer) < _MAX_DEPTH:
            self._outer.append(self._group)
        elif brace == b"}" and self._outer:
            self._group = self._outer.pop()
        self._n_skipped = 0

    def _word(self, word: str, number: int | None) -> None:
        """Read a control word that changes the state, or stands for text."""
        if word in _DESTINATIONS_LEFT_OUT:
            self._group = replace(self._group, is_left_out=True)
        elif word == "u" and number is not None:
            self._add_text(chr(number % 65_536))
            self._n_skipped = self._group.n_fallback
        elif word in _TEXT_BY_WORD:
            self._add_text(_TEXT_BY_WORD[word])
        elif word in ("par", "sect", "page"):
            self._end_paragraph()
        elif word in ("cell", "row", "pard", "outlinelevel"):
            self._paragraph_word(word, number)
        else:
            self._codec_word(word, number)

    def _paragraph_word(self, word: str, number: int | None) -> None:
        if word == "cell":
            self._cells.append(self._taken_text())
        elif word == "row":
            self._rows.append(self._cells)
            self._cells = []
        else:
            self._outline_level = number if word == "outlinelevel" else None

    def _codec_word(self, word: str, number: int | None) -> None:
        """Read a control word about code pages: of the file, of a font, or of the text from here on."""
        if number is None:
            return
        self._decode()
        if word == "ansicpg":
            self._codec = f"cp{number}" if _is_codec(f"cp{number}") else "cp1252"
            self._group = replace(self._group, codec=self._codec)
        elif word == "uc":
            self._group = replace(self._group, n_fallback=min(max(number, 0), 10))
        elif word == "f" and self._group.is_left_out:
            self._font = number
        elif word == "fcharset":
            self._codec_by_font[self._font] = _CODEC_BY_FONT_CHARSET.get(number, self._codec)
        elif word == "f":
            self._group = replace(self._group, codec=self._codec_by_font.get(number, self._codec))

    def _add_bytes(self, content: bytes) -> None:
        skipped = min(self._n_skipped, len(content))
        self._n_skipped -= skipped
        if not self._group.is_left_out:
            self._bytes += content[skipped:]

    def _add_text(self, text: str) -> None:
        self._decode()
        if not self._group.is_left_out:
            self._text.append(text)

    def _decode(self) -> None:
        if self._bytes:
            self._text.append(self._bytes.decode(self._group.codec, "replace"))
            self._bytes.clear()

    def _taken_text(self) -> str:
        """Return the text of the paragraph or cell so far, and begin another one."""
        self._decode()
        text = "".join(self._text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        self._text.clear()
        return text.strip()

    def _end_paragraph(self) -> None:
        if self._cells:  # a paragraph within a row of a table
            self._add_text("\n")
            return
        text = self._taken_text()
        if not text:
            return
        self._end_table()
        if self._outline_level is not None and 0 <= self._outline_level < 9:
            self._builder.add_heading(text, self._outline_level + 1)
        else:
            self._builder.add(text)

    def _end_table(self) -> None:
        add_table(self._builder, self._rows)
        self._rows = []


def _is_codec(name: str) -> bool:
    try:
        return bool(b"a".decode(name))
    except LookupError:
        return False
