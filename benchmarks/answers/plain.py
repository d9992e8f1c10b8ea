"""The plain text of documents, made without Quipu: what the baselines search and what the questions are checked on."""

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pypdfium2
from selectolax.lexbor import LexborHTMLParser

BLOCKS = "p,div,li,dt,dd,tr,pre,h1,h2,h3,h4,h5,h6,table,ul,ol,dl,blockquote,section,br,hr"
CELLS = "td,th"
UNREAD = "script,style,noscript,svg"
CHARSET = re.compile(rb"charset=[\"']?([A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class PlainDocument:
    """The name of a document in its folder, and its text."""

    id: str
    text: str


def read_plain(file: Path) -> list[PlainDocument]:
    """Return the documents of a `plain.jsonl`."""
    with file.open(encoding="utf-8") as lines:
        return [PlainDocument(row["id"], row["text"]) for row in map(json.loads, lines)]


def write_plain(folder: Path, file: Path) -> None:
    """Write the plain text of every document below `folder` into `file`, ordered by name."""
    with file.open("w", encoding="utf-8") as output:
        for document in plain_documents(folder):
            output.write(json.dumps({"id": document.id, "text": document.text}, ensure_ascii=False) + "\n")


def plain_documents(folder: Path) -> Iterator[PlainDocument]:
    """Yield every document below `folder`, ordered by name."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield PlainDocument(path.relative_to(folder).as_posix(), plain_text(path))


def plain_text(path: Path) -> str:
    """Return the text of one file: HTML without its tags, PDF page by page, anything else as it stands."""
    if path.suffix == ".pdf":
        return pdf_text(path)
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    if path.suffix in (".html", ".htm"):
        return html_text(content)
    return content.decode("utf-8", errors="replace")


def pdf_text(path: Path) -> str:
    """Return the pages of a PDF, a blank line between two."""
    with pypdfium2.PdfDocument(path) as pdf:
        pages = [page.get_textpage().get_text_range() for page in pdf]
    return "\n\n".join(pages).replace("\r\n", "\n")


def html_text(content: bytes) -> str:
    """Return the text of a page: a line for a block, two spaces between the cells of a row."""
    charset = CHARSET.search(content[:2000])
    tree = LexborHTMLParser(content.decode(charset[1].decode() if charset else "utf-8", errors="replace"))
    for node in tree.css(UNREAD):
        node.decompose()
    for node in tree.css(BLOCKS):
        node.insert_before("\n")
        node.insert_after("\n")
    for node in tree.css(CELLS):
        node.insert_after("  ")
    text = tree.body.text() if tree.body else ""
    return re.sub(r"\n\s*\n\s*\n+", "\n\n", text)
