"""E-mail: a message's headers and body, or the messages of a mailbox one after another."""

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

from quipu.errors import InvalidDocument
from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse.decode import decode_declared, name_of, normalise
from quipu.parse.draft import Draft
from quipu.parse.html import HtmlParser
from quipu.parse.limits import MAX_MAIL_HEADER_LINES, MAX_MAIL_LINES, MAX_MAIL_PARTS
from quipu.parse.text import PlainTextParser

MAILBOX = "application/mbox"
_FROM_LINE = re.compile(  # it ends with a time
    rb"(?:\A|(?<=\n\n)|(?<=\r\n\r\n))From [^\n]{0,300}?\d\d:\d\d[^\n]{0,100}\n"
)
_HEADER_LINES = re.compile(rb"^(?:[^\s:]++:[^\n]*+\n|[ \t][^\n]*+\n)+", re.MULTILINE)
_MAX_RAW_HEADER = 20_000  # characters; reading more takes the square of the time
_HEADER = re.compile(rb"\s*(?:From |[A-Za-z][A-Za-z0-9-]*:)")
_MAX_HEADER = 2_000  # characters
_LISTED = ("From", "To", "Cc", "Date")
_BODY_TYPES = ("text/plain", "text/html")


class MailParser:
    """Reads Internet messages (RFC 5322): the plain text where there is one, else the HTML; attachments by name."""

    media_types = frozenset({"message/rfc822", MAILBOX})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the message under its subject, who wrote to whom and when as metadata; or the messages of a mailbox.

        Raises InvalidDocument where the bytes are no message, and for absurdly many parts.
        """
        if not _HEADER.match(source.content):
            raise InvalidDocument(
                f"{name_of(source)} is not an e-mail: it does not begin with headers.",
                remedy="Save the message from the mail program again, as .eml.",
            )
        draft = Draft(name_of(source))
        is_mailbox = source.media_type.startswith(MAILBOX)
        messages = _messages(source.content) if is_mailbox else iter([source.content])
        title = ""
        metadata: dict[str, MetadataValue] = {}
        for data in messages:
            message = _load(data, source)
            draft.path.leave(1)
            _add(draft, message)
            if not is_mailbox:
                title, metadata = _header(message, "Subject"), _metadata(message)
        return draft.document(title, metadata)


PARSER = MailParser()


def _messages(data: bytes) -> Iterator[bytes]:
    """Yield the messages of a mailbox: each begins with a line "From ", after an empty line (RFC 4155)."""
    lines = list(_FROM_LINE.finditer(data))
    ends = [*(line.start() for line in lines[1:]), len(data)]
    for line, end in zip(lines, ends, strict=False):
        yield data[line.end() : end]


def _load(data: bytes, source: SourceDocument) -> Message:
    _refuse_too_much(data, name_of(source))
    data = data.lstrip()
    if data.startswith(b"From "):  # the first line of a mailbox, left over the message
        data = data.partition(b"\n")[2]
    return message_from_bytes(data)


def _refuse_too_much(data: bytes, name: str) -> None:
    """Raise InvalidDocument for what the mail library would take too much memory or depth for."""
    what = ""
    if data.count(b"\n--") > MAX_MAIL_PARTS:
        what = f"more than {MAX_MAIL_PARTS:,} lines that can begin a part"
    elif data.count(b"\n") > MAX_MAIL_LINES:
        what = f"more than {MAX_MAIL_LINES:,} lines"
    elif any(data.count(b"\n", *lines.span()) > MAX_MAIL_HEADER_LINES for lines in _HEADER_LINES.finditer(data)):
        what = f"a header of more than {MAX_MAIL_HEADER_LINES:,} lines"
    if what:
        raise InvalidDocument(f"{name} has {what}.", remedy="Save the text of the message as a text file.")


def _add(draft: Draft, message: Message) -> None:
    """Add a message: its subject as heading, a line for each of the other headers, the body, the attachments' names."""
    draft.add_heading(_header(message, "Subject"), 1)
    lines = [f"{name}: {value}" for name in _LISTED if (value := _header(message, name))]
    parts = [part for part in message.walk() if not part.is_multipart()]
    body = _body(parts)
    draft.add("\n".join(lines) if body is not None else "")
    if body is not None:
        draft.append(_read(body, draft.name))
    names = [name for part in parts if part is not body and (name := _file_name(part))]
    draft.add(f"Attachments: {', '.join(names)}" if names else "")


def _body(parts: list[Message]) -> Message | None:
    """Return the part that is the text: plain where that says something, else HTML, never an attachment."""
    shown = [part for part in parts if part.get_content_disposition() != "attachment" and not _file_name(part)]
    for content_type in _BODY_TYPES:
        for part in shown:
            if part.get_content_type() == content_type and _bytes(part).strip():
                return part
    return None


def _read(part: Message, name: str) -> ParsedDocument:
    """Return the text of a part, in the character set it declares, or the nearest that fits."""
    data = _bytes(part)
    text = decode_declared(data, str(part.get_param("charset") or "")) or _guess(data)
    is_html = part.get_content_type() == "text/html"
    source = SourceDocument(id="", content=text.replace("\0", "").encode("utf-8", "replace"), source=name)
    return (HtmlParser() if is_html else PlainTextParser()).parse(source)


def _guess(data: bytes) -> str:
    """Return the text of bytes with no label, or a wrong one: UTF-8 where they are valid, else what Windows wrote."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _bytes(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _header(message: Message, name: str) -> str:
    """Return a header as a person reads it, on one line."""
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    raw = str(raw)[:_MAX_RAW_HEADER]
    return _words(_guess(raw.encode("utf-8", "surrogateescape")))  # bytes outside ASCII are kept as surrogates


def _file_name(part: Message) -> str:
    return _words(part.get_filename() or "")


def _words(encoded: str) -> str:
    """Return a header's encoded words as text, as it stands where they are wrong."""
    try:
        text = str(make_header(decode_header(encoded)))
    except (MessageError, LookupError, ValueError):
        text = encoded
    return " ".join(normalise(text.encode("utf-8", "replace").decode("utf-8")).split())[:_MAX_HEADER]


def _metadata(message: Message) -> dict[str, MetadataValue]:
    """Return subject, from, to, cc (addresses with names), date (ISO 8601) and message_id, as far as they are given."""
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
