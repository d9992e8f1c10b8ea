"""Markup process: parses the markup on standard input and writes a document as JSON; run by quipu.parse.apart.

Its argument is the module whose `read_markup` is to read it.
"""

import json
import sys
from importlib import import_module

from selectolax.lexbor import SelectolaxError

from quipu.model.document import ParsedDocument


def main() -> None:
    """Read one text; where there is not enough memory for it, say so."""
    markup = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
    try:
        found = import_module(f"quipu.parse.{sys.argv[1]}").read_markup(markup)
    except (MemoryError, SelectolaxError):
        found = None
    json.dump({"error": "memory"} if found is None else _said(found), sys.stdout)


def _said(document: ParsedDocument) -> dict[str, object]:
    paths: dict[tuple[str, ...], int] = {}  # a path of headings is long, and stands above many blocks
    blocks = [
        (block.start, block.end, block.kind, paths.setdefault(block.headings, len(paths)), block.header)
        for block in document.blocks
    ]
    return {"text": document.text, "title": document.title, "blocks": blocks, "paths": list(paths)}


if __name__ == "__main__":
    main()
