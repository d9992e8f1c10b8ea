"""HTML page: walks an HTML tree and collects its readable text as lines and blocks."""

import re
from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborNode

from quipu.model.document import Block
from quipu.parse.builder import MAX_HEADING, HeadingPath, fenced
from quipu.parse.decode import normalise
from quipu.parse.formulas import inline_formula, web_formula
from quipu.parse.pictures import PICTURE, picture_text
from quipu.text.unicode import superscript

SkipPredicate = Callable[[LexborNode], bool]


def _tags(names: str) -> frozenset[str]:
    return frozenset(names.split())


_INLINE = _tags(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math nobr q rb rp rt "
    "ruby s samp small span strike strong sub sup time tt u var wbr"
)
_HEADINGS = _tags("h1 h2 h3 h4 h5 h6")
_LISTS = _tags("ul ol menu")
_NEVER_READ = _tags(
    "head script style noscript template iframe object canvas svg audio video button select textarea input "
    "datalist dialog"
)
_FURNITURE = _tags("nav header footer aside form")
_FURNITURE_ROLES = _tags("navigation search banner contentinfo complementary")
# Classes and ids by which common site generators mark what is not the page's text.
_FURNITURE_NAMES = _tags(
    "nav navbar docnav global-nav mobile-nav site-nav navmenu mainmenu submenu searchmenu menubar navigation navheader "
    "navfooter navlinks rst-footer-buttons banner sidebar sphinxsidebar toc "
    "table-of-contents breadcrumb breadcrumbs related pagination pager prev-next headerlink permalink anchorjs-link "
    "skip-link skiplink skip-to-content footer site-footer page-footer masthead cookie-banner cookie-consent "
    "newsletter share-buttons edit-link editsection mw-editsection mw-jump-link catlinks noprint screen-reader-text"
)
_CONTENTS_NAME = re.compile(r"(?:^|[-_])toc\d?(?:$|[-_])")
_PERMALINKS = frozenset("¶#§🔗\uf0c1")
_SKIP_LINK = re.compile(
    r"(?:skip|jump) to\b.{0,40}"
    r"|\W{0,3}(?:(?:back )?to (?:the )?top|наверх|вверх|к началу|返回顶部|回到顶部|回到?页首)\W{0,3}",
    re.IGNORECASE,
)
_WHOLE_PAGE = _tags("html body main article")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_NOT_IN_DATA_TABLES = _tags("table ul ol menu pre h1 h2 h3 h4 h5 h6")
_MAX_FIGURE_DEPTH = 8
_PICTURE_FILE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|bmp)(?:[?#]|$)", re.IGNORECASE)
_LANGUAGE = re.compile(r"\b(?:(?:language|lang|highlight-source|highlight)-|(?:sourceCode|brush:) )([\w+#]{1,20})")
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]{0,30})(?=[\s>/])", re.IGNORECASE)
_TEXT_ONLY = _tags("script style textarea title")
_CLOSED_BY_OTHERS = _tags(
    "p li dt dd tr td th thead tbody tfoot option optgroup colgroup rp rt html head body br hr img input meta "
    "link area base col embed param source track wbr"
)


