"""XML: the parts of office files and e-books as trees, without document types, entities or anything from outside."""

from collections.abc import Iterable, Iterator
from typing import IO, Literal
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers.expat import ExpatError, ParserCreate, XMLParserType

from quipu.errors import InvalidDocument
from quipu.parse.damage import damaged
from quipu.parse.limits import MAX_NODES, MAX_TAG_BYTES

_Event = Literal["start", "end"]
_BIT = 1 << 16  # bytes fed at once
_MAX_STREAMED_DEPTH = 64  # of what is read element by element; a cell of a sheet is at 6
_MAX_DIGITS = 18


def load_tree(data: bytes, name: str) -> Element:
    """Return the root element of `data`, which may hold MAX_NODES at any depth.

    Raises InvalidDocument, naming the document `name`, where it is damaged, has a document type, or is too large.
    """
    root: Element | None = None
    bits = (data[start : start + _BIT] for start in range(0, len(data), _BIT))
    n_nodes = 0
    for event, element in _events(bits, name):
        root = element if root is None else root
        n_nodes += _n_nodes(element) if event == "start" else 0
        _refuse_over(n_nodes, name)
    if root is None:
        raise damaged(name, "a part of it is empty")
    return root


def stream_elements(stream: IO[bytes], tag: str, name: str) -> Iterator[Element]:
    """Yield each element called `tag` (a local name) when it is complete, and forget it afterwards.

    Memory holds one such element, and those that are open. Raises InvalidDocument as `load_tree` does.
    """
    open_elements: list[Element] = []
    n_kept = 0  # open elements called `tag`: what is in them is kept
    n_nodes = 0  # in them
    for event, element in _events(iter(lambda: stream.read(_BIT), b""), name):
        is_wanted = local(element) == tag
        if event == "start":
            open_elements.append(element)
            n_kept += is_wanted
            n_nodes += _n_nodes(element) if n_kept else 0
            _refuse_over(n_nodes, name)
            if len(open_elements) > _MAX_STREAMED_DEPTH:
                raise damaged(name, "its elements nest absurdly deep")
            continue
        open_elements.pop()
        n_kept -= is_wanted
        if is_wanted:
            yield element
        if not n_kept:
            n_nodes = 0
            element.clear()
            if open_elements:
                open_elements[-1].remove(element)


def local(element: Element) -> str:
    """Return the name of an element without its prefix, which differs between programs."""
    return element.tag.rpartition(":")[2]


def attribute(element: Element | None, name: str) -> str:
    """Return the attribute called `name` with any prefix or none; the empty string where there is none."""
    if element is None:
        return ""
    value = element.get(name)
    if value is None:
        value = prefixed_attribute(element, name)
    return value


def prefixed_attribute(element: Element, name: str) -> str:
    """Return the attribute called `name` with a prefix; the empty string where there is none."""
    return next((value for key, value in element.items() if _is_prefixed(key, name)), "")


def _is_prefixed(key: str, name: str) -> bool:
    prefix, _, rest = key.partition(":")
    return rest == name and prefix != "xmlns"


def number(element: Element | None, name: str) -> int | None:
    """Return the attribute called `name` as a number from 0; None where it is none, or has absurdly many digits."""
    return whole_number(attribute(element, name))


def whole_number(text: str) -> int | None:
    """Return `text` as a number from 0; None where it is none, or has absurdly many digits."""
    return int(text) if len(text) <= _MAX_DIGITS and text.isdecimal() else None


def children(element: Element, *names: str) -> Iterator[Element]:
    """Yield the children with one of the local `names`, in order."""
    return (each for each in element if local(each) in names)


def child(element: Element | None, *path: str) -> Element | None:
    """Return the first child called as `path` says, of the first child so called, and so on down; None if missing."""
    found = element
    for name in path:
        found = None if found is None else next(children(found, name), None)
    return found


def descendants(element: Element, *names: str) -> Iterator[Element]:
    """Yield `element` and its descendants with one of the local `names`, in document order."""
    return (each for each in element.iter() if local(each) in names)


def _n_nodes(element: Element) -> int:
    return 1 + len(element.keys())


def _refuse_over(n_nodes: int, name: str) -> None:
    if n_nodes > MAX_NODES:
        raise InvalidDocument(
            f"{name} has a part of more than {MAX_NODES:,} XML elements and attributes.",
            remedy="Split it into several files.",
        )


def _events(bits: Iterable[bytes], name: str) -> Iterator[tuple[_Event, Element]]:
    """Yield elements as they begin and end, after each bit, so that few events are held."""
    happened: list[tuple[_Event, Element]] = []
    parser = _parser(TreeBuilder(), happened, name)
    n_fed = 0
    try:
        for bit in bits:
            parser.Parse(bit, False)
            n_fed += len(bit)
            if n_fed - parser.CurrentByteIndex > MAX_TAG_BYTES:
                raise damaged(name, f"a tag in it is longer than {MAX_TAG_BYTES:,} bytes")
            yield from happened
            happened.clear()
        parser.Parse(b"", True)
    except (ExpatError, ValueError, LookupError) as error:
        raise damaged(name, f"a part of it is not sound XML ({error})") from error


def _parser(builder: TreeBuilder, happened: list[tuple[_Event, Element]], name: str) -> XMLParserType:
    """Return a parser that tells `builder` what there is, and `happened` what begins and ends."""

    def refuse_document_type(*_declared: object) -> None:
        raise InvalidDocument(
            f"{name} is refused: its XML has a document type, which honest files never have.",
            remedy="Save it anew, or leave it out.",
        )

    # Without namespaces: put before each name, a long one would make gigabytes of a few names.
    parser = ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: happened.append(("start", builder.start(tag, attributes)))
    parser.EndElementHandler = lambda tag: happened.append(("end", builder.end(tag)))
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse_document_type
    return parser
