"""Markup process: large HTML or Markdown is parsed in a sandboxed process, which is this file run as a script.

The script reads the markup from standard input and writes the document as JSON. Its argument is the module of this
package whose `read_markup` parses the text.
"""

import json
import sys
from importlib import import_module

from quipu.errors import InvalidDocument
from quipu.model.document import Block, ParsedDocument
from quipu.parse.limits import MAX_MARKUP_BYTES, MAX_MARKUP_SECONDS
from quipu.parse.sandbox import SandboxFailure, run_sandboxed


def read_markup_in_process(module: str, markup: str, name: str) -> ParsedDocument:
    """Return the document that `read_markup` of `module` makes of `markup`, without metadata.

    Raises InvalidDocument, with the document's `name`, if this takes too much memory or time.
    """
    encoded = markup.encode("utf-8", "surrogatepass")
    try:
        output = run_sandboxed(
            "markup_process.py",
            (module,),
            encoded,
            max_bytes=MAX_MARKUP_BYTES + 8 * len(encoded),
            max_seconds=MAX_MARKUP_SECONDS,
        )
    except SandboxFailure as failure:
        raise _too_expensive(name, is_time=failure.reason == "time") from failure
    fields = json.loads(output)
    if "error" in fields:
        raise _too_expensive(name, is_time=False)
    paths = [tuple(path) for path in fields["paths"]]
    return ParsedDocument(
        text=fields["text"],
        title=fields["title"],
        blocks=tuple(
            Block(start=start, end=end, kind=kind, headings=paths[path], header=header)
            for start, end, kind, path, header in fields["blocks"]
        ),
    )


def _too_expensive(name: str, *, is_time: bool) -> InvalidDocument:
    what = f"than {MAX_MARKUP_SECONDS} seconds to read" if is_time else "memory than a page may"
    return InvalidDocument(
        f"{name} takes more {what}: its markup is large or invalid.",
        remedy="Save it as plain text, split it, or leave it out.",
    )


def main() -> None:
    """Parse standard input; write {"error": "memory"} if there is not enough memory."""
    markup = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
    try:
        fields = _to_json(import_module(f"quipu.parse.{sys.argv[1]}").read_markup(markup))
    except MemoryError:
        fields = {"error": "memory"}
    json.dump(fields, sys.stdout)


def _to_json(document: ParsedDocument) -> dict[str, object]:
    paths: dict[tuple[str, ...], int] = {}  # a heading path is long and shared by many blocks, so it is written once
    blocks = [
        (block.start, block.end, block.kind, paths.setdefault(block.headings, len(paths)), block.header)
        for block in document.blocks
    ]
    return {"text": document.text, "title": document.title, "blocks": blocks, "paths": list(paths)}


if __name__ == "__main__":
    main()
