"""HTML: the readable text of a page, without navigation and other parts of the site."""

import re
from collections.abc import Callable, Sequence

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.decode import declared_charset, decode, display_name, normalise
from quipu.parse.html_page import HtmlBlockReader, is_furniture, is_never_read, nesting_depth
from quipu.parse.limits import MAX_HTML_TAGS
from quipu.parse.markup_process import read_markup_in_process
from quipu.parse.pictures import with_descriptions

# Real pages nest tens of elements deep.
_MAX_DEPTH = 5_000

# Larger pages are read in a process of its own, which takes 0.1 s to start. The time to build the tree grows with the
# square of the depth and with the square of the attributes of one tag. Its size grows with the number of tags times
# the number of formatting elements like <b> that are never closed: all those with attributes, and three of each of the
# fourteen kinds without.
_MAX_TAGS_IN_PROCESS = 20_000
_MAX_NODES_IN_PROCESS = 1_000_000
_MAX_TAG_IN_PROCESS = 40_000  # characters, including any quoted ">"
_N_BARE = 3 * 14
_FORMATTING = re.compile(r"<(?:b|big|code|em|font|i|s|small|strike|strong|tt|u)[\s/]", re.IGNORECASE)
_QUOTED_END = re.compile(r"""=\s*+(?:"[^">]*+>|'[^'>]*+>)""")


class HtmlParser:
    """Reads HTML and XHTML: headings, paragraphs, lists, tables (a row is "a | b") and preformatted text.

    `file_of` returns the file of a picture by its address, for pages that come with their pictures; b"" if it has none.
    """

    media_types = frozenset({"text/html", "application/xhtml+xml"})

    def __init__(self, file_of: Callable[[str], bytes] = lambda _: b"") -> None:
        self._file_of = file_of

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the readable text with blank lines between blocks. The title is the only h1, otherwise <title>.

        Raises InvalidDocument if the bytes are not text, if elements nest too deep, or if the page takes too much time
        or memory.
        """
        markup = with_descriptions(decode(source, declared_charset(source.content)), self._file_of)
        if not _is_heavy(markup):
            return read_markup(markup)
        if nesting_depth(markup) > _MAX_DEPTH:
            raise InvalidDocument(
                f"The elements of {display_name(source)} nest more than {_MAX_DEPTH} deep.",
                remedy="Save the page as text, or leave it out.",
            )
        if markup.count("<") > MAX_HTML_TAGS:
            raise InvalidDocument(
                f"{display_name(source)} has more than {MAX_HTML_TAGS:,} tags.", remedy="Split it, or save it as text."
            )
        return read_markup_in_process("html", markup, display_name(source))


PARSER = HtmlParser()


def read_markup(markup: str) -> ParsedDocument:
    """Return the text, title and blocks of a page; runs in the current process. Raises MemoryError."""
    try:
        tree = LexborHTMLParser(markup)
    except SelectolaxError as error:
        raise MemoryError(str(error)) from error
    if tree.root is None:
        return ParsedDocument(text="", title="", blocks=())
    page = HtmlBlockReader(tree.root, is_furniture)
    if not page.blocks:  # old frameworks wrap the whole page in a form or header
        page = HtmlBlockReader(tree.root, is_never_read)
    return ParsedDocument(text=page.text, title=_title(tree, page.titles), blocks=tuple(page.blocks))


def _title(tree: LexborHTMLParser, headings: Sequence[str]) -> str:
    """Return the only h1; with several, which are parts of the page, or none, the title that the page declares."""
    title = tree.css_first("title") if len(headings) != 1 else None
    declared = " ".join(normalise(title.text()).split()) if title else ""
    return declared or next(iter(headings), "")


def _is_heavy(markup: str) -> bool:
    """Return whether the page is so large or unusual that its tree might take much time or memory."""
    n_tags = markup.count("<")
    if n_tags > _MAX_TAGS_IN_PROCESS or n_tags * (_N_BARE + _count(_FORMATTING, markup)) > _MAX_NODES_IN_PROCESS:
        return True
    return max(map(len, markup.split(">"))) * (1 + _count(_QUOTED_END, markup)) > _MAX_TAG_IN_PROCESS


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))
