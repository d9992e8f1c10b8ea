"""EPUB: e-books with their chapters in reading order; each chapter is an HTML page in a ZIP archive."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from quipu.errors import InvalidDocument
from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse.archive import ZipArchive
from quipu.parse.builder import DocumentBuilder
from quipu.parse.decode import damaged_document
from quipu.parse.html import HtmlParser
from quipu.parse.xml import attribute, child, children, descendants, local, parse_tree

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_FONT_ALGORITHMS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_PAGES = frozenset({"application/xhtml+xml", "text/html"})
_KEYS = {
    "creator": "author",
    "language": "language",
    "publisher": "publisher",
    "date": "date",
    "identifier": "identifier",
}
_MAX_VALUE = 1_000  # characters of one metadata value


class EpubParser:
    """Reads EPUB 2 and 3: the pages of the spine, without the navigation page."""

    media_types = frozenset({"application/epub+zip"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the chapters with their headings, the book's title, author, language, publisher and date.

        Raises InvalidDocument if the book is damaged, protected (DRM), or would exhaust memory.
        """
        archive = ZipArchive(source)
        _refuse_protected(archive)
        package_part = _package_part(archive)
        package = parse_tree(archive.read(package_part), archive.name)
        builder = DocumentBuilder(archive.name)
        for part in _spine(package, package_part):
            if part not in archive:
                raise damaged_document(archive.name, f"its chapter {part} is missing")
            page = SourceDocument(id="", content=archive.read(part), source=archive.name, media_type="text/html")
            builder.append(HtmlParser(partial(_picture_file, archive, part)).parse(page))
        title, metadata = _metadata(package)
        return builder.build(title, metadata)


PARSER = EpubParser()


def _refuse_protected(archive: ZipArchive) -> None:
    """Raise InvalidDocument if anything other than fonts is encrypted."""
    if _ENCRYPTION not in archive:
        return
    root = parse_tree(archive.read(_ENCRYPTION), archive.name)
    algorithms = {attribute(method, "Algorithm") for method in descendants(root, "EncryptionMethod")}
    if not algorithms <= set(_FONT_ALGORITHMS):
        raise InvalidDocument(
            f"{archive.name} is protected (DRM): its text is encrypted.", remedy="Use a copy without protection."
        )


def _package_part(archive: ZipArchive) -> str:
    """Return the name of the package document, which lists the other parts of the book."""
    container = parse_tree(archive.read(_CONTAINER), archive.name)
    part = next((attribute(root_file, "full-path") for root_file in descendants(container, "rootfile")), "")
    if part not in archive:
        raise damaged_document(archive.name, "the list of its chapters is missing")
    return part


def _spine(package: Element, package_part: str) -> Iterator[str]:
    """Yield the names of the pages in reading order, each once."""
    manifest = child(package, "manifest")
    entries = () if manifest is None else children(manifest, "item")
    entry_by_id = {attribute(entry, "id"): entry for entry in entries}
    yielded = set()
    for reference in descendants(package, "itemref"):
        entry = entry_by_id.get(attribute(reference, "idref"))
        if entry is None or attribute(entry, "media-type") not in _PAGES:
            continue
        is_navigation = "nav" in attribute(entry, "properties").split()
        part = normpath(join(dirname(package_part), unquote(attribute(entry, "href"))))
        if part not in yielded and not is_navigation:
            yielded.add(part)
            yield part


def _picture_file(archive: ZipArchive, page: str, address: str) -> bytes:
    """Return the file that `page` shows at `address`; b"" if the book has none, or if it cannot be unpacked."""
    name = normpath(join(dirname(page), unquote(address)))
    with suppress(InvalidDocument):
        return archive.read(name) if name in archive else b""
    return b""


def _metadata(package: Element) -> tuple[str, dict[str, MetadataValue]]:
    """Return the title, and the first author, language, publisher, date and identifier."""
    values: dict[str, str] = {}
    metadata = child(package, "metadata")
    for element in () if metadata is None else metadata.iter():
        text = " ".join((element.text or "").split())[:_MAX_VALUE]
        if text:
            values.setdefault(local(element), text)
    return values.get("title", ""), {key: values[name] for name, key in _KEYS.items() if name in values}
