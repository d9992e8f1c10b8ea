"""Decoding: bytes to text by byte order mark, UTF-8 or declared charset, then normalised characters."""

import codecs
import re
import unicodedata
from functools import cache

from quipu.errors import InvalidDocument
from quipu.model.document import SourceDocument
from quipu.parse.limits import MAX_CHARACTERS

# Longest first: the mark of UTF-32 begins with the mark of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Declared charsets and the encoding that browsers use for them.
_BROWSER_ENCODING = {
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
}
_KNOWN_CHARSET = re.compile(
    r"windows-125\d|cp125\d|iso-8859-\d{1,2}|koi8-[ru]|ibm866|cp866|macintosh|big5(?:-hkscs)?"
    r"|gb18030|euc-jp|iso-2022-jp|cp932|cp949|cp1252|cp1254"
)
_LINE_END = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_MARKS = 30  # on one letter, as in the Stream-Safe Text Format (UAX #15, section 13)
_JOINER = "\u034f"  # combining grapheme joiner
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff]")


def decode(source: SourceDocument, declared: str = "") -> str:
    """Return the normalised text of `source`; `declared` is the charset that the document itself declares, if any.

    The encoding is the first that applies: the byte order mark, UTF-8 if the bytes are valid, the charset of the media
    type, `declared`. Raises InvalidDocument for binary data, an unknown encoding, or too many characters.
    """
    text = _decoded(source, declared)
    if len(text) > MAX_CHARACTERS:
        raise InvalidDocument(
            f"{display_name(source)} holds more than {MAX_CHARACTERS:,} characters of text.",
            remedy="Split it into several files.",
        )
    return normalise(text)


def normalise(text: str) -> str:
    r"""Return `text` in NFC, with \n as its only line end and no control characters other than \n and \t.

    Lone surrogates become replacement characters: JSON can contain them as escapes, but UTF-8 cannot encode them.
    """
    text = _CONTROL.sub("", _LINE_END.sub("\n", text))
    return text if text.isascii() else unicodedata.normalize("NFC", stream_safe(_SURROGATE.sub("\ufffd", text)))


def stream_safe(text: str) -> str:
    """Return `text` with a joiner after every 30 combining marks in a row, because normalising them is quadratic.

    No language puts more than a few marks on a letter.
    """
    return _long_mark_runs().sub(lambda marks: marks[0] + _JOINER, text)


def decode_declared(content: bytes, declared: str) -> str | None:
    """Return the text if `declared` is a known charset (not Unicode) and `content` is valid in it, else None."""
    label = declared.strip().lower()
    encoding = _BROWSER_ENCODING.get(label, label)
    if not _KNOWN_CHARSET.fullmatch(encoding):
        return None
    try:
        return content.decode(encoding.replace("windows-", "cp").replace("macintosh", "mac-roman"))
    except (UnicodeDecodeError, LookupError):
        return None


def display_name(source: SourceDocument) -> str:
    """Return the name of the document for messages: its source, otherwise its id."""
    return source.source or source.id


@cache
def _long_mark_runs() -> re.Pattern[str]:
    marks = "".join(chr(code) for code in range(0x300, 0x1F000) if unicodedata.combining(chr(code)))
    return re.compile(f"[{re.escape(marks)}]{{{_MAX_MARKS}}}(?=[{re.escape(marks)}])")


def _decoded(source: SourceDocument, declared: str) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if source.content.startswith(mark):
            return _decode_marked(source, mark, encoding)
    return _decode_unmarked(source, _charset_parameter(source.media_type) or declared)


def _decode_marked(source: SourceDocument, mark: bytes, encoding: str) -> str:
    try:
        return source.content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidDocument(
            f"{display_name(source)} is marked as {encoding} but is not valid at byte {error.start + len(mark)}.",
            remedy="Save it again as UTF-8.",
        ) from error


def _decode_unmarked(source: SourceDocument, declared: str) -> str:
    nul = source.content.find(b"\0")
    if nul >= 0:
        raise InvalidDocument(
            f"{display_name(source)} is binary, not text: there is a NUL at byte {nul}.",
            remedy="Convert it to UTF-8 text, or leave it out.",
        )
    try:
        return source.content.decode("utf-8")
    except UnicodeDecodeError as error:
        text = decode_declared(source.content, declared)
        if text is not None:
            return text
        raise InvalidDocument(
            f"{display_name(source)} is not valid UTF-8 at byte {error.start} (0x{source.content[error.start]:02x}).",
            remedy="Convert it to UTF-8, as in: iconv -f WINDOWS-1252 -t UTF-8",
        ) from error


def _charset_parameter(media_type: str) -> str:
    """Return the charset in a media type such as "text/html; charset=koi8-r", or the empty string."""
    for parameter in media_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"')
    return ""


def damaged_document(name: str, problem: str) -> InvalidDocument:
    """Return the error for a damaged document; `problem` states what is wrong."""
    return InvalidDocument(
        f"{name} is damaged: {problem.rstrip('.')}.", remedy="Copy or download it again, or save it again."
    )