class HtmlBlockReader:
    """Reads one tree; afterwards `text` and `blocks` hold its readable text, and `titles` every h1."""

    def __init__(self, root: LexborNode, skips: SkipPredicate) -> None:
        self.titles: list[str] = []
        self.blocks: list[Block] = []
        self._texts: list[str] = []
        self._length = 0
        self._path = HeadingPath()
        self._words: list[str] = []
        self._lines: list[str] = []
        self._marker = ""
        self._next_numbers: list[int] = []  # one for each open list; 0 if it has no numbers
        self._heading: int | None = None  # memory id of the open heading
        self._n_cells: int | None = None  # cells read so far in the open row; None outside a data table
        self._cell_tags: set[str] = set()  # of the open row
        self._header: list[str] = []  # lines of the open table up to its last header row
        self._has_data = False  # the open table already has a data row
        self._n_term_lines = 0  # of the open block: terms whose explanation is still to come
        self._n_pre = 0
        self._pictures: set[str] = set()  # their texts
        self._language = ""  # of the open code
        self._is_raised = False  # in a superscript
        self._formula: int | None = None  # memory id of the open formula
        self._layout = layout_tables(root, skips)
        for node, is_entered in walk(root, skips):
            self._read(node, is_entered)
        self._end_block("paragraph")

    @property
    def text(self) -> str:
        """The text of all blocks, separated by blank lines."""
        return "\n\n".join(self._texts)

    def _read(self, node: LexborNode, is_entered: bool) -> None:
        if self._formula is not None:
            self._formula = self._formula if is_entered or node.mem_id != self._formula else None
        elif node.tag == "math" and is_entered:
            self._formula = node.mem_id
            self._words.append(inline_formula(web_formula(node)))
        elif node.is_text_node:
            text = (node.text_content or "") if is_entered else ""
            self._words.append(superscript(text) if self._is_raised else text)
        elif node.tag == "sup":
            self._is_raised = is_entered
        elif node.tag == "img":
            self._words.append(f" {self._picture(node)} " if is_entered else "")
        elif node.tag == "br":
            self._line_break(is_entered)
        elif node.tag not in _INLINE:
            self._element(node, is_entered)

    def _picture(self, node: LexborNode) -> str:
        """Return the text of a picture, the first time; "" in a heading, for decoration, and where a caption has it.

        A picture that is a link to a page is a logo or a badge.
        """
        attributes = node.attributes
        values = {name: attributes.get(name) or "" for name in ("src", "width", "height")}
        text = picture_text(attributes.get("alt") or "", **values)
        is_decoration = attributes.get("role") in ("none", "presentation")
        if not text or is_decoration or text in self._pictures or self._heading is not None:
            return ""
        self._pictures.add(text)
        around = self._around(node)
        caption = around.css_first("figcaption") if around.tag == "figure" else around if around.tag == "a" else None
        words = " ".join(caption.text().split()).casefold() if caption is not None else ""
        is_logo = around.tag == "a" and not words and not _PICTURE_FILE.search(around.attributes.get("href") or "")
        return "" if is_logo or text.removeprefix(PICTURE)[:-1].casefold() in words else text

    def _around(self, node: LexborNode) -> LexborNode:
        """Return the figure or the link that a picture stands in; an element around it if there is none."""
        around = node
        for _ in range(_MAX_FIGURE_DEPTH):
            if around.parent is None or around.tag in ("a", "figure"):
                break
            around = around.parent
        return around

    def _element(self, node: LexborNode, is_entered: bool) -> None:
        """Read the start or end of a block element."""
        tag = node.tag or ""
        if self._heading is not None:
            self._in_heading(node)
        elif self._n_pre and tag != "pre":
            self._words.append("\n" if is_entered else "")  # some pages have an element for each line of code
        elif tag == "table" and node.mem_id not in self._layout:
            self._table(is_entered)
        elif self._n_cells is not None:
            self._in_table(tag, is_entered)
        elif tag in _LISTS:
            self._list(tag, is_entered)
        elif tag == "li" and self._next_numbers:
            self._list_item(is_entered)
        elif tag in _HEADINGS and not self._next_numbers:
            self._end_block("paragraph")
            self._heading = node.mem_id
        elif tag == "pre":
            self._end_terms()
            self._break("paragraph" if is_entered else "code")
            self._n_pre += 1 if is_entered else -1
            self._language = _language(node)
        else:
            self._paragraph(tag, is_entered)

    def _paragraph(self, tag: str, is_entered: bool) -> None:
        """Read the start or end of an element of text. A term of a list of definitions waits for its explanation."""
        if tag == "dl":
            self._end_terms()
        if tag == "dt" and not is_entered:
            self._end_line()
            self._n_term_lines = len(self._lines)
        else:
            self._break("paragraph")

    def _line_break(self, is_entered: bool) -> None:
        if not is_entered:
            return
        if self._n_pre:
            self._words.append("\n")
        elif self._heading is not None or self._n_cells is not None:
            self._words.append(" ")
        elif self._lines and not "".join(self._words).strip():
            self._break("paragraph")
        else:
            self._end_line()

    def _in_heading(self, node: LexborNode) -> None:
        """Read an element inside a heading, or the end of the heading."""
        if node.mem_id != self._heading:
            self._words.append(" ")
            return
        self._heading = None
        text = " ".join(normalise("".join(self._words)).split())
        level = int((node.tag or "h6")[1:])
        if 0 < len(text) <= MAX_HEADING:
            self._words.clear()
            self._append(text, "heading", self._path.above(level))
            self._path.enter(level, text)
            if level == 1:
                self.titles.append(text)
        else:
            self._end_block("paragraph")

    def _table(self, is_entered: bool) -> None:
        self._end_terms()
        self._break("paragraph" if is_entered else "table")
        self._n_cells = 0 if is_entered else None
        self._header = []
        self._has_data = False

    def _in_table(self, tag: str, is_entered: bool) -> None:
        if tag in ("tr", "caption"):
            self._end_line()
            self._n_cells = 0
            self._end_row()
        elif tag == "thead" and not is_entered:
            self._header = list(self._lines)
        elif tag in ("td", "th") and is_entered:
            self._words.append(" | " if self._n_cells else " ")
            self._n_cells = 1
            self._cell_tags.add(tag)
        else:
            self._words.append(" ")

    def _end_row(self) -> None:
        """Add the row to the header if it has only header cells and no row above holds data."""
        if self._cell_tags == {"th"} and not self._has_data:
            self._header = list(self._lines)
        self._has_data = self._has_data or "td" in self._cell_tags
        self._cell_tags.clear()

    def _list(self, tag: str, is_entered: bool) -> None:
        self._end_terms()
        self._break("paragraph")
        if is_entered:
            self._next_numbers.append(1 if tag == "ol" else 0)
            return
        self._next_numbers.pop()
        self._marker = ""
        if not self._next_numbers:
            self._end_block("list")

    def _list_item(self, is_entered: bool) -> None:
        self._end_line()
        number = self._next_numbers[-1]
        indent = "  " * (len(self._next_numbers) - 1)
        self._marker = indent + (f"{number}. " if number else "- ") if is_entered else ""
        if is_entered and number:
            self._next_numbers[-1] += 1

    def _break(self, kind: str) -> None:
        """End the block; only the line inside a list, which is one block, and between a term and its explanation."""
        if self._next_numbers or (self._n_term_lines == len(self._lines) > 0 and not "".join(self._words).strip()):
            self._end_line()
        else:
            self._end_block(kind)

    def _end_terms(self) -> None:
        """End the block of terms that no text explains, but code, a list or a table."""
        if self._n_term_lines and not self._next_numbers:
            self._end_block("paragraph")

    def _end_line(self) -> None:
        words = "".join(self._words)
        self._words.clear()
        if self._n_pre:
            self._lines.extend(fenced(words.strip("\n"), self._language).split("\n") if words.strip() else [])
            return
        line = " ".join(words.split())
        if line.strip(" |"):
            self._lines.append(self._marker + line)
            self._marker = " " * len(self._marker)

    def _end_block(self, kind: str) -> None:
        self._end_line()
        text = normalise("\n".join(self._lines)).strip("\n")
        is_table = kind == "table" and len(self._header) < len(self._lines)
        self._lines.clear()
        self._n_term_lines = 0
        if text.strip():
            self._append(text, kind, self._path.above(), header=normalise("\n".join(self._header)) if is_table else "")

    def _append(self, text: str, kind: str, headings: tuple[str, ...], *, header: str = "") -> None:
        self._texts.append(text)
        self.blocks.append(
            Block(start=self._length, end=self._length + len(text), kind=kind, headings=headings, header=header)
        )
        self._length += len(text) + 2


