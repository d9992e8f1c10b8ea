"""DOCX: Word documents by their headings, with lists, tables, footnotes, and tracked changes as if accepted."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.draft import Draft
from quipu.parse.package import Package
from quipu.parse.table import add_table
from quipu.parse.xml import attribute, child, children, descendants, local, number

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MACRO_MEDIA_TYPE = "application/vnd.ms-word.document.macroenabled.12"

_HEADING_STYLE = re.compile(r"heading ([1-9])")
_NO_LEVEL = 10  # outline levels count from 0; 9 is body text
# What is deleted, or shown in another way: tracked deletions, field codes, and the older twin of a newer drawing.
_NOT_READ = frozenset({"del", "moveFrom", "delText", "instrText", "fldData", "Fallback", "pPr", "rPr", "sectPr"})
_BREAKS = {"br": "\n", "cr": "\n", "tab": "\t", "noBreakHyphen": "-", "ptab": "\t"}
_MAX_LIST_DEPTH = 9
_MAX_STYLE_DEPTH = 50  # Word allows 11
_MAX_COLUMNS = 64  # Word allows 63


class DocxParser:
    """Reads Word's XML: every paragraph that is shown, in order, under the headings its style makes."""

    media_types = frozenset({MEDIA_TYPE, MACRO_MEDIA_TYPE})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text and its blocks, the document's title (else its Title paragraph) and properties.

        Raises InvalidDocument where the file is damaged, protected, or made to exhaust memory.
        """
        package = Package(source)
        main = package.main
        styles_part = package.related(main, "styles")
        styles = _styles(package.tree(styles_part)) if styles_part else {}
        reader = _Reader(package.name, styles, _notes(package, main))
        reader.read(package.tree(main))
        title, metadata = package.properties()
        return reader.draft.document(title or reader.title, metadata)


PARSER = DocxParser()


@dataclass(frozen=True, slots=True)
class _Style:
    """What a paragraph style means: a level of heading (from 1; None is body text), the title, or an item of a list."""

    level: int | None = None
    is_title: bool = False
    is_list: bool = False


def _styles(root: Element) -> dict[str, _Style]:
    """Return the paragraph styles by id; what a style does not say, the one it is based on says."""
    by_id = {attribute(each, "styleId"): each for each in children(root, "style")}
    return {style_id: _style(style_id, by_id) for style_id in by_id}


def _style(style_id: str, by_id: Mapping[str, Element]) -> _Style:
    level: int | None = None
    is_title = is_list = False
    seen: set[str] = set()
    while style_id in by_id and style_id not in seen and len(seen) < _MAX_STYLE_DEPTH:
        seen.add(style_id)
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
    return _Style(level=level if level is None or level < _NO_LEVEL else None, is_title=is_title, is_list=is_list)


class _Reader:
    """Reads the body of one document into a draft; `notes` are the texts of foot- and endnotes by kind and id."""

    def __init__(self, name: str, styles: Mapping[str, _Style], notes: Mapping[tuple[str, str], str]) -> None:
        self.title = ""
        self.draft = Draft(name)
        self._styles = styles
        self._notes = notes
        self._items: list[str] = []  # of the open list
        self._said: list[str] = []  # notes to the open list

    def read(self, root: Element) -> None:
        """Read the paragraphs and tables below `root`."""
        for block in _blocks(root):
            if local(block) == "tbl":
                self._end_list()
                self._table(block)
            else:
                self._paragraph(block)
        self._end_list()

    def _paragraph(self, paragraph: Element) -> None:
        text = _text(paragraph)
        style = self._styles.get(attribute(child(paragraph, "pPr", "pStyle"), "val"), _Style())
        level = _own_level(paragraph) or style.level
        depth = _list_depth(paragraph, style)
        if level is None and depth is not None and text.strip():
            self._items.append("  " * depth + "- " + " ".join(text.split()))
            self._said += self._notes_to(paragraph)
            return
        self._end_list()
        if level is not None:
            self.draft.add_heading(text, level)
        else:
            self.draft.add(text, "heading" if style.is_title else "paragraph")
        if style.is_title and not self.title:
            self.title = " ".join(text.split())
        for said in self._notes_to(paragraph):
            self.draft.add(said)
        for box in _boxes(paragraph):
            self.read(box)

    def _notes_to(self, paragraph: Element) -> list[str]:
        references = descendants(paragraph, "footnoteReference", "endnoteReference")
        ids = ((local(each).removesuffix("Reference"), attribute(each, "id")) for each in references)
        return [f"Note: {self._notes[each]}" for each in ids if self._notes.get(each)]

    def _end_list(self) -> None:
        if self._items:
            self.draft.add("\n".join(self._items), "list")
        for said in self._said:
            self.draft.add(said)
        self._items, self._said = [], []

    def _table(self, table: Element) -> None:
        rows = [(row, _cells(row)) for row in _through(table, "tr") if not _is_deleted(row)]
        if max((len(cells) for _, cells in rows), default=0) == 1:  # a frame around text
            for row, _ in rows:
                for cell in _through(row, "tc"):
                    self.read(cell)
            return
        is_marked = bool(rows) and child(rows[0][0], "trPr", "tblHeader") is not None
        add_table(self.draft, (cells for _, cells in rows), has_header=is_marked)


def _notes(package: Package, main: str) -> dict[tuple[str, str], str]:
    """Return the texts of footnotes and endnotes by kind and id."""
    notes = {}
    for kind in ("footnote", "endnote"):
        part = package.related(main, f"{kind}s")
        for note in children(package.tree(part), kind) if part else ():
            notes[kind, attribute(note, "id")] = _flat(note)
    return notes


def _blocks(element: Element) -> Iterator[Element]:
    """Yield the paragraphs and tables below `element`, which content controls and changes may wrap."""
    return _through(element, "p", "tbl")


def _through(element: Element, *names: str) -> Iterator[Element]:
    """Yield the nearest descendants with one of `names`, in order, without those that are not read."""
    for each in element:
        if local(each) in names:
            yield each
        elif local(each) not in _NOT_READ:
            yield from _through(each, *names)


def _text(element: Element) -> str:
    """Return the words of a paragraph as they are shown, without those in its text boxes."""
    return "".join(_words(element))


def _words(element: Element) -> Iterator[str]:
    for each in element:
        name = local(each)
        if name == "t":
            yield each.text or ""
        elif name in _BREAKS:
            yield _BREAKS[name]
        elif name not in _NOT_READ and name not in ("txbxContent", "rt") and not _is_hidden(each):
            yield from _words(each)


def _flat(element: Element) -> str:
    """Return all words below `element` on one line."""
    return " ".join(" ".join(_text(each) for each in descendants(element, "p")).split())


def _boxes(paragraph: Element) -> Iterator[Element]:
    """Yield the text boxes anchored in a paragraph."""
    return _through(paragraph, "txbxContent")


def _is_hidden(run: Element) -> bool:
    vanish = child(run, "rPr", "vanish")
    return vanish is not None and attribute(vanish, "val") not in ("0", "false")


def _is_deleted(row: Element) -> bool:
    return child(row, "trPr", "del") is not None


def _own_level(paragraph: Element) -> int | None:
    """Return the level of heading a paragraph has by itself, whatever its style."""
    outline = number(child(paragraph, "pPr", "outlineLvl"), "val")
    return outline + 1 if outline is not None and outline + 1 < _NO_LEVEL else None


def _list_depth(paragraph: Element, style: _Style) -> int | None:
    """Return how deep in lists an item is, from 0; None for a paragraph outside lists."""
    numbering = child(paragraph, "pPr", "numPr")
    if numbering is None:
        return 0 if style.is_list else None
    if attribute(child(numbering, "numId"), "val") == "0":  # taken out of its style's list
        return None
    return min(number(child(numbering, "ilvl"), "val") or 0, _MAX_LIST_DEPTH)


def _cells(row: Element) -> list[str]:
    """Return the cells of a row, an empty one for each further column that a wide cell spans."""
    cells: list[str] = []
    for cell in _through(row, "tc"):
        span = number(child(cell, "tcPr", "gridSpan"), "val") or 1
        cells.append(_flat(cell))
        cells += [""] * (min(span, _MAX_COLUMNS) - 1)
    return cells
