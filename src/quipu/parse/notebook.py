"""Jupyter notebooks: the cells in order as one Markdown text, with code and short outputs in fences."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.decode import decode, display_name, normalise
from quipu.parse.limits import MAX_JSON_VALUES
from quipu.parse.markdown import parse_markdown

_MAX_OUTPUT = 1_000  # characters of the outputs of one cell
_MAX_OUTPUT_LINES = 20
_INLINE_DATA = re.compile(r"data:[\w/+.-]{1,60};base64,[A-Za-z0-9+/=]+")
_STYLE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")  # of a terminal
_OBJECT = re.compile(r"<[^<>\n]+>(?:\s*<[^<>\n]+>)*")  # such as <Figure size 640x480 with 1 Axes>
_FENCES = re.compile("`{3,}")


class NotebookParser:
    """Reads notebooks of format 3 and 4. Pictures, widgets and HTML in outputs are left out."""

    media_types = frozenset({"application/x-ipynb+json"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the cells: Markdown as written, code and outputs as code blocks.

        The title is the first heading of level 1, otherwise any heading above the first text. Raises InvalidDocument
        if the bytes are not a notebook.
        """
        notebook = _load(decode(source), display_name(source))
        language = _language(notebook)
        parts = (part for cell in _cells(notebook) for part in _cell_parts(cell, language))
        text = normalise("\n\n".join(part for part in parts if part.strip()))
        parsed = parse_markdown(text, display_name(source))
        title = parsed.title or _first_heading(parsed)
        return replace(parsed, title=title, metadata={"language": language} if language else {})


PARSER = NotebookParser()


def _first_heading(parsed: ParsedDocument) -> str:
    """Return the first heading, if only code is above it; else the empty string."""
    block = next((block for block in parsed.blocks if block.kind != "code"), None)
    return parsed.text[block.start : block.end].strip("# ") if block and block.kind == "heading" else ""


def _load(text: str, name: str) -> Mapping[str, object]:
    if sum(map(text.count, ",:[{")) > MAX_JSON_VALUES:
        raise InvalidDocument(
            f"{name} holds more than {MAX_JSON_VALUES:,} values.", remedy="Clear its outputs, and save it again."
        )
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidDocument(
            f"{name} is not a notebook: {error}.", remedy="Save it again in Jupyter, or as Markdown."
        ) from error
    if not isinstance(notebook, Mapping) or not any(key in notebook for key in ("cells", "worksheets")):
        raise InvalidDocument(f"{name} is not a notebook: it has no cells.", remedy="Give it the suffix .json.")
    return notebook


def _language(notebook: Mapping[str, object]) -> str:
    """Return the programming language that the notebook names, or the empty string."""
    metadata = _mapping(notebook.get("metadata"))
    for place in (metadata.get("language_info"), metadata.get("kernelspec")):
        for key in ("name", "language"):
            name = _mapping(place).get(key)
            if isinstance(name, str) and re.fullmatch(r"[\w+#.-]{1,30}", name):
                return re.sub(r"\d+$", "", name.lower())
    return ""


def _cells(notebook: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    sheets = [notebook] if "cells" in notebook else _list(notebook.get("worksheets"))
    for sheet in sheets:
        yield from map(_mapping, _list(_mapping(sheet).get("cells")))


def _cell_parts(cell: Mapping[str, object], language: str) -> Iterator[str]:
    """Yield the Markdown of a cell: its source, then its outputs."""
    text = _text(cell.get("source", cell.get("input")))
    kind = cell.get("cell_type")
    if kind == "code":
        if text.strip():
            yield _fenced(text, language)
        if output := _shortened("\n".join(filter(None, map(_output_text, _list(cell.get("outputs")))))):
            yield _fenced(output)
    elif kind == "heading":
        level = cell.get("level")
        yield f"{'#' * (level if isinstance(level, int) and 0 < level <= 6 else 1)} {' '.join(text.split())}"
    else:
        yield _INLINE_DATA.sub("", text)


def _output_text(output: object) -> str:
    """Return the plain text of one output; of an error its last line; "" for pictures and objects without text."""
    fields = _mapping(output)
    if fields.get("output_type") in ("error", "pyerr"):
        return f"{_text(fields.get('ename'))}: {_text(fields.get('evalue'))}"
    formats = _mapping(fields.get("data")) or fields
    text = _text(formats.get("text/plain", formats.get("text")))
    text = "\n".join(line.rsplit("\r", 1)[-1] for line in _STYLE.sub("", text).rstrip().split("\n"))
    return "" if _OBJECT.fullmatch(text.strip()) else text


def _shortened(output: str) -> str:
    lines = output.strip("\n").split("\n")
    text = "\n".join(lines[:_MAX_OUTPUT_LINES])
    is_whole = len(lines) <= _MAX_OUTPUT_LINES and len(text) <= _MAX_OUTPUT
    return text if is_whole else f"{text[:_MAX_OUTPUT].rstrip()}\n…"


def _fenced(text: str, language: str = "") -> str:
    """Return `text` in a fence that is longer than any fence in it."""
    fence = "`" * max(3, 1 + max(map(len, _FENCES.findall(text)), default=0))
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def _text(value: object) -> str:
    """Return a text that is stored whole or as a list of lines."""
    return value if isinstance(value, str) else "".join(line for line in _list(value) if isinstance(line, str))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else []
