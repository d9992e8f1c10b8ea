"""PPTX: presentations; each slide is a page under its title, with tables, diagrams and speaker notes."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.archive import OfficePackage, relation_id
from quipu.parse.builder import DocumentBuilder, add_table
from quipu.parse.pictures import picture_text
from quipu.parse.xml import attribute, child, children, descendants, local, number

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
MACRO_MEDIA_TYPE = "application/vnd.ms-powerpoint.presentation.macroenabled.12"

_TITLES = frozenset({"title", "ctrTitle"})
_FURNITURE = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})
_MAX_LIST_DEPTH = 9


class PptxParser:
    """Reads PowerPoint's XML: each slide is a page, its title a heading. Masters and layouts are left out."""

    media_types = frozenset({MEDIA_TYPE, MACRO_MEDIA_TYPE})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text of the slides in order; the title is in the properties, otherwise on the first slide.

        Raises InvalidDocument if the file is damaged, protected, or would exhaust memory.
        """
        package = OfficePackage(source)
        reader = _SlideReader(package)
        for page, part in enumerate(_slides(package), 1):
            reader.read(part, page)
        title, metadata = package.properties()
        return reader.builder.build(title or reader.title, metadata)


PARSER = PptxParser()


def _slides(package: OfficePackage) -> Iterator[str]:
    """Yield the part names of the slides in presentation order."""
    relations = package.relations(package.main)
    for slide in descendants(package.tree(package.main), "sldId"):
        relation = relations.get(relation_id(slide))
        if relation is not None and relation.target in package.archive:
            yield relation.target


class _SlideReader:
    """Reads slides into a builder."""

    def __init__(self, package: OfficePackage) -> None:
        self.title = ""
        self.builder = DocumentBuilder(package.name)
        self._package = package

    def read(self, part: str, page: int) -> None:
        """Read one slide: its title first, then its other shapes, diagrams and notes."""
        root = self._package.tree(part)
        self._package.describe_pictures(root, part)
        shapes = list(_shapes(root))
        title = " ".join(text for shape in shapes if _placeholder(shape) in _TITLES for text in _lines(shape))
        self.builder.path.leave(1)
        self.builder.add_heading(title, 1, page=page)
        self.title = self.title or " ".join(title.split())
        for shape in shapes:
            self._shape(shape, page)
        self._diagrams(part, page)
        self._notes(part, page)

    def _shape(self, shape: Element, page: int) -> None:
        kind = _placeholder(shape)
        if kind in _TITLES or kind in _FURNITURE:
            return
        if local(shape) in ("pic", "graphicFrame"):
            properties = next(descendants(shape, "cNvPr"), None)
            is_decoration = next(descendants(shape, "decorative"), None) is not None
            alt = attribute(properties, "descr") or attribute(properties, "title")
            self.builder.add("" if is_decoration else picture_text(alt), page=page)
        if local(shape) == "graphicFrame":
            for table in descendants(shape, "tbl"):
                has_header = attribute(child(table, "tblPr"), "firstRow") in ("1", "true")
                rows = ([_one_line(cell) for cell in children(row, "tc")] for row in children(table, "tr"))
                add_table(self.builder, rows, has_header=has_header, page=page)
            return
        lines = list(_lines(shape))
        is_list = kind is not None and len(lines) > 1  # several lines in a placeholder are bullet points
        if is_list:
            self.builder.add("\n".join(_bullet_line(line) for line in lines), "list", page=page)
        else:
            self.builder.add("\n".join(line.strip() for line in lines), page=page)

    def _diagrams(self, part: str, page: int) -> None:
        for relation in self._package.relations(part).values():
            if relation.kind == "diagramData" and relation.target in self._package.archive:
                points = descendants(self._package.tree(relation.target), "pt")
                lines = [_bullet_line(text) for point in points if (text := _one_line(point))]
                self.builder.add("\n".join(lines), "list", page=page)

    def _notes(self, part: str, page: int) -> None:
        notes = self._package.related(part, "notesSlide")
        if not notes:
            return
        for shape in _shapes(self._package.tree(notes)):
            if _placeholder(shape) == "body":
                lines = [line.strip() for line in _lines(shape)]
                self.builder.add("Notes: " + "\n".join(lines) if lines else "", page=page)


def _shapes(element: Element) -> Iterator[Element]:
    """Yield the shapes below `element` and in its groups, in order; fallbacks for old programs are left out."""
    for node in element:
        name = local(node)
        if name in ("sp", "pic", "graphicFrame"):
            yield node
        elif name != "Fallback":
            yield from _shapes(node)


def _placeholder(shape: Element) -> str | None:
    """Return the type of the shape's placeholder ("" if it has no type); None if the shape is no placeholder."""
    placeholder = next(descendants(shape, "ph"), None)
    return None if placeholder is None else attribute(placeholder, "type")


def _lines(shape: Element) -> Iterator[str]:
    """Yield the non-blank paragraphs of a shape, indented by two spaces per level."""
    for paragraph in descendants(shape, "p"):
        text = _text(paragraph)
        level = number(child(paragraph, "pPr"), "lvl") or 0
        if text.strip():
            yield "  " * min(level, _MAX_LIST_DEPTH) + " ".join(text.split())


def _bullet_line(line: str) -> str:
    text = line.lstrip()
    return f"{line[: len(line) - len(text)]}- {text}"


def _text(element: Element) -> str:
    return "".join((node.text or "") if local(node) == "t" else "\n" for node in descendants(element, "t", "br"))


def _one_line(element: Element) -> str:
    """Return all text below `element` on one line."""
    return " ".join(" ".join(_text(paragraph) for paragraph in descendants(element, "p")).split())
