"""Page: the readable text of an HTML tree, words gathered into lines and lines into blocks."""

from selectolax.lexbor import LexborNode

from quipu.model.document import Block
from quipu.parse.decode import normalise
from quipu.parse.dom import Skips, layout_tables, tags, walk
from quipu.parse.headings import MAX_HEADING, HeadingPath

_INLINE = tags(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math nobr q rb rp rt "
    "ruby s samp small span strike strong sub sup time tt u var wbr"
)
_HEADINGS = tags("h1 h2 h3 h4 h5 h6")
_LISTS = tags("ul ol menu")


class PageReader:
    """Reads one tree; afterwards `text` and `blocks` hold what it says, `title` its first h1."""

    def __init__(self, root: LexborNode, skips: Skips) -> None:
        self.title = ""
        self.blocks: list[Block] = []
        self._texts: list[str] = []
        self._length = 0
        self._path = HeadingPath()
        self._words: list[str] = []
        self._lines: list[str] = []
        self._marker = ""
        self._next_numbers: list[int] = []  # one an open list, 0 where its items are not numbered
        self._heading: int | None = None  # the open heading's memory id
        self._n_cells: int | None = None  # read so far of the open row; None outside a table of data
        self._cell_tags: set[str] = set()  # of the open row
        self._header: list[str] = []  # lines of the open table down to its last row of column names
        self._has_data = False  # the open table has had another row
        self._n_pre = 0
        self._layout = layout_tables(root, skips)
        for node, is_entered in walk(root, skips):
            self._read(node, is_entered)
        self._end_block("paragraph")

    @property
    def text(self) -> str:
        """The blocks with a blank line between them."""
        return "\n\n".join(self._texts)

    def _read(self, node: LexborNode, is_entered: bool) -> None:
        if node.is_text_node:
            self._words.append((node.text_content or "") if is_entered else "")
        elif node.tag == "br":
            self._line_break(is_entered)
        elif node.tag not in _INLINE:
            self._element(node, is_entered)

    def _element(self, node: LexborNode, is_entered: bool) -> None:
        """Read the start or end of an element that is not part of a line."""
        tag = node.tag or ""
        if self._heading is not None:
            self._in_heading(node)
        elif tag == "table" and node.mem_id not in self._layout:
            self._table(is_entered)
        elif self._n_cells is not None:
            self._in_table(tag, is_entered)
        elif tag in _LISTS:
            self._list(tag, is_entered)
        elif tag == "li" and self._next_numbers:
            self._item(is_entered)
        elif tag in _HEADINGS and not self._next_numbers:
            self._end_block("paragraph")
            self._heading = node.mem_id
        elif tag == "pre":
            self._break("paragraph" if is_entered else "code")
            self._n_pre += 1 if is_entered else -1
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
        """Read an element within a heading (words like any other) or the heading's end."""
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
            self.title = self.title or (text if level == 1 else "")
        else:
            self._end_block("paragraph")

    def _table(self, is_entered: bool) -> None:
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
        """Take the row for a part of the header where all its cells are headings and no row above holds data."""
        if self._cell_tags == {"th"} and not self._has_data:
            self._header = list(self._lines)
        self._has_data = self._has_data or "td" in self._cell_tags
        self._cell_tags.clear()

    def _list(self, tag: str, is_entered: bool) -> None:
        self._break("paragraph")
        if is_entered:
            self._next_numbers.append(1 if tag == "ol" else 0)
            return
        self._next_numbers.pop()
        self._marker = ""
        if not self._next_numbers:
            self._end_block("list")

    def _item(self, is_entered: bool) -> None:
        self._end_line()
        number = self._next_numbers[-1]
        indent = "  " * (len(self._next_numbers) - 1)
        self._marker = indent + (f"{number}. " if number else "- ") if is_entered else ""
        if is_entered and number:
            self._next_numbers[-1] += 1

    def _break(self, kind: str) -> None:
        """End the block, or only the line within a list, which stays one block."""
        if self._next_numbers:
            self._end_line()
        else:
            self._end_block(kind)

    def _end_line(self) -> None:
        words = "".join(self._words)
        self._words.clear()
        if self._n_pre:
            self._lines.extend(words.strip("\n").split("\n") if words.strip() else [])
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
        if text.strip():
            self._append(text, kind, self._path.above(), header=normalise("\n".join(self._header)) if is_table else "")

    def _append(self, text: str, kind: str, headings: tuple[str, ...], *, header: str = "") -> None:
        self._texts.append(text)
        self.blocks.append(
            Block(start=self._length, end=self._length + len(text), kind=kind, headings=headings, header=header)
        )
        self._length += len(text) + 2
