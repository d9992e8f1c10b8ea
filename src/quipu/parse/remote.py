"""Remote parsers: files are parsed by a server of Docling or MinerU, which returns Markdown; one file a request."""

import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from types import MappingProxyType
from typing import NoReturn
from urllib.parse import urlsplit

from quipu.errors import InvalidDocument, Overloaded, Unavailable
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.model.ids import digest_bytes
from quipu.model.secret import Secret
from quipu.parse.decode import display_name, normalise
from quipu.parse.limits import MAX_CHARACTERS, MAX_REMOTE_BYTES
from quipu.parse.markdown import parse_markdown

IMAGE_TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".png": "image/png",
        ".jpg": "image/jpeg",
        ".jpeg": "image/jpeg",
        ".tif": "image/tiff",
        ".tiff": "image/tiff",
        ".bmp": "image/bmp",
        ".webp": "image/webp",
    }
)
PAGE_BREAK = "<!-- page break -->"
_READ_SIZE = 1 << 16
_CONNECT_S = 10.0
_MAX_MESSAGE = 300  # characters of a server's message
_PLACEHOLDER = re.compile(r"<!--\s*(?:image|formula-not-decoded)\s*-->")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserServer:
    """How a kind of server is asked: its path, the form fields beside the file, the header of its key, and its reply.

    `markdown` returns the Markdown in a reply, "" if there is none.
    """

    name: str
    path: str
    fields: Mapping[str, str]
    key_header: str
    markdown: Callable[[object], str]


def _docling_markdown(reply: object) -> str:
    return _text_at(reply, "document", "md_content")


def _mineru_markdown(reply: object) -> str:
    results = reply.get("results") if isinstance(reply, dict) else None
    texts = (_text_at(result, "md_content") for result in results.values()) if isinstance(results, dict) else ()
    return next(filter(None, texts), "")


def _text_at(value: object, *path: str) -> str:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


