"""Source code and configuration: each function, class, key or section is one block, kept whole under its name.

A unit of code begins at a line without indentation after a blank line, which is how formatted code of all languages
looks; the body of a long class is divided in the same way. A unit of YAML begins at each key, one of TOML and INI at
each section. Comments directly above belong to the unit.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.builder import DocumentBuilder
from quipu.parse.decode import decode, display_name

_MAX_WHOLE = 60  # lines of a class that is one block; a longer one is a block for each method
_MAX_LABEL = 100  # characters
_COMMENT = re.compile(r"\s*(?:#|//|;|--|/?\*|%|\"\"\"|''')")
_CLOSING = re.compile(r"\s*(?:[\]})]|end\b|fi\b|done\b|esac\b|else\b|elif\b|except\b|finally\b|catch\b)")
_DEFINITION = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([a-z]+\))?|unsafe|extern"
    r"|inline|virtual|override|const|sealed|partial|open|data|create(?: or replace)?)\s+){0,6}"
    r"(def|class|func|function|fn|fun|sub|struct|union|interface|enum|trait|impl|type|module|namespace|package|protocol"
    r"|object|message|service|table|view|procedure|defmodule|defp?|macro_rules!)\s+"
    r"(?:<[^<>\n]{0,80}>\s*|\([^()\n]{0,80}\)\s*)?([A-Za-z_$][\w.$:-]{0,80})",
    re.IGNORECASE,
)
_CALLABLE = re.compile(
    r"(?!(?:if|for|while|switch|return|else)\b)(?:[\w:<>,~\[\]]+[ \t*&]+){0,8}([A-Za-z_~][\w:~.]{0,80})\s?\("
)
_ASSIGNED = re.compile(r"(?:export\s+)?(?:const|let|var)\s+([A-Za-z_$][\w$]{0,80})\s*=")
_CLASS_WORDS = frozenset(("class", "struct", "interface", "trait", "impl", "module", "namespace", "enum", "object"))
_KEY = re.compile(r"([A-Za-z_\"'][^:#\n]{0,80}):(?:\s|$)")
_SECTION = re.compile(r"\[{1,2}([^\[\]\n]{1,80})\]{1,2}")
_STARTS_BY_TYPE = {"application/yaml": _KEY, "application/toml": _SECTION, "text/x-ini": _SECTION}


class SourceCodeParser:
    """Reads programs in any language, and YAML, TOML and INI files. The text stays as written."""

    media_types = frozenset({"text/x-source", *_STARTS_BY_TYPE})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the units as code blocks; the title is the file's name. Raises InvalidDocument for other bytes."""
        lines = [line.rstrip() for line in decode(source).split("\n")]
        builder = DocumentBuilder(display_name(source))
        start_pattern = _STARTS_BY_TYPE.get(source.media_type.partition(";")[0].strip().lower())
        if start_pattern:
            for unit in _entries(lines, start_pattern):
                label = next((match[1] for match in map(start_pattern.match, unit) if match), "")
                _add(builder, unit, label.strip(" \"'"), 1)
        else:
            for unit in _units(lines, 0):
                _add_unit(builder, unit)
        return builder.build(PurePosixPath(source.source.replace("\\", "/")).name)


PARSER = SourceCodeParser()


def _units(lines: Sequence[str], max_indent: int) -> Iterator[Sequence[str]]:
    """Yield the runs of lines that begin after a blank line with at most `max_indent` characters of indentation."""
    start = 0
    for position in range(1, len(lines)):
        line = lines[position]
        if not line or lines[position - 1]:
            continue
        if _indent(line) <= max_indent and not _CLOSING.match(line):
            yield lines[start:position]
            start = position
    yield lines[start:]


def _entries(lines: Sequence[str], start_pattern: re.Pattern[str]) -> Iterator[Sequence[str]]:
    """Yield the runs of lines that begin with a match of `start_pattern`, or with the comments above it."""
    start = 0
    for position, line in enumerate(lines):
        if start_pattern.match(line):
            first = position
            while first > start and _COMMENT.match(lines[first - 1]):
                first -= 1
            if first > start:
                yield lines[start:first]
                start = first
    yield lines[start:]


def _add_unit(builder: DocumentBuilder, unit: Sequence[str]) -> None:
    """Add a unit of code: whole, or for a long class its head and each of its methods."""
    word, name = _definition(unit)
    if len(unit) <= _MAX_WHOLE or word not in _CLASS_WORDS:
        _add(builder, unit, name, 1)
        return
    indents = (_indent(line) for line in unit if line.startswith((" ", "\t")))
    head, *members = _units(unit, min(indents, default=0))
    _add(builder, head, name, 1)
    for member in members:
        _add(builder, member, _definition(member)[1], 2)


def _add(builder: DocumentBuilder, unit: Sequence[str], label: str, level: int) -> None:
    builder.path.leave(level)
    if label:
        builder.path.enter(level, label[:_MAX_LABEL])
    builder.add("\n".join(unit), "code")


def _definition(unit: Sequence[str]) -> tuple[str, str]:
    """Return the word and the name of the first definition in a unit, such as ("class", "Store"), or empty strings."""
    indent = min(map(_indent, filter(None, unit)), default=0)
    for line in unit:
        if not line or _indent(line) > indent or _COMMENT.match(line):
            continue
        if match := _DEFINITION.match(line):
            return match[1].lower(), match[2].rstrip(":.")
        if match := _CALLABLE.match(line.strip()) or _ASSIGNED.match(line.strip()):
            return "", match[1]
    return "", ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