def _language(pre: LexborNode) -> str:
    """Return the language of code by the classes of the element, the one inside and the two around it, else "text"."""
    parent = pre.parent
    nodes = (pre.css_first("code"), pre, parent, parent.parent if parent is not None else None)
    names = " ".join((node.attributes or {}).get("class") or "" for node in nodes if node is not None)
    language = _LANGUAGE.search(names)
    return language[1].lower() if language and language[1] != "default" else "text"


def is_never_read(node: LexborNode) -> bool:
    """Return whether a reader of the page never sees `node`."""
    if not node.is_element_node:
        return not node.is_text_node
    attributes = node.attributes
    return (
        node.tag in _NEVER_READ
        or "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or _HIDDEN_STYLE.search(attributes.get("style") or "") is not None
    )


def is_furniture(node: LexborNode) -> bool:
    """Return whether `node` is never read or belongs to the site; the header of an article belongs to the article."""
    if is_never_read(node):
        return True
    if not node.is_element_node:
        return False
    if node.tag in _FURNITURE:
        return not (node.tag == "header" and _is_within_article(node))
    if node.tag == "a" and _is_page_link(node):
        return True
    attributes = node.attributes
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower().split()
    is_named = not _FURNITURE_NAMES.isdisjoint(names) or any(map(_CONTENTS_NAME.search, names))
    is_marked = is_named or attributes.get("role") in _FURNITURE_ROLES
    return is_marked and node.tag not in _WHOLE_PAGE and node.css_first("h1, main, article") is None


