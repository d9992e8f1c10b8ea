"""GraphML: the nodes and edges of a graph with their attributes, read element by element."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers.expat import ExpatError, ParserCreate, XMLParserType

from quipu.errors import InvalidInput

_READ_SIZE = 1 << 16  # bytes given to the parser at once
_MAX_DEPTH = 32  # a label of an editor within a node of a nested graph has depth 12
_MAX_TAG_BYTES = 1 << 20
_MAX_ATTRIBUTE_CHARS = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphmlNode:
    """A node: its id, the values of its attributes by name, and the line it begins in."""

    id: str
    attributes: Mapping[str, str]
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphmlEdge:
    """An edge between two nodes, given by their ids, with its attributes and the line it begins in."""

    source: str
    target: str
    attributes: Mapping[str, str]
    line: int


@dataclass(frozen=True, slots=True)
class GraphmlGraph:
    """The nodes by id and the edges in the order of the file."""

    nodes: Mapping[str, GraphmlNode]
    edges: tuple[GraphmlEdge, ...]


def read_graphml(file: Path) -> GraphmlGraph:
    """Return the graph in a file. Graphs within nodes belong to it as well; hyperedges and ports are ignored.

    Attributes have the names of their keys, and their default values where they are missing. Raises InvalidInput, with
    the line, if the file is not GraphML, has a document type, repeats a node, or names a node that is missing.
    """
    reader = _Reader(file)
    try:
        with file.open("rb") as content:
            n_parsed = 0
            while part := content.read(_READ_SIZE):
                reader.parser.Parse(part, False)
                n_parsed += len(part)
                if n_parsed - reader.parser.CurrentByteIndex > _MAX_TAG_BYTES:
                    raise reader.fault(f"a tag is longer than {_MAX_TAG_BYTES:,} bytes")
            reader.parser.Parse(b"", True)
    except (ExpatError, ValueError, LookupError) as error:
        raise InvalidInput(f"{file} is not valid XML ({error}).", remedy="Write the file again.") from None
    return reader.graph()


@dataclass(slots=True)
class _Key:
    """The name of an attribute, and the value of nodes or edges that have none."""

    name: str
    owner: str  # "node", "edge", "all", or something else
    default: str | None = None


@dataclass(slots=True)
class _Element:
    """An open node or edge, its own attributes and its data by the name of the key."""

    tag: str
    own: Mapping[str, str]
    line: int
    attributes: dict[str, str] = field(default_factory=dict)


class _Reader:
    """Receives the elements of a file in order."""

    def __init__(self, file: Path) -> None:
        self.parser = self._parser()
        self._file = file
        self._depth = 0
        self._keys: dict[str, _Key] = {}
        self._key: _Key | None = None  # the open <key>
        self._open: list[_Element] = []  # open nodes and edges; a node may contain a graph
        self._data_key = ""
        self._text: list[str] | None = None  # of the open <data> or <default>
        self._n_chars = 0
        self._nodes: dict[str, GraphmlNode] = {}
        self._edges: list[GraphmlEdge] = []

    def fault(self, fault: str, line: int = 0) -> InvalidInput:
        """Return the error about a line, by default the one that the parser is at."""
        where = f"{self._file}, line {line or self.parser.CurrentLineNumber}"
        return InvalidInput(f"{where}: {fault}.", remedy="Correct the file; docs/importing.md shows GraphML files.")

    def graph(self) -> GraphmlGraph:
        """Return the graph. Raises InvalidInput if an edge names a node that is missing."""
        for edge in self._edges:
            for end in (edge.source, edge.target):
                if end not in self._nodes:
                    raise self.fault(f"the edge names the node {end[:80]!r}, which is missing", edge.line)
        return GraphmlGraph(self._nodes, tuple(self._edges))

    def _parser(self) -> XMLParserType:
        parser = ParserCreate()  # without namespaces: a long one would be put before every name
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.StartDoctypeDeclHandler = self._refuse_document_type
        return parser

    def _refuse_document_type(self, *_declaration: object) -> None:
        raise self.fault("the file has a document type, which GraphML files do not need and which may be an attack")

    def _start(self, name: str, own: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        self._depth += 1
        if self._depth == 1 and tag != "graphml":
            raise self.fault(f"the file begins with <{name[:80]}>, so it is not GraphML")
        if self._depth > _MAX_DEPTH:
            raise self.fault(f"elements nest more than {_MAX_DEPTH} deep")
        if tag == "key":
            name = own.get("attr.name") or own.get("yfiles.type") or own.get("id", "")
            self._key = _Key(name, own.get("for", "all"))
            self._keys[own.get("id", "")] = self._key
        elif tag in ("node", "edge"):
            self._open.append(_Element(tag, own, self.parser.CurrentLineNumber))
        elif tag == "data" and self._open and self._text is None:
            self._data_key = own.get("key", "")
            if self._data_key not in self._keys:
                raise self.fault(f"there is no <key> with the id {self._data_key[:80]!r}")
            self._text, self._n_chars = [], 0
        elif tag == "default" and self._key is not None:
            self._text, self._n_chars = [], 0

    def _add_text(self, text: str) -> None:
        if self._text is not None:
            self._n_chars += len(text)
            if self._n_chars > _MAX_ATTRIBUTE_CHARS:
                raise self.fault(f"an attribute has more than {_MAX_ATTRIBUTE_CHARS:,} characters")
            self._text.append(text)

    def _end(self, name: str) -> None:
        tag = name.rpartition(":")[2]
        self._depth -= 1
        if tag == "data" and self._open and self._text is not None:
            self._open[-1].attributes[self._keys[self._data_key].name] = "".join(self._text)
            self._text = None
        elif tag == "default" and self._key is not None and self._text is not None:
            self._key.default = "".join(self._text)
            self._text = None
        elif tag == "key":
            self._key = None
        elif tag in ("node", "edge") and self._open:
            self._close(self._open.pop())

    def _close(self, element: _Element) -> None:
        defaults = {
            key.name: key.default
            for key in self._keys.values()
            if key.default is not None and key.owner in (element.tag, "all")
        }
        attributes = {**defaults, **element.attributes}
        if element.tag == "node":
            node = GraphmlNode(id=self._own(element, "id"), attributes=attributes, line=element.line)
            if node.id in self._nodes:
                raise self.fault(f"there is a second node {node.id[:80]!r}", element.line)
            self._nodes[node.id] = node
        else:
            source, target = self._own(element, "source"), self._own(element, "target")
            self._edges.append(GraphmlEdge(source=source, target=target, attributes=attributes, line=element.line))

    def _own(self, element: _Element, name: str) -> str:
        value = element.own.get(name, "")
        if not value.strip():
            raise self.fault(f"the {element.tag} has no `{name}`", element.line)
        return value
