"""EPUB: e-books chapter by chapter in reading order, each an HTML page in an archive."""

from collections.abc import Iterator
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from quipu.errors import InvalidDocument
from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse.damage import damaged
from quipu.parse.draft import Draft
from quipu.parse.html import HtmlParser
from quipu.parse.xml import attribute, child, children, descendants, load_tree, local
from quipu.parse.zipped import Archive

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
    """Reads EPUB 2 and 3: the pages of the spine, without the table of contents made for the reader's device."""

    media_types = frozenset({"application/epub+zip"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the chapters with their headings, the book's title, author, language, publisher and date.

        Raises InvalidDocument where the book is protected (DRM), or made to exhaust memory.
        """
        archive = Archive(source)
        _refuse_protected(archive)
        package_part = _package_part(archive)
        package = load_tree(archive.read(package_part), archive.name)
        draft = Draft(archive.name)
        for part in _spine(package, package_part):
            if part not in archive:
                raise damaged(archive.name, f"its chapter {part} is missing")
            page = SourceDocument(id="", content=archive.read(part), source=archive.name, media_type="text/html")
            draft.append(HtmlParser().parse(page))
        title, metadata = _metadata(package)
        return draft.document(title, metadata)


PARSER = EpubParser()


def _refuse_protected(archive: Archive) -> None:
    """Raise InvalidDocument where more than fonts is encrypted."""
    if _ENCRYPTION not in archive:
        return
    root = load_tree(archive.read(_ENCRYPTION), archive.name)
    algorithms = {attribute(each, "Algorithm") for each in descendants(root, "EncryptionMethod")}
    if not algorithms <= set(_FONT_ALGORITHMS):
        raise InvalidDocument(
            f"{archive.name} is protected (DRM): its text is encrypted.", remedy="Use a copy without protection."
        )


def _package_part(archive: Archive) -> str:
    """Return the name of the part that lists the book's others."""
    container = load_tree(archive.read(_CONTAINER), archive.name)
    part = next((attribute(each, "full-path") for each in descendants(container, "rootfile")), "")
    if part not in archive:
        raise damaged(archive.name, "the list of its chapters is missing")
    return part


def _spine(package: Element, package_part: str) -> Iterator[str]:
    """Yield the names of the pages in reading order, each once."""
    manifest = child(package, "manifest")
    items = {attribute(each, "id"): each for each in (() if manifest is None else children(manifest, "item"))}
    seen = set()
    for reference in descendants(package, "itemref"):
        item = items.get(attribute(reference, "idref"))
        if item is None or attribute(item, "media-type") not in _PAGES:
            continue
        is_contents = "nav" in attribute(item, "properties").split()
        part = normpath(join(dirname(package_part), unquote(attribute(item, "href"))))
        if part not in seen and not is_contents:
            seen.add(part)
            yield part


def _metadata(package: Element) -> tuple[str, dict[str, MetadataValue]]:
    """Return the title, and the first author, language, publisher, date and identifier."""
    found: dict[str, str] = {}
    described = child(package, "metadata")
    for each in () if described is None else described.iter():
        text = " ".join((each.text or "").split())[:_MAX_VALUE]
        if text:
            found.setdefault(local(each), text)
    return found.get("title", ""), {key: found[name] for name, key in _KEYS.items() if name in found}
