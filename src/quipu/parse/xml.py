"""XML: the parts of office files and e-books as trees, without document types, entities or anything from outside."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Literal, cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from quipu.errors import InvalidDocument
from quipu.parse.damage import damaged
from quipu.parse.limits import MAX_NODES, MAX_SILENT_BYTES

_Kind = Literal["start", "end"]
_BIT = 1 << 16  # bytes fed at once
_MAX_STREAMED_DEPTH = 64  # of what is read element by element; a cell of a sheet is at 6
_DOCTYPE = b"<!DOCTYPE"
# Another encoding could hide a document type from the search for one.
_ENCODING = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})""")
_ENCODINGS = frozenset({b"utf-8", b"utf8", b"us-ascii", b"ascii", b"utf-16", b"iso-8859-1", b"windows-1252"})


def load_tree(data: bytes, name: str) -> Element:
    """Return the root element of `data`, which may hold MAX_NODES at any depth.

    Raises InvalidDocument, naming the document `name`, where it is damaged, has a document type, or is too large.
    """
    root: Element | None = None
    bits = (data[start : start + _BIT] for start in range(0, len(data), _BIT))
    n_nodes = 0
    for _, element in _events(("start",), bits, name):
        root = element if root is None else root
        n_nodes += _n_nodes(element)
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
    for event, element in _events(("start", "end"), iter(lambda: stream.read(_BIT), b""), name):
        is_wanted = local(element) == tag
        if event == "start":
            open_elements.append(element)
            n_kept += is_wanted
            n_nodes = n_nodes + _n_nodes(element) if n_kept else 0
            _refuse_over(n_nodes, name)
            if len(open_elements) > _MAX_STREAMED_DEPTH:
                raise damaged(name, "its elements nest absurdly deep")
            continue
        open_elements.pop()
        n_kept -= is_wanted
        if is_wanted:
            yield element
        if not n_kept:
            element.clear()
            if open_elements:
                open_elements[-1].remove(element)


def local(element: Element) -> str:
    """Return the name of an element without its namespace, which differs between the kinds of one format."""
    return element.tag.rpartition("}")[2]


def attribute(element: Element | None, name: str) -> str:
    """Return the attribute called `name` in any namespace or none; the empty string where there is none."""
    if element is None:
        return ""
    value = element.get(name)
    if value is None:
        value = next((value for key, value in element.items() if key.rpartition("}")[2] == name), "")
    return value


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


def _events(kinds: Sequence[_Kind], bits: Iterable[bytes], name: str) -> Iterator[tuple[str, Element]]:
    """Yield the parser's events, drained after each bit so that few are held."""
    parser: XMLPullParser[Element] = XMLPullParser(kinds)
    before = b""
    n_silent = 0
    try:
        for bit in bits:
            _refuse_document_type(before, bit, name)
            parser.feed(bit)
            n_silent += len(bit)
            for event in cast(Iterator[tuple[str, Element]], parser.read_events()):
                n_silent = 0
                yield event
            if n_silent > MAX_SILENT_BYTES:
                raise damaged(name, f"an element of it is larger than {MAX_SILENT_BYTES:,} bytes")
            before = (before + bit)[-2 * len(_DOCTYPE) :]
        parser.close()
    except (ParseError, ValueError, LookupError) as error:
        raise damaged(name, f"a part of it is not sound XML ({error})") from error


def _refuse_document_type(before: bytes, bit: bytes, name: str) -> None:
    """Raise InvalidDocument for a document type: it can define entities that stand for gigabytes or other files."""
    declared = _ENCODING.match(bit.lstrip(b"\xef\xbb\xbf")) if not before else None
    is_hidden = declared is not None and declared[1].lower() not in _ENCODINGS
    if is_hidden or _DOCTYPE in (before + bit).replace(b"\0", b""):  # without NUL, UTF-16 reads as ASCII
        raise InvalidDocument(
            f"{name} is refused: its XML has a document type or an unusual encoding, which honest files never have.",
            remedy="Save it anew, or leave it out.",
        )
