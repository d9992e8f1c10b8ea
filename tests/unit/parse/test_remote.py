"""Tests of remote parsers, against a small server that plays Docling Serve and MinerU."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from quipu.errors import InvalidDocument, Overloaded, QuipuError, Unavailable
from quipu.model.document import SourceDocument
from quipu.model.secret import Secret
from quipu.parse import remote
from quipu.parse.remote import PAGE_BREAK, PARSER_SERVERS, RemoteParser, with_pages
from tests.unit.parse.files import texts

PDF = b"%PDF-1.7\r\n--not a boundary\r\n"
SOURCE = SourceDocument(id="a b.pdf", source="letters/a b.pdf", content=PDF, media_type="application/pdf")
DOCLING = {"document": {"md_content": f"# Glass\n\nIt came from Murano.\n\n{PAGE_BREAK}\n\n<!-- image -->\n\nIn 1947."}}
MINERU = {
    "backend": "pipeline",
    "version": "2",
    "results": {"document": {"md_content": "# Glass\n\n| a | b |\n|-|-|\n| 1 | 2 |"}},
}


@dataclass
class Script:
    """What the server answers, and what it was asked."""

    status: int = 200
    body: bytes = b""
    pause_s: float = 0.0
    requests: list[tuple[str, Message, dict[str, bytes]]] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)


@dataclass
class Server:
    script: Script
    url: str

    def parser(self, name: str, key: str = "", timeout_s: float = 20) -> RemoteParser:
        return RemoteParser(server=PARSER_SERVERS[name], url=self.url, timeout_s=timeout_s, key=Secret(key))


@pytest.fixture
def server() -> Iterator[Server]:
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
            parts = BytesParser().parsebytes(head + body).get_payload()
            assert isinstance(parts, list)
            form = {
                str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)
                for part in parts
                if isinstance(part, Message)
            }
            script.requests.append((self.path, self.headers, form))  # type: ignore[arg-type]
            self.send_response(script.status)
            self.send_header("Content-Length", str(len(script.body)))
            self.end_headers()
            self.wfile.write(script.body[:1])
            script.is_over.wait(script.pause_s)
            self.wfile.write(script.body[1:])

        def log_message(self, *arguments: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield Server(script, f"http://127.0.0.1:{running.server_port}/base")
    script.is_over.set()
    running.shutdown()
    running.server_close()


def test_docling_gets_the_file_and_gives_its_pages(server: Server) -> None:
    server.script.body = json.dumps(DOCLING).encode()
    parsed = server.parser("docling", "dk-1").parse(SOURCE)
    assert texts(parsed) == ["# Glass", "It came from Murano.", "In 1947."]
    assert [block.page for block in parsed.blocks] == [1, 1, 2]
    assert parsed.title == "Glass"
    ((path, headers, form),) = server.script.requests
    assert path == "/base/v1/convert/file"
    assert headers["X-Api-Key"] == "dk-1"
    assert form["files"] == PDF
    assert form["to_formats"] == b"md"
    assert "a b" not in str(headers)


def test_mineru_gets_the_file_and_gives_its_tables(server: Server) -> None:
    server.script.body = json.dumps(MINERU).encode()
    parsed = server.parser("mineru", "mk-1").parse(SOURCE)
    assert [block.kind for block in parsed.blocks] == ["heading", "table"]
    assert [block.page for block in parsed.blocks] == [None, None]
    ((path, headers, form),) = server.script.requests
    assert (path, form["return_md"], form["files"]) == ("/base/file_parse", b"true", PDF)
    assert headers["Authorization"] == "Bearer mk-1"


def test_one_form_feed_stands_between_two_pages() -> None:
    parsed = with_pages(f"A.\n\n{PAGE_BREAK}\n\n{PAGE_BREAK}\n\nB\fC.", "a.pdf")
    first, last = parsed.blocks
    assert (first.page, last.page) == (1, 3)
    assert parsed.text[first.end : last.start].count("\f") == 2
    assert parsed.text.count("\f") == 2


@pytest.mark.parametrize(
    ("status", "reply", "error", "message"),
    [
        (
            200,
            {"document": {"md_content": " "}, "status": "failure", "errors": ["no pages"]},
            InvalidDocument,
            "no pages",
        ),
        (200, ["?"], InvalidDocument, "found no text in letters/a b.pdf"),
        (422, {"detail": [{"msg": "bad file"}]}, InvalidDocument, "refused letters/a b.pdf .*bad file"),
        (500, {"error": "out of memory"}, Overloaded, "failed on letters/a b.pdf .status 500.: out of memory"),
        (504, {"detail": "too long"}, Overloaded, "too long"),
        (401, {"detail": "no"}, Unavailable, "refuses the key"),
        (404, {"detail": "Not Found"}, Unavailable, "no server of Docling Serve"),
        (302, {}, Unavailable, "no server of Docling Serve"),
    ],
)
def test_a_reply_without_text_is_an_error_with_the_remedy(
    server: Server, status: int, reply: object, error: type[QuipuError], message: str
) -> None:
    server.script.status, server.script.body = status, json.dumps(reply).encode()
    with pytest.raises(error, match=message) as caught:
        server.parser("docling", "dk-secret").parse(SOURCE)
    assert caught.value.remedy
    assert "dk-secret" not in str(caught.value)


def test_a_reply_that_is_late_or_too_large_fails_that_document(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.script.body, server.script.pause_s = json.dumps(DOCLING).encode(), 60
    with pytest.raises(Overloaded, match=r"took more than 0\.3 s"):
        server.parser("docling", timeout_s=0.3).parse(SOURCE)
    server.script.pause_s = 0
    monkeypatch.setattr(remote, "MAX_REMOTE_BYTES", 10)
    with pytest.raises(Overloaded, match="more than 10 bytes"):
        server.parser("docling").parse(SOURCE)


def test_a_server_that_is_gone_is_unavailable() -> None:
    parser = RemoteParser(server=PARSER_SERVERS["mineru"], url="http://127.0.0.1:9", timeout_s=1)
    with pytest.raises(Unavailable, match=r"MinerU does not answer at http://127\.0\.0\.1:9"):
        parser.parse(SOURCE)
