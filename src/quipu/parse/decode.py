"""Decoding: bytes to text by byte order mark, UTF-8, named, declared or assumed charset, then normalised characters."""

import codecs
import re
import unicodedata
from dataclasses import replace
from functools import cache

from quipu.errors import InvalidDocument
from quipu.model.document import UNSURE, SourceDocument
from quipu.parse.encoding import assume_encoding, codec_of
from quipu.parse.limits import MAX_CHARACTERS

# Longest first: the mark of UTF-32 begins with the mark of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHARSET = re.compile(
    rb"""<(?:meta\s[^<>]{0,200}?charset|\?xml\s[^<>]{0,200}?encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)
_CHARSET_WITHIN = 4096  # bytes
_CONTROL_BYTES = bytes(code for code in range(0x20) if code not in b"\t\n\v\f\r\x1b")
_MIN_TEXT_SHARE = 0.98  # of bytes that are no control characters
_MARKUP = re.compile("html|xml")
_MAX_INVALID = 1_000  # an assumed encoding may leave one character in so many invalid
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
    try:
        return content.decode(codec_of(declared))
    except (UnicodeDecodeError, LookupError):
        return None


def declared_charset(content: bytes) -> str:
    """Return the charset that an HTML or XML document declares in its first bytes, or the empty string."""
    declared = _CHARSET.search(content[:_CHARSET_WITHIN])
    return declared[1].decode("ascii", "replace") if declared else ""


def in_utf8(source: SourceDocument) -> tuple[SourceDocument, str]:
    """Return `source` with its text in UTF-8, and the encoding that was assumed; "" where nothing was assumed.

    Where the bytes are neither marked nor valid UTF-8, the metadata `encoding` may name their charset, or the media
    type or an HTML or XML document declares it. Otherwise the most probable one is assumed. Bytes without any are
    returned as they are. Raises InvalidDocument if the bytes are invalid in the charset that the metadata names.
    """
    content = source.content
    if _is_unicode(content) or b"\0" in content:
        return source, ""
    if named := str(source.metadata.get("encoding") or ""):
        text = decode_declared(content, named)
        if text is None:
            raise InvalidDocument(
                f"{display_name(source)} is not text in the encoding {named[:40]!r} that its metadata names.",
                remedy="Name another, such as windows-1251, koi8-r, gb18030, big5 or shift_jis, or none.",
            )
        return replace(source, content=text.encode()), ""
    declared = declared_charset(content) if _MARKUP.search(source.media_type.lower()) else ""
    if decode_declared(content, _charset_parameter(source.media_type) or declared) is not None:
        return source, ""
    assumed = assume_encoding(content)
    if assumed is None:
        return source, ""
    text = content.decode(codec_of(assumed.name) or "utf-8", "replace")
    if text.count("\ufffd") * _MAX_INVALID > len(text):
        return source, ""
    return replace(source, content=text.encode()), assumed.name if assumed.is_sure else f"{assumed.name}{UNSURE}"


def is_text(head: bytes) -> bool:
    """Return whether the bytes at the start of a file are text, in Unicode or in an encoding that can be assumed."""
    if _is_marked(head):
        return True
    if b"\0" in head or len(head.translate(None, _CONTROL_BYTES)) < _MIN_TEXT_SHARE * len(head):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # its end may be cut within a character
    except UnicodeDecodeError:
        return assume_encoding(head) is not None
    return True


def _is_marked(content: bytes) -> bool:
    return content.startswith(tuple(mark for mark, _ in _BYTE_ORDER_MARKS))


def _is_unicode(content: bytes) -> bool:
    if _is_marked(content):
        return True
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


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
            f"{display_name(source)} is not UTF-8 text (byte {error.start}, 0x{source.content[error.start]:02x}), "
            "and no other encoding makes text of it.",
            remedy="Name its encoding, as in: quipu add FILE --meta encoding=windows-1251",
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
