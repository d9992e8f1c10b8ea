"""HTML: pages as readable text, without what only serves the site around it."""

import re

from selectolax.lexbor import LexborHTMLParser

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.decode import decode, name_of, normalise
from quipu.parse.dom import is_furniture, is_never_read, nesting_depth
from quipu.parse.page import PageReader

_CHARSET = re.compile(
    rb"""<(?:meta\s[^<>]{0,200}?charset|\?xml\s[^<>]{0,200}?encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)
_CHARSET_WITHIN = 4096  # bytes
# Real pages nest tens of elements deep; the time the tree takes grows with the square of the depth.
_MAX_DEPTH = 5_000


class HtmlParser:
    """Reads HTML and XHTML: headings, paragraphs, lists, tables ("a | b" a row) and preformatted text."""

    media_types = frozenset({"text/html", "application/xhtml+xml"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the page's readable text, a blank line between blocks; the title is its first h1, else its <title>.

        Raises InvalidDocument for bytes that are no text and for elements nested absurdly deep.
        """
        declared = _CHARSET.search(source.data[:_CHARSET_WITHIN])
        markup = decode(source, declared[1].decode("ascii", "replace") if declared else "")
        if nesting_depth(markup) > _MAX_DEPTH:
            raise InvalidDocument(
                f"The elements of {name_of(source)} nest more than {_MAX_DEPTH} deep.",
                remedy="Save the page as text, or leave it out.",
            )
        tree = LexborHTMLParser(markup)
        if tree.root is None:
            return ParsedDocument(text="", title="", blocks=())
        page = PageReader(tree.root, is_furniture)
        if not page.blocks:  # all form or header, as old frameworks wrap whole pages: read it whole
            page = PageReader(tree.root, is_never_read)
        return ParsedDocument(text=page.text, title=page.title or _title(tree), blocks=tuple(page.blocks))


PARSER = HtmlParser()


def _title(tree: LexborHTMLParser) -> str:
    title = tree.css_first("title")
    return " ".join(normalise(title.text()).split()) if title else ""
