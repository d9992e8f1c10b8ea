"""E-mail: the headers and the body of one message, or of each message in a mailbox."""

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

from quipu.errors import InvalidDocument
from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse.builder import DocumentBuilder
from quipu.parse.decode import decode_declared, display_name, normalise
from quipu.parse.html import HtmlParser
from quipu.parse.limits import MAX_MAIL_HEADER_LINES, MAX_MAIL_LINES, MAX_MAIL_PARTS
from quipu.parse.pictures import are_pictures_read, picture_text, with_picture
from quipu.parse.text import PlainTextParser

MAILBOX = "application/mbox"
_FROM_LINE = re.compile(  # the line ends with a time
    rb"(?:\A|(?<=\n\n)|(?<=\r\n\r\n))From [^\n]{0,300}?\d\d:\d\d[^\n]{0,100}\n"
)
_HEADER_LINES = re.compile(rb"^(?:[^\s:]++:[^\n]*+\n|[ \t][^\n]*+\n)+", re.MULTILINE)
_MAX_RAW_HEADER = 20_000  # characters; the time to decode a header is quadratic
_HEADER = re.compile(rb"\s*(?:From |[A-Za-z][A-Za-z0-9-]*:)")
_MAX_HEADER = 2_000  # characters
_LISTED_HEADERS = ("From", "To", "Cc", "Date")
_BODY_TYPES = ("text/plain", "text/html")


class MailParser:
    """Reads Internet messages (RFC 5322): the plain text, otherwise the HTML, and the names of the attachments."""

    media_types = frozenset({"message/rfc822", MAILBOX})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the messages, each under its subject. A single message also has metadata: sender, recipients, date.

        Raises InvalidDocument if the bytes are not a message, or if it has too many parts or lines.
        """
        if not _HEADER.match(source.content):
            raise InvalidDocument(
                f"{display_name(source)} is not an e-mail: it does not begin with headers.",
                remedy="Save the message from the mail program again, as .eml.",
            )
        builder = DocumentBuilder(display_name(source))
        is_mailbox = source.media_type.startswith(MAILBOX)
        messages = _split_mailbox(source.content) if is_mailbox else iter([source.content])
        title = ""
        metadata: dict[str, MetadataValue] = {}
        for content in messages:
            message = _parse_message(content, source)
            builder.path.leave(1)
            _add(builder, message)
            if not is_mailbox:
                title, metadata = _header(message, "Subject"), _metadata(message)
        return builder.build(title, metadata)


PARSER = MailParser()


def _split_mailbox(content: bytes) -> Iterator[bytes]:
    """Yield the messages of a mailbox: each begins with a line "From " after an empty line (RFC 4155)."""
    lines = list(_FROM_LINE.finditer(content))
    ends = [*(line.start() for line in lines[1:]), len(content)]
    for line, end in zip(lines, ends, strict=False):
        yield content[line.end() : end]


def _parse_message(content: bytes, source: SourceDocument) -> Message:
    _check_size(content, display_name(source))
    content = content.lstrip()
    if content.startswith(b"From "):  # the separator line of a mailbox, still in front of the message
        content = content.partition(b"\n")[2]
    return message_from_bytes(content)


def _check_size(content: bytes, name: str) -> None:
    """Raise InvalidDocument if the mail library would need too much memory or recursion for the message."""
    what = ""
    if content.count(b"\n--") > MAX_MAIL_PARTS:
        what = f"more than {MAX_MAIL_PARTS:,} lines that can begin a part"
    elif content.count(b"\n") > MAX_MAIL_LINES:
        what = f"more than {MAX_MAIL_LINES:,} lines"
    elif any(content.count(b"\n", *lines.span()) > MAX_MAIL_HEADER_LINES for lines in _HEADER_LINES.finditer(content)):
        what = f"a header of more than {MAX_MAIL_HEADER_LINES:,} lines"
    if what:
        raise InvalidDocument(f"{name} has {what}.", remedy="Save the text of the message as a text file.")


def _add(builder: DocumentBuilder, message: Message) -> None:
    """Add a message: its subject as heading, one line per header, the body, and the names of the attachments."""
    builder.add_heading(_header(message, "Subject"), 1)
    lines = [f"{name}: {value}" for name in _LISTED_HEADERS if (value := _header(message, name))]
    parts = [part for part in message.walk() if not part.is_multipart()]
    body = _body(parts)
    builder.add("\n".join(lines) if body is not None else "")
    if body is not None:
        builder.append(_read(body, builder.name))
    names = [name for part in parts if part is not body and (name := _file_name(part))]
    builder.add(f"Attachments: {', '.join(names)}" if names else "")
    for part in parts if are_pictures_read() else ():
        if part.get_content_maintype() == "image":
            builder.add(picture_text(with_picture("", _payload(part))))


def _body(parts: list[Message]) -> Message | None:
    """Return the part with the text: plain text unless it is blank, otherwise HTML, never an attachment."""
    candidates = [part for part in parts if part.get_content_disposition() != "attachment" and not _file_name(part)]
    for content_type in _BODY_TYPES:
        for part in candidates:
            if part.get_content_type() == content_type and _payload(part).strip():
                return part
    return None


def _read(part: Message, name: str) -> ParsedDocument:
    """Return the text of a part, decoded with its declared charset, otherwise as `_guess_text` does."""
    content = _payload(part)
    text = decode_declared(content, str(part.get_param("charset") or "")) or _guess_text(content)
    is_html = part.get_content_type() == "text/html"
    source = SourceDocument(id="", content=text.replace("\0", "").encode("utf-8", "replace"), source=name)
    return (HtmlParser() if is_html else PlainTextParser()).parse(source)


def _guess_text(content: bytes) -> str:
    """Decode bytes whose charset is missing or wrong: as UTF-8 if they are valid, otherwise as Windows-1252."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _payload(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _header(message: Message, name: str) -> str:
    """Return a header as readable text on one line."""
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    raw = str(raw)[:_MAX_RAW_HEADER]
    return _decode_words(
        _guess_text(raw.encode("utf-8", "surrogateescape"))
    )  # the mail library stores non-ASCII bytes as surrogates


def _file_name(part: Message) -> str:
    return _decode_words(part.get_filename() or "")


def _decode_words(encoded: str) -> str:
    """Return a header with its encoded words as text; invalid encoded words stay as they are."""
    try:
        text = str(make_header(decode_header(encoded)))
    except (MessageError, LookupError, ValueError):
        text = encoded
    return " ".join(normalise(text.encode("utf-8", "replace").decode("utf-8")).split())[:_MAX_HEADER]


def _metadata(message: Message) -> dict[str, MetadataValue]:
    """Return subject, from, to, cc (addresses with names), date (ISO 8601) and message_id, without missing ones."""
    values = {name.lower(): _header(message, name) for name in ("Subject", "From", "To", "Cc")}
    metadata: dict[str, MetadataValue] = {
        "subject": values["subject"],
        "from": values["from"],
        "to": _addresses(values["to"]),
        "cc": _addresses(values["cc"]),
        "date": _date(message),
        "message_id": _header(message, "Message-ID").strip("<>"),
    }
    return {key: value for key, value in metadata.items() if value}


def _addresses(value: str) -> tuple[str, ...]:
    return tuple(f"{name} <{address}>" if name else address for name, address in getaddresses([value]) if address)


def _date(message: Message) -> str:
    try:
        return parsedate_to_datetime(str(message.get("Date", ""))).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
