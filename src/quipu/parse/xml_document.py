"""XML documents: the text of each element that holds text, under the titles of the sections around it.

Elements named like headings of DocBook, TEI or JATS give the heading path. Elements that mark words within a sentence
are joined. Other XML, such as a feed or a configuration, gives a line for each value: "name: text".
"""

import re
from xml.parsers.expat import ExpatError, ParserCreate

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.builder import DocumentBuilder
from quipu.parse.decode import damaged_document, declared_charset, decode, display_name
from quipu.parse.limits import MAX_NODES

_MAX_DEPTH = 200
_MAX_NAME = 60  # characters of the name of a value
_DECLARATION = re.compile(r"\s*<\?xml[^>]{0,300}\?>")
_TITLES = frozenset(["title", "head", "subject", "headline"])
_PARAGRAPHS = frozenset(["para", "simpara", "p", "paragraph", "abstract", "summary", "description", "content", "text"])
_CODE = frozenset(["programlisting", "screen", "literallayout", "pre", "synopsis", "verbatim"])
_ITEMS = frozenset(["listitem", "li", "member", "step"])
_TEXTS = _TITLES | _PARAGRAPHS | _CODE | _ITEMS
_ENTITY = re.compile(r"&[\w.-]{1,60};")


class XmlParser:
    """Reads any XML. External files are never read, and entities that a document defines are not expanded."""

    media_types = frozenset({"application/xml", "text/xml"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the text of the elements; the title is the first title. Raises InvalidDocument for invalid XML."""
        reader = _XmlReader(display_name(source))
        parser = ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = reader.start
        parser.EndElementHandler = reader.end
        parser.CharacterDataHandler = reader.add_text
        parser.DefaultHandler = reader.add_entity  # with this handler, entities of the document are not expanded
        text = decode(source, declared_charset(source.content))
        declaration = _DECLARATION.match(text)
        try:
            parser.Parse(text[declaration.end() if declaration else 0 :].encode("utf-8"), True)
        except ExpatError as error:
            raise damaged_document(display_name(source), f"it is not valid XML ({error})") from error
        return reader.builder.build(reader.title)


PARSER = XmlParser()


class _XmlReader:
    """Receives the elements and texts of a document in order, and adds blocks to `builder`."""

    def __init__(self, name: str) -> None:
        self.builder = DocumentBuilder(name)
        self.title = ""
        self._names: list[str] = []  # of the open elements
        self._words: list[str] = []
        self._values: list[str] = []  # lines of values that follow each other in one element
        self._n_nodes = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Open an element. Text before it ends, unless the element only marks words of a paragraph."""
        self._n_nodes += 1 + len(attributes)
        if self._n_nodes > MAX_NODES or len(self._names) >= _MAX_DEPTH:
            raise InvalidDocument(
                f"{self.builder.name} has more than {MAX_NODES:,} XML elements, or nests more than {_MAX_DEPTH} deep.",
                remedy="Split it into several files.",
            )
        name = tag.rpartition(":")[2].lower()
        if not self._is_within_text(name):
            self._end_text(self._names[-1] if self._names else "", len(self._names) - 1)
        self._names.append(name)

    def end(self, _tag: str) -> None:
        """Close an element; its text becomes a block, unless the text continues in its parent."""
        name = self._names.pop()
        if self._is_within_text(name):
            return
        if not "".join(self._words).strip():
            self._end_values()
        self._end_text(name, len(self._names))
        if not self._names:
            self._end_values()
        if name not in _TITLES:
            self.builder.path.leave(len(self._names) + 1)

    def add_text(self, text: str) -> None:
        """Add text of the open element."""
        self._words.append(text)

    def add_entity(self, text: str) -> None:
        """Add the name of an entity that is not expanded; anything else that comes here is no text."""
        if _ENTITY.fullmatch(text):
            self._words.append(text[1:-1])

    def _is_within_text(self, name: str) -> bool:
        """Return whether an element called `name`, in the open elements, marks words of a text."""
        parent = self._names[-1] if self._names else ""
        return parent in _TEXTS and name not in _TEXTS

    def _end_text(self, name: str, level: int) -> None:
        text = "".join(self._words)
        self._words.clear()
        if not text.strip():
            return
        line = " ".join(text.split())
        if name not in _TEXTS:
            self._values.append(f"{name[:_MAX_NAME]}: {line}")
            return
        self._end_values()
        if name in _TITLES:
            self.title = self.title or line
            self.builder.add_heading(line, level)
        elif name in _CODE:
            self.builder.add(text, "code")
        elif name in _ITEMS:
            self.builder.add(f"- {line}", "list")
        else:
            self.builder.add(line)

    def _end_values(self) -> None:
        if self._values:
            self.builder.add("\n".join(self._values))
            self._values.clear()
