"""DOM: walking an HTML tree, and which of its elements are text somebody reads."""

import re
from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborNode

Skips = Callable[[LexborNode], bool]


def tags(names: str) -> frozenset[str]:
    """Return the tags named in `names`, which spaces separate."""
    return frozenset(names.split())


_NEVER_READ = tags(
    "head script style noscript template iframe object canvas svg audio video button select textarea input "
    "datalist dialog"
)
_FURNITURE = tags("nav header footer aside form")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_NOT_IN_DATA_TABLES = tags("table ul ol menu pre h1 h2 h3 h4 h5 h6")
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]{0,30})(?=[\s>/])", re.IGNORECASE)
_TEXT_ONLY = tags("script style textarea title")
_CLOSED_BY_OTHERS = tags(
    "p li dt dd tr td th thead tbody tfoot option optgroup colgroup rp rt html head body br hr img input meta "
    "link area base col embed param source track wbr"
)


def is_never_read(node: LexborNode) -> bool:
    """Say whether nobody reading the page would see `node`."""
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
    """Say whether `node` belongs to the site or is never read; the header of an article belongs to the article."""
    if is_never_read(node):
        return True
    return node.tag in _FURNITURE and not (node.tag == "header" and _is_within_article(node))


def _is_within_article(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None and parent.tag not in ("article", "main"):
        parent = parent.parent
    return parent is not None


def walk(root: LexborNode, skips: Skips) -> Iterator[tuple[LexborNode, bool]]:
    """Yield each node in document order as it is entered (True) and left (False), without recursion."""
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


def layout_tables(root: LexborNode, skips: Skips) -> frozenset[int]:
    """Return the memory ids of the tables that only place things on the page: they hold headings, lists or tables."""
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
    """Return about how deep the elements of `markup` nest, at most, without building the tree."""
    depth = deepest = position = 0
    while tag := _TAG.search(markup, position):
        position = tag.end()
        name = tag[2].lower()
        if name in _CLOSED_BY_OTHERS:
            continue
        depth = max(0, depth - 1) if tag[1] else depth + 1
        deepest = max(deepest, depth)
        if name in _TEXT_ONLY and not tag[1]:
            closing = re.compile(f"</{name}", re.IGNORECASE).search(markup, position)
            position = closing.start() if closing else len(markup)
    return deepest
