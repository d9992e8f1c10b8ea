"""PPTX: presentations slide by slide, under the titles of the slides, with tables, diagrams and the speaker's notes."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.draft import Draft
from quipu.parse.package import Package, relation_id
from quipu.parse.table import add_table
from quipu.parse.xml import attribute, child, children, descendants, local, number

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
MACRO_MEDIA_TYPE = "application/vnd.ms-powerpoint.presentation.macroenabled.12"

_TITLES = frozenset({"title", "ctrTitle"})
_FURNITURE = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})
_MAX_LIST_DEPTH = 9


class PptxParser:
    """Reads PowerPoint's XML: each slide is a page, its title a heading; what masters and layouts show is left out."""

    media_types = frozenset({MEDIA_TYPE, MACRO_MEDIA_TYPE})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text of the slides in order; the title is the presentation's, else its first slide's.

        Raises InvalidDocument where the file is damaged, protected, or made to exhaust memory.
        """
        package = Package(source)
        reader = _Reader(package)
        for page, part in enumerate(_slides(package), 1):
            reader.read(part, page)
        title, metadata = package.properties()
        return reader.draft.document(title or reader.title, metadata)


PARSER = PptxParser()


def _slides(package: Package) -> Iterator[str]:
    """Yield the names of the slides' parts in the order they are shown."""
    relations = package.relations(package.main)
    for listed in descendants(package.tree(package.main), "sldId"):
        relation = relations.get(relation_id(listed))
        if relation is not None and relation.target in package.archive:
            yield relation.target


class _Reader:
    """Reads slides into a draft."""

    def __init__(self, package: Package) -> None:
        self.title = ""
        self.draft = Draft(package.name)
        self._package = package

    def read(self, part: str, page: int) -> None:
        """Read one slide: its title first, wherever it stands among the shapes."""
        shapes = list(_shapes(self._package.tree(part)))
        title = " ".join(text for shape in shapes if _placeholder(shape) in _TITLES for text in _lines(shape))
        self.draft.path.leave(1)
        self.draft.add_heading(title, 1, page=page)
        self.title = self.title or " ".join(title.split())
        for shape in shapes:
            self._shape(shape, page)
        self._diagrams(part, page)
        self._notes(part, page)

    def _shape(self, shape: Element, page: int) -> None:
        kind = _placeholder(shape)
        if kind in _TITLES or kind in _FURNITURE:
            return
        if local(shape) == "graphicFrame":
            for table in descendants(shape, "tbl"):
                has_header = attribute(child(table, "tblPr"), "firstRow") in ("1", "true")
                rows = ([_flat(cell) for cell in children(row, "tc")] for row in children(table, "tr"))
                add_table(self.draft, rows, has_header=has_header, page=page)
            return
        lines = list(_lines(shape))
        is_list = kind is not None and len(lines) > 1  # what a layout has a place for is bullets, unless it is one line
        if is_list:
            self.draft.add("\n".join(_item(line) for line in lines), "list", page=page)
        else:
            self.draft.add("\n".join(line.strip() for line in lines), page=page)

    def _diagrams(self, part: str, page: int) -> None:
        for relation in self._package.relations(part).values():
            if relation.kind == "diagramData" and relation.target in self._package.archive:
                points = descendants(self._package.tree(relation.target), "pt")
                lines = [_item(text) for point in points if (text := _flat(point))]
                self.draft.add("\n".join(lines), "list", page=page)

    def _notes(self, part: str, page: int) -> None:
        notes = self._package.related(part, "notesSlide")
        if not notes:
            return
        for shape in _shapes(self._package.tree(notes)):
            if _placeholder(shape) == "body":
                lines = [line.strip() for line in _lines(shape)]
                self.draft.add("Notes: " + "\n".join(lines) if lines else "", page=page)


def _shapes(element: Element) -> Iterator[Element]:
    """Yield the shapes below `element` in order, those of groups in their place, without the twins for old programs."""
    for each in element:
        name = local(each)
        if name in ("sp", "graphicFrame"):
            yield each
        elif name != "Fallback":
            yield from _shapes(each)


def _placeholder(shape: Element) -> str | None:
    """Return the kind of place in the layout a shape fills ("" where it says no kind), None where it fills none."""
    place = next(descendants(shape, "ph"), None)
    return None if place is None else attribute(place, "type")


def _lines(shape: Element) -> Iterator[str]:
    """Yield the paragraphs of a shape that say something, two spaces before each for every level."""
    for paragraph in descendants(shape, "p"):
        text = _text(paragraph)
        level = number(child(paragraph, "pPr"), "lvl") or 0
        if text.strip():
            yield "  " * min(level, _MAX_LIST_DEPTH) + " ".join(text.split())


def _item(line: str) -> str:
    text = line.lstrip()
    return f"{line[: len(line) - len(text)]}- {text}"


def _text(element: Element) -> str:
    return "".join((each.text or "") if local(each) == "t" else "\n" for each in descendants(element, "t", "br"))


def _flat(element: Element) -> str:
    """Return all words below `element` on one line."""
    return " ".join(" ".join(_text(paragraph) for paragraph in descendants(element, "p")).split())
