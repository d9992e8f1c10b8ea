"""XML: parts of Office files and e-books as trees. Document types, entities and external files are refused."""

from collections.abc import Iterable, Iterator
from typing import IO, Literal
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers.expat import ExpatError, ParserCreate, XMLParserType

from quipu.errors import InvalidDocument
from quipu.parse.decode import damaged_document
from quipu.parse.limits import MAX_NODES, MAX_TAG_BYTES

_Event = Literal["start", "end"]
_READ_SIZE = 1 << 16  # bytes given to the parser at once
_MAX_STREAMED_DEPTH = 64  # of an element that is streamed; a cell of a sheet has depth 6
_MAX_DIGITS = 18


def parse_tree(content: bytes, name: str) -> Element:
    """Return the root element of `content`, which may hold at most MAX_NODES elements and attributes.

    Raises InvalidDocument, with the document's `name`, if it is damaged, has a document type, or is too large.
    """
    root: Element | None = None
    parts = (content[start : start + _READ_SIZE] for start in range(0, len(content), _READ_SIZE))
    n_nodes = 0
    for event, element in _events(parts, name):
        root = element if root is None else root
        n_nodes += _n_nodes(element) if event == "start" else 0
        _check_node_count(n_nodes, name)
    if root is None:
        raise damaged_document(name, "a part of it is empty")
    return root


def stream_elements(stream: IO[bytes], tag: str, name: str) -> Iterator[Element]:
    """Yield each element with the local name `tag` when it is complete, and release it afterwards.

    Memory holds one such element and the open ones. Raises InvalidDocument as `parse_tree` does.
    """
    open_elements: list[Element] = []
    n_open_matches = 0  # open elements named `tag`, whose content is not released
    n_nodes = 0  # inside them
    for event, element in _events(iter(lambda: stream.read(_READ_SIZE), b""), name):
        is_match = local(element) == tag
        if event == "start":
            open_elements.append(element)
            n_open_matches += is_match
            n_nodes += _n_nodes(element) if n_open_matches else 0
            _check_node_count(n_nodes, name)
            if len(open_elements) > _MAX_STREAMED_DEPTH:
                raise damaged_document(name, f"its elements nest more than {_MAX_STREAMED_DEPTH} deep")
            continue
        open_elements.pop()
        n_open_matches -= is_match
        if is_match:
            yield element
        if not n_open_matches:
            n_nodes = 0
            element.clear()
            if open_elements:
                open_elements[-1].remove(element)


def local(element: Element) -> str:
    """Return the name of an element without its prefix, because programs use different prefixes."""
    return element.tag.rpartition(":")[2]


def attribute(element: Element | None, name: str) -> str:
    """Return the attribute `name`, with or without a prefix; the empty string if it is missing."""
    if element is None:
        return ""
    value = element.get(name)
    if value is None:
        value = prefixed_attribute(element, name)
    return value


def prefixed_attribute(element: Element, name: str) -> str:
    """Return the attribute `name` that has a prefix; the empty string if it is missing."""
    return next((value for key, value in element.items() if _is_prefixed(key, name)), "")


def _is_prefixed(key: str, name: str) -> bool:
    prefix, _, rest = key.partition(":")
    return rest == name and prefix != "xmlns"


def number(element: Element | None, name: str) -> int | None:
    """Return the attribute `name` as a number from 0; None if it is not one, or has more than 18 digits."""
    return whole_number(attribute(element, name))


def whole_number(text: str) -> int | None:
    """Return `text` as a number from 0; None if it is not one, or has more than 18 digits."""
    return int(text) if len(text) <= _MAX_DIGITS and text.isdecimal() else None


def children(element: Element, *names: str) -> Iterator[Element]:
    """Yield the children with one of the local `names`, in order."""
    return (node for node in element if local(node) in names)


def child(element: Element | None, *path: str) -> Element | None:
    """Follow `path`: take the first child with each name in turn. Returns None if one is missing."""
    for name in path:
        element = None if element is None else next(children(element, name), None)
    return element


def descendants(element: Element, *names: str) -> Iterator[Element]:
    """Yield `element` and its descendants with one of the local `names`, in document order."""
    return (node for node in element.iter() if local(node) in names)


def _n_nodes(element: Element) -> int:
    return 1 + len(element.keys())


def _check_node_count(n_nodes: int, name: str) -> None:
    if n_nodes > MAX_NODES:
        raise InvalidDocument(
            f"{name} has a part of more than {MAX_NODES:,} XML elements and attributes.",
            remedy="Split it into several files.",
        )


def _events(parts: Iterable[bytes], name: str) -> Iterator[tuple[_Event, Element]]:
    """Yield the elements as they begin and end. Events are yielded after each part, so that memory holds few."""
    events: list[tuple[_Event, Element]] = []
    parser = _parser(TreeBuilder(), events, name)
    n_parsed = 0
    try:
        for part in parts:
            parser.Parse(part, False)
            n_parsed += len(part)
            if n_parsed - parser.CurrentByteIndex > MAX_TAG_BYTES:
                raise damaged_document(name, f"a tag in it is longer than {MAX_TAG_BYTES:,} bytes")
            yield from events
            events.clear()
        parser.Parse(b"", True)
    except (ExpatError, ValueError, LookupError) as error:
        raise damaged_document(name, f"a part of it is not valid XML ({error})") from error


def _parser(builder: TreeBuilder, events: list[tuple[_Event, Element]], name: str) -> XMLParserType:
    """Return a parser that builds the tree with `builder` and appends the start and end of each element to `events`."""

    def refuse_document_type(*_declaration: object) -> None:
        raise InvalidDocument(
            f"{name} is refused: its XML has a document type, which normal files never have.",
            remedy="Save it again, or leave it out.",
        )

    # Namespaces are off: the parser would put them before each name, and a long one could fill gigabytes.
    parser = ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: events.append(("start", builder.start(tag, attributes)))
    parser.EndElementHandler = lambda tag: events.append(("end", builder.end(tag)))
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse_document_type
    return parser
