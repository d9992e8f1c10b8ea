"""Bytes to text: byte order marks, UTF-8, a declared charset; then one form of newline, accent and space."""

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
# What pages declare, by what browsers read it as.
_READ_AS = {
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
_HALF = re.compile("[\ud800-\udfff]")
_MAX_MARKS = 30  # on one letter, as in the Stream-Safe Text Format (UAX #15, section 13)
_JOINER = "\u034f"  # combines with nothing
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff]")


def decode(source: SourceDocument, declared: str = "") -> str:
    """Return the text of `source`, normalised; `declared` is the charset it says it is in, if any.

    A byte order mark decides; else UTF-8 where the bytes are valid, else the declared charset (the media type's first).
    Raises InvalidDocument for binary data, for bytes in no encoding that is known, and for too many characters.
    """
    text = _decoded(source, declared)
    if len(text) > MAX_CHARACTERS:
        raise InvalidDocument(
            f"{name_of(source)} holds more than {MAX_CHARACTERS:,} characters of text.",
            remedy="Split it into several files.",
        )
    return normalise(text)


def normalise(text: str) -> str:
    r"""Return `text` in NFC, with \n as its only line end and no control characters but \n and \t.

    Halves of surrogate pairs, which JSON can escape and nothing can store, become replacement characters.
    """
    text = _CONTROL.sub("", _LINE_END.sub("\n", text))
    return text if text.isascii() else unicodedata.normalize("NFC", stream_safe(_HALF.sub("\ufffd", text)))


def stream_safe(text: str) -> str:
    """Return `text` with a joiner after every 30 combining marks in a row: to sort them takes the square of the time.

    No language puts more than a few on a letter.
    """
    return _towers().sub(lambda marks: marks[0] + _JOINER, text)


def decode_declared(data: bytes, declared: str) -> str | None:
    """Return the text where `declared` names a known charset, other than Unicode's, that `data` fits; else None."""
    label = declared.strip().lower()
    encoding = _READ_AS.get(label, label)
    if not _KNOWN_CHARSET.fullmatch(encoding):
        return None
    try:
        return data.decode(encoding.replace("windows-", "cp").replace("macintosh", "mac-roman"))
    except (UnicodeDecodeError, LookupError):
        return None


def name_of(source: SourceDocument) -> str:
    """Return what a person knows the document by, for messages."""
    return source.source or source.id


@cache
def _towers() -> re.Pattern[str]:
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
            f"{name_of(source)} is marked as {encoding} but is not valid at byte {error.start + len(mark)}.",
            remedy="Save it again as UTF-8.",
        ) from error


def _decode_unmarked(source: SourceDocument, declared: str) -> str:
    nul = source.content.find(b"\0")
    if nul >= 0:
        raise InvalidDocument(
            f"{name_of(source)} is binary, not text: there is a NUL at byte {nul}.",
            remedy="Convert it to UTF-8 text, or leave it out.",
        )
    try:
        return source.content.decode("utf-8")
    except UnicodeDecodeError as error:
        text = decode_declared(source.content, declared)
        if text is not None:
            return text
        raise InvalidDocument(
            f"{name_of(source)} is not valid UTF-8 at byte {error.start} (0x{source.content[error.start]:02x}).",
            remedy="Convert it to UTF-8, as in: iconv -f WINDOWS-1252 -t UTF-8",
        ) from error


def _charset_parameter(media_type: str) -> str:
    """Return the charset of a media type, as in "text/html; charset=koi8-r", or the empty string."""
    for parameter in media_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"')
    return ""