PARSER_SERVERS: Mapping[str, ParserServer] = MappingProxyType(
    {
        "docling": ParserServer(
            name="Docling Serve",
            path="/v1/convert/file",
            fields={"to_formats": "md", "image_export_mode": "placeholder", "md_page_break_placeholder": PAGE_BREAK},
            key_header="X-Api-Key",
            markdown=_docling_markdown,
        ),
        "mineru": ParserServer(
            name="MinerU",
            path="/file_parse",
            fields={"return_md": "true"},
            key_header="Authorization",
            markdown=_mineru_markdown,
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteParser:
    """Sends files to the server at `url`, which must answer within `timeout_s` seconds. Redirects are not followed."""

    server: ParserServer
    url: str
    timeout_s: float
    key: Secret = field(default_factory=Secret)

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the document that the server reads in a file, with its pages where the server tells them.

        Raises InvalidDocument if the server refuses the file or finds no text in it, Overloaded if it fails or is too
        late, and Unavailable if it cannot be reached.
        """
        name = display_name(source)
        status, body = self._post(source, name)
        try:
            reply = json.loads(body)
        except (ValueError, RecursionError):
            reply = None
        markdown = self.server.markdown(reply) if status == 200 else ""
        if not markdown.strip():
            self._refuse(status, reply, name)
        if len(markdown) > MAX_CHARACTERS:
            raise InvalidDocument(f"{name} holds more than {MAX_CHARACTERS:,} characters of text.", remedy="Split it.")
        return with_pages(markdown, name)

    def _refuse(self, status: int, reply: object, name: str) -> NoReturn:
        """Raise the error for a reply without text."""
        problem = _message(reply)
        server = f"{self.server.name} at {self.url}"
        if status in (401, 403):
            raise Unavailable(f"{server} refuses the key.", remedy="Set QUIPU_PARSER_KEY, or the host in secrets.toml.")
        if status in (404, 405) or 300 <= status < 400:
            remedy = f"Set parser_url to an address below which it has {self.server.path}."
            raise Unavailable(f"{self.url} is no server of {self.server.name} (status {status}).", remedy=remedy)
        if status == 429 or status >= 500:
            raise Overloaded(f"{server} failed on {name} (status {status}){problem}.", remedy="See its log; try again.")
        what = f"refused {name} (status {status})" if status != 200 else f"found no text in {name}"
        raise InvalidDocument(f"{server} {what}{problem}.", remedy="Check the file, or leave it out.")

    def _post(self, source: SourceDocument, name: str) -> tuple[int, bytes]:
        """Send the file, and return the status and the body of the response."""
        parts = urlsplit(self.url)
        boundary = digest_bytes(source.content)  # which no file holds
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", "Accept": "application/json"}
        if self.key.reveal():
            is_bearer = self.server.key_header == "Authorization"
            headers[self.server.key_header] = f"Bearer {self.key.reveal()}" if is_bearer else self.key.reveal()
        end = time.monotonic() + self.timeout_s
        connection = _connection(parts.scheme, parts.hostname or "", parts.port)
        try:
            connection.connect()
        except (OSError, HTTPException) as error:
            reason = getattr(error, "strerror", None) or error
            raise Unavailable(
                f"{self.server.name} does not answer at {self.url}: {reason}.", remedy="Start it, or set parser_url."
            ) from error
        try:
            sock = connection.sock  # the connection forgets it when the server closes it
            sock.settimeout(self.timeout_s)
            path = parts.path.rstrip("/") + self.server.path
            connection.request("POST", path, _form(source, self.server.fields, boundary), headers)
            response = connection.getresponse()
            return response.status, _read(response, sock, end)
        except (OSError, HTTPException) as error:
            is_late = isinstance(error, TimeoutError)
            what = f"took more than {self.timeout_s:g} s" if is_late else f"broke off ({error or type(error).__name__})"
            remedy = "Set a larger parser_timeout_s, or split it." if is_late else "See its log; try again."
            raise Overloaded(f"{self.server.name} at {self.url} {what} with {name}.", remedy=remedy) from error
        finally:
            connection.close()


def with_pages(markdown: str, name: str) -> ParsedDocument:
    """Return the document in Markdown with PAGE_BREAK between its pages; without any, its pages are unknown."""
    pages = [normalise(_PLACEHOLDER.sub("", page)).strip() for page in markdown.split(PAGE_BREAK)]
    parsed = parse_markdown("\n\n\f\n\n".join(pages), name)
    if len(pages) == 1:
        return parsed
    blocks = []
    page, end = 1, 0
    for block in parsed.blocks:
        page += parsed.text.count("\f", end, block.start)
        end = block.start
        blocks.append(replace(block, page=page))
    return replace(parsed, blocks=tuple(blocks))


def _connection(scheme: str, host: str, port: int | None) -> HTTPConnection:
    if scheme == "https":
        return HTTPSConnection(host, port, timeout=_CONNECT_S, context=ssl.create_default_context())
    return HTTPConnection(host, port, timeout=_CONNECT_S)


def _form(source: SourceDocument, fields: Mapping[str, str], boundary: str) -> bytes:
    """Return a form with the fields and the file. The server gets the file's suffix, not its name."""
    lines = [f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{fields[key]}\r\n' for key in fields]
    suffix = re.search(r"\.\w{1,10}\Z", source.source)
    head = f'Content-Disposition: form-data; name="files"; filename="document{suffix[0] if suffix else ""}"\r\n'
    lines.append(f"--{boundary}\r\n{head}Content-Type: {source.media_type}\r\n\r\n")
    return b"".join(("".join(lines).encode(), source.content, f"\r\n--{boundary}--\r\n".encode()))


def _read(response: HTTPResponse, sock: socket.socket, end: float) -> bytes:
    """Return the body. Raises TimeoutError at the time `end`, OSError if it is too large."""
    body = bytearray()
    while True:
        remaining = end - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        if sock.fileno() >= 0:  # closed when the last bytes have arrived
            sock.settimeout(remaining)
        received = response.read1(_READ_SIZE)
        if not received:
            return bytes(body)
        body += received
        if len(body) > MAX_REMOTE_BYTES:
            raise OSError(f"it sent more than {MAX_REMOTE_BYTES:,} bytes")


def _message(reply: object) -> str:
    """Return what the server says of a problem, after a colon; "" if it says nothing."""
    if not isinstance(reply, dict):
        return ""
    problem = next((reply[name] for name in ("errors", "error", "detail", "message") if reply.get(name)), "")
    text = " ".join((problem if isinstance(problem, str) else json.dumps(problem, ensure_ascii=False)).split())
    return f": {text[:_MAX_MESSAGE].rstrip('.')}" if text else ""
