"""OpenDocument text: headings, paragraphs, lists and tables of an .odt file."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse.archive import ZipArchive
from quipu.parse.builder import DocumentBuilder, add_table
from quipu.parse.xml import attribute, child, children, descendants, local, number, parse_tree

_CONTENT = "content.xml"
_META = "meta.xml"
_SKIPPED = frozenset(["note", "annotation", "tracked-changes", "sequence-decls", "ruby-text", "bibliography-mark"])
_TEXT_BY_TAG = {"tab": "\t", "line-break": "\n"}
_CONTAINERS = frozenset(["section", "index-body", "text-box", "frame"])
_MAX_REPEATED = 1_000  # spaces that one element stands for, or cells of a row that repeated ones make
_MAX_VALUE = 1_000  # characters of one metadata value
_KEYS = {"initial-creator": "author", "creator": "author", "subject": "subject", "language": "language"}
_DATES = {"creation-date": "created", "date": "modified"}


class OdtParser:
    """Reads text documents of LibreOffice and other programs; footnotes follow their paragraph."""

    media_types = frozenset({"application/vnd.oasis.opendocument.text"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the blocks, the title and the metadata. Raises InvalidDocument if the file is damaged or protected."""
        archive = ZipArchive(source)
        builder = DocumentBuilder(archive.name)
        body = child(parse_tree(archive.read(_CONTENT), archive.name), "body", "text")
        if body is not None:
            _add_blocks(builder, body)
        title, metadata = _metadata(archive)
        return builder.build(title or _title(body), metadata)


PARSER = OdtParser()


def _add_blocks(builder: DocumentBuilder, parent: Element) -> None:
    for node in parent:
        name = local(node)
        if name == "h":
            builder.add_heading(_text(node), number(node, "outline-level") or 1)
        elif name == "p":
            _add_paragraph(builder, node)
        elif name == "list":
            builder.add("\n".join(_list_lines(node)), "list")
        elif name == "table":
            add_table(builder, _rows(node))
        elif name in _CONTAINERS or name.endswith("index") or name.startswith("table-of"):
            _add_blocks(builder, node)


def _add_paragraph(builder: DocumentBuilder, paragraph: Element) -> None:
    builder.add(_text(paragraph).strip())
    for node in _outermost(paragraph, "note", "text-box"):
        if local(node) == "text-box":
            _add_blocks(builder, node)
        elif (body := child(node, "note-body")) is not None:
            builder.add(" ".join(_text(part).strip() for part in descendants(body, "p")))


def _outermost(parent: Element, *names: str) -> Iterator[Element]:
    """Yield the descendants with one of the local `names`, without those inside another one."""
    for node in parent:
        if local(node) in names:
            yield node
        else:
            yield from _outermost(node, *names)


def _list_lines(node: Element, depth: int = 0) -> Iterator[str]:
    for entry in children(node, "list-item", "list-header"):
        marker = "  " * depth + "- "
        for part in entry:
            if local(part) == "list":
                yield from _list_lines(part, depth + 1)
            elif text := _text(part).strip():
                yield marker + text
                marker = " " * len(marker)


def _rows(table: Element) -> Iterator[list[str]]:
    for row in _outermost(table, "table-row"):
        cells: list[str] = []
        for cell in children(row, "table-cell", "covered-table-cell"):
            text = " ".join(" ".join(_text(part).split()) for part in descendants(cell, "p", "h"))
            n_repeated = number(cell, "number-columns-repeated") or 1
            cells += [text] * min(n_repeated, max(1, _MAX_REPEATED - len(cells)))
        yield cells


def _text(node: Element) -> str:
    """Return the text of a paragraph without its notes, comments and text boxes."""
    return "".join(_texts(node))


def _texts(node: Element) -> Iterator[str]:
    yield node.text or ""
    for part in node:
        name = local(part)
        if name == "s":
            yield " " * min(number(part, "c") or 1, _MAX_REPEATED)
        elif name in _TEXT_BY_TAG:
            yield _TEXT_BY_TAG[name]
        elif name not in _SKIPPED and name != "text-box":
            yield from _texts(part)
        yield part.tail or ""


def _title(body: Element | None) -> str:
    """Return the text of the paragraph in the style Title, or of the only heading of level 1."""
    if body is None:
        return ""
    titles = [_text(node) for node in children(body, "p") if attribute(node, "style-name") == "Title"]
    headings = [_text(node) for node in descendants(body, "h") if (number(node, "outline-level") or 1) == 1]
    return titles[0] if titles else headings[0] if len(headings) == 1 else ""


def _metadata(archive: ZipArchive) -> tuple[str, dict[str, MetadataValue]]:
    if _META not in archive:
        return "", {}
    values: dict[str, str] = {}
    for element in parse_tree(archive.read(_META), archive.name).iter():
        if text := " ".join((element.text or "").split())[:_MAX_VALUE]:
            values.setdefault(local(element), text)
    names = {**_KEYS, **_DATES}
    return values.get("title", ""), {names[name]: values[name] for name in reversed(names) if name in values}
