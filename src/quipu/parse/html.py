"""HTML: pages as readable text, without what only serves the site around it."""

import re

from selectolax.lexbor import LexborHTMLParser

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.apart import read_markup_apart
from quipu.parse.decode import decode, name_of, normalise
from quipu.parse.dom import is_furniture, is_never_read, nesting_depth
from quipu.parse.limits import MAX_HTML_TAGS
from quipu.parse.page import PageReader

_CHARSET = re.compile(
    rb"""<(?:meta\s[^<>]{0,200}?charset|\?xml\s[^<>]{0,200}?encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)
_CHARSET_WITHIN = 4096  # bytes
# Real pages nest tens of elements deep; the time the tree takes grows with the square of the depth.
_MAX_DEPTH = 5_000

# What a page may hold and be read in this process; more takes a process of its own, a tenth of a second. The time of
# the tree grows with the square of the depth and of one tag's attributes, its size with the product of tags and of
# elements like <b> that were never closed: those with attributes, and three of each of fourteen kinds without.
_MAX_TAGS_HERE = 20_000
_MAX_NODES_HERE = 1_000_000
_MAX_TAG_HERE = 40_000  # characters, with quoted ">" in it
_N_BARE = 3 * 14
_FORMATTING = re.compile(r"<(?:b|big|code|em|font|i|s|small|strike|strong|tt|u)[\s/]", re.IGNORECASE)
_QUOTED_END = re.compile(r"""=\s*+(?:"[^">]*+>|'[^'>]*+>)""")


class HtmlParser:
    """Reads HTML and XHTML: headings, paragraphs, lists, tables ("a | b" a row) and preformatted text."""

    media_types = frozenset({"text/html", "application/xhtml+xml"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the page's readable text, a blank line between blocks; the title is its first h1, else its <title>.

        Raises InvalidDocument for bytes that are no text, for elements nested absurdly deep, and for pages that take
        too much time or memory.
        """
        declared = _CHARSET.search(source.content[:_CHARSET_WITHIN])
        markup = decode(source, declared[1].decode("ascii", "replace") if declared else "")
        if not _is_heavy(markup):
            return read_markup(markup)
        if nesting_depth(markup) > _MAX_DEPTH:
            raise InvalidDocument(
                f"The elements of {name_of(source)} nest more than {_MAX_DEPTH} deep.",
                remedy="Save the page as text, or leave it out.",
            )
        if markup.count("<") > MAX_HTML_TAGS:
            raise InvalidDocument(
                f"{name_of(source)} has more than {MAX_HTML_TAGS:,} tags.", remedy="Split it, or save it as text."
            )
        return read_markup_apart("html", markup, name_of(source))


PARSER = HtmlParser()


def read_markup(markup: str) -> ParsedDocument:
    """Return the text, title and blocks of a page, all in this process."""
    tree = LexborHTMLParser(markup)
    if tree.root is None:
        return ParsedDocument(text="", title="", blocks=())
    page = PageReader(tree.root, is_furniture)
    if not page.blocks:  # all form or header, as old frameworks wrap whole pages: read it whole
        page = PageReader(tree.root, is_never_read)
    return ParsedDocument(text=page.text, title=page.title or _title(tree), blocks=tuple(page.blocks))


def _title(tree: LexborHTMLParser) -> str:
    title = tree.css_first("title")
    return " ".join(normalise(title.text()).split()) if title else ""


def _is_heavy(markup: str) -> bool:
    """Say whether a page is large or odd, so that its tree might take much time or memory."""
    n_tags = markup.count("<")
    if n_tags > _MAX_TAGS_HERE or n_tags * (_N_BARE + _count(_FORMATTING, markup)) > _MAX_NODES_HERE:
        return True
    return max(map(len, markup.split(">"))) * (1 + _count(_QUOTED_END, markup)) > _MAX_TAG_HERE


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))