def _is_page_link(node: LexborNode) -> bool:
    """Return whether a link leads only to a place on its own page: the sign of a heading, "Skip to", "Back to top"."""
    if not (node.attributes.get("href") or "").startswith("#"):
        return False
    text = node.text().strip()
    return text in _PERMALINKS or _SKIP_LINK.fullmatch(text) is not None


def _is_within_article(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None and parent.tag not in ("article", "main"):
        parent = parent.parent
    return parent is not None


def walk(root: LexborNode, skips: SkipPredicate) -> Iterator[tuple[LexborNode, bool]]:
    """Yield each node in document order, once when it is entered (True) and once when it ends (False)."""
    node = root
    while True:
        is_read = not skips(node)
        if is_read:
            yield node, True
        child = node.child if is_read else None
        if child is not None:
            node = child
            continue
        if is_read:
            yield node, False
        while node.mem_id == root.mem_id or node.next is None:
            if node.mem_id == root.mem_id or node.parent is None:
                return
            node = node.parent
            yield node, False
        node = node.next


def layout_tables(root: LexborNode, skips: SkipPredicate) -> frozenset[int]:
    """Return the memory ids of the tables used only for layout: they contain headings, lists or tables."""
    layout: set[int] = set()
    open_tables: list[int] = []
    for node, is_entered in walk(root, skips):
        if is_entered and open_tables and node.tag in _NOT_IN_DATA_TABLES:
            layout.add(open_tables[-1])
        if node.tag == "table" and is_entered:
            open_tables.append(node.mem_id)
        elif node.tag == "table":
            open_tables.pop()
    return frozenset(layout)


def nesting_depth(markup: str) -> int:
    """Estimate how deep the elements of `markup` nest, without building the tree."""
    depth = max_depth = position = 0
    while tag := _TAG.search(markup, position):
        position = tag.end()
        name = tag[2].lower()
        if name in _CLOSED_BY_OTHERS:
            continue
        depth = max(0, depth - 1) if tag[1] else depth + 1
        max_depth = max(max_depth, depth)
        if name in _TEXT_ONLY and not tag[1]:
            closing = re.compile(f"</{name}", re.IGNORECASE).search(markup, position)
            position = closing.start() if closing else len(markup)
    return max_depth
