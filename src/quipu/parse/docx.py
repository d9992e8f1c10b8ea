"""DOCX: Word documents with headings, lists, tables and footnotes; tracked changes count as accepted."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.archive import OfficePackage
from quipu.parse.builder import DocumentBuilder, add_table
from quipu.parse.formulas import inline_formula, office_formula
from quipu.parse.pictures import PICTURE, picture_text
from quipu.parse.xml import attribute, child, children, descendants, local, number
from quipu.text.unicode import superscript

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MACRO_MEDIA_TYPE = "application/vnd.ms-word.document.macroenabled.12"

_HEADING_STYLE = re.compile(r"heading ([1-9])")
_NO_LEVEL = 10  # outline levels count from 0, and 9 is body text
# Elements that are deleted or duplicates: tracked deletions, field codes, and the fallback of a newer drawing.
_SKIPPED = frozenset({"del", "moveFrom", "delText", "instrText", "fldData", "Fallback", "pPr", "rPr", "sectPr"})
_DRAWINGS = frozenset({"drawing", "pict"})
_BREAKS = {"br": "\n", "cr": "\n", "tab": "\t", "noBreakHyphen": "-", "ptab": "\t"}
_MAX_LIST_DEPTH = 9
_MAX_STYLE_DEPTH = 50  # Word allows 11
_MAX_COLUMNS = 64  # Word allows 63


class DocxParser:
    """Reads Word's XML: all visible paragraphs in order, under the headings that their styles define."""

    media_types = frozenset({MEDIA_TYPE, MACRO_MEDIA_TYPE})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text with its blocks, the title (from the properties or the Title paragraph) and metadata.

        Raises InvalidDocument if the file is damaged, protected, or would exhaust memory.
        """
        package = OfficePackage(source)
        main = package.main
        styles_part = package.related(main, "styles")
        styles = _styles(package.tree(styles_part)) if styles_part else {}
        reader = _DocxReader(package.name, styles, _notes(package, main))
        root = package.tree(main)
        package.describe_pictures(root, main)
        reader.read(root)
        title, metadata = package.properties()
        return reader.builder.build(title or reader.title, metadata)


PARSER = DocxParser()


@dataclass(frozen=True, slots=True)
class _ParagraphStyle:
    """The meaning of a paragraph style: a heading of `level` (from 1; None is body text), the title or a list entry."""

    level: int | None = None
    is_title: bool = False
    is_list: bool = False


def _styles(root: Element) -> dict[str, _ParagraphStyle]:
    """Return the paragraph styles by id; a style inherits missing properties from the style it is based on."""
    by_id = {attribute(style, "styleId"): style for style in children(root, "style")}
    return {style_id: _style(style_id, by_id) for style_id in by_id}


def _style(style_id: str, by_id: Mapping[str, Element]) -> _ParagraphStyle:
    level: int | None = None
    is_title = is_list = False
    visited: set[str] = set()
    while style_id in by_id and style_id not in visited and len(visited) < _MAX_STYLE_DEPTH:
        visited.add(style_id)
        element = by_id[style_id]
        name = attribute(child(element, "name"), "val").lower()
        heading = _HEADING_STYLE.match(name)
        outline = number(child(element, "pPr", "outlineLvl"), "val")
        if level is None and heading:
            level = int(heading[1])
        elif level is None and outline is not None:
            level = outline + 1
        is_title = is_title or name == "title"
        is_list = is_list or name.startswith("list ") or child(element, "pPr", "numPr") is not None
        style_id = attribute(child(element, "basedOn"), "val")
    return _ParagraphStyle(
        level=level if level is None or level < _NO_LEVEL else None, is_title=is_title, is_list=is_list
    )


class _DocxReader:
    """Reads the body of one document into a builder; `notes` holds the texts of foot- and endnotes by kind and id."""

    def __init__(self, name: str, styles: Mapping[str, _ParagraphStyle], notes: Mapping[tuple[str, str], str]) -> None:
        self.title = ""
        self.builder = DocumentBuilder(name)
        self._styles = styles
        self._notes = notes
        self._list_lines: list[str] = []  # of the open list
        self._list_notes: list[str] = []  # footnotes of the open list

    def read(self, root: Element) -> None:
        """Read the paragraphs and tables below `root`."""
        for block in _nearest(root, "p", "tbl"):
            if local(block) == "tbl":
                self._end_list()
                self._table(block)
            else:
                self._paragraph(block)
        self._end_list()

    def _paragraph(self, paragraph: Element) -> None:
        text = _text(paragraph)
        style = self._styles.get(attribute(child(paragraph, "pPr", "pStyle"), "val"), _ParagraphStyle())
        level = _own_level(paragraph) or style.level
        depth = _list_depth(paragraph, style)
        if level is None and depth is not None and text.strip():
            self._list_lines.append("  " * depth + "- " + " ".join(text.split()))
            self._list_notes += self._notes_to(paragraph)
            return
        self._end_list()
        is_heading = level is not None or style.is_title
        heading = _text(paragraph, _SKIPPED | _DRAWINGS) if is_heading else ""
        if level is not None and heading.strip():
            self.builder.add_heading(heading, level)
        elif heading.strip():
            self.builder.add(heading, "heading")
        else:
            self.builder.add(text.strip(" ") if text.strip().startswith(PICTURE) else text)
        if style.is_title and not self.title:
            self.title = " ".join(heading.split())
        for note in self._notes_to(paragraph):
            self.builder.add(note)
        for box in _nearest(paragraph, "txbxContent"):
            self.read(box)

    def _notes_to(self, paragraph: Element) -> list[str]:
        references = descendants(paragraph, "footnoteReference", "endnoteReference")
        keys = ((local(mark).removesuffix("Reference"), attribute(mark, "id")) for mark in references)
        return [f"Note: {self._notes[key]}" for key in keys if self._notes.get(key)]

    def _end_list(self) -> None:
        if self._list_lines:
            self.builder.add("\n".join(self._list_lines), "list")
        for note in self._list_notes:
            self.builder.add(note)
        self._list_lines, self._list_notes = [], []

    def _table(self, table: Element) -> None:
        rows = [(row, _cells(row)) for row in _nearest(table, "tr") if child(row, "trPr", "del") is None]
        if max((len(cells) for _, cells in rows), default=0) == 1:  # a frame around text
            for row, _ in rows:
                for cell in _nearest(row, "tc"):
                    self.read(cell)
            return
        is_marked = bool(rows) and child(rows[0][0], "trPr", "tblHeader") is not None
        add_table(self.builder, (cells for _, cells in rows), has_header=is_marked)


def _notes(package: OfficePackage, main: str) -> dict[tuple[str, str], str]:
    """Return the texts of footnotes and endnotes by kind and id."""
    notes = {}
    for kind in ("footnote", "endnote"):
        part = package.related(main, f"{kind}s")
        for note in children(package.tree(part), kind) if part else ():
            notes[kind, attribute(note, "id")] = _one_line(note)
    return notes


def _nearest(element: Element, *names: str) -> Iterator[Element]:
    """Yield the nearest descendants with one of `names`, in order, outside skipped elements."""
    for node in element:
        if local(node) in names:
            yield node
        elif local(node) not in _SKIPPED:
            yield from _nearest(node, *names)


def _text(element: Element, skipped: frozenset[str] = _SKIPPED) -> str:
    """Return the visible text of a paragraph, without its text boxes."""
    return "".join(_words(element, skipped))


def _words(element: Element, skipped: frozenset[str]) -> Iterator[str]:
    for node in element:
        name = local(node)
        if name == "t":
            yield node.text or ""
        elif name == "oMath":
            yield inline_formula(office_formula(node))
        elif name in skipped:
            continue
        elif name in ("docPr", "shape"):
            yield _picture(node)
        elif name in _BREAKS:
            yield _BREAKS[name]
        elif name not in ("txbxContent", "rt") and not _is_hidden(node):
            words = _words(node, skipped)
            is_raised = attribute(child(node, "rPr", "vertAlign"), "val") == "superscript"
            yield from map(superscript, words) if is_raised else words


def _picture(properties: Element) -> str:
    """Return the text of a picture, unless the document says that it is decoration."""
    mark = next(descendants(properties, "decorative"), None)
    if mark is not None and attribute(mark, "val") not in ("0", "false"):
        return ""
    text = picture_text(properties.get("descr") or properties.get("title") or properties.get("alt") or "")
    return f" {text} " if text else ""


def _one_line(element: Element) -> str:
    """Return all text below `element` on one line."""
    return " ".join(" ".join(_text(paragraph) for paragraph in descendants(element, "p")).split())


def _is_hidden(run: Element) -> bool:
    vanish = child(run, "rPr", "vanish")
    return vanish is not None and attribute(vanish, "val") not in ("0", "false")


def _own_level(paragraph: Element) -> int | None:
    """Return the heading level that a paragraph sets itself, independent of its style."""
    outline = number(child(paragraph, "pPr", "outlineLvl"), "val")
    return outline + 1 if outline is not None and outline + 1 < _NO_LEVEL else None


def _list_depth(paragraph: Element, style: _ParagraphStyle) -> int | None:
    """Return the list depth of a paragraph, from 0; None outside lists."""
    numbering = child(paragraph, "pPr", "numPr")
    if numbering is None:
        return 0 if style.is_list else None
    if attribute(child(numbering, "numId"), "val") == "0":  # removed from the list of its style
        return None
    return min(number(child(numbering, "ilvl"), "val") or 0, _MAX_LIST_DEPTH)


def _cells(row: Element) -> list[str]:
    """Return the cells of a row; a cell that spans several columns is followed by empty ones."""
    cells: list[str] = []
    for cell in _nearest(row, "tc"):
        span = number(child(cell, "tcPr", "gridSpan"), "val") or 1
        cells.append(_one_line(cell))
        cells += [""] * (min(span, _MAX_COLUMNS) - 1)
    return cells
