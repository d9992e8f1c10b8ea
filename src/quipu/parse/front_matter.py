"""Front matter: the YAML between two lines of dashes at the head of a Markdown file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from quipu.errors import InvalidDocument
from quipu.model.document import Metadata
from quipu.text.metadata import flatten_metadata

_OPENING = re.compile(r"---[ \t]*\n(?=[ \t\n]*(?:#|---|[\"']?[^\s:#\"'-][^:\n]*:(?:\s|$)))")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_MAX_DEPTH = 50
_MAX_LENGTH = 100_000  # characters; a second of work
_REMEDY = "Mend the lines between the two --- at its head, or remove them."


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The metadata at the head of a text, and where the body begins."""

    body_start: int = 0
    metadata: Metadata = field(default_factory=dict)


def split_front_matter(text: str, name: str) -> FrontMatter:
    """Return the front matter of `text` and where the body starts (0 and no metadata where there is none).

    Raises InvalidDocument, saying what and in which line, where it begins like front matter but is not valid YAML;
    `name` is the document's, for that message.
    """
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return FrontMatter()
    if closing.start() - opening.end() > _MAX_LENGTH:
        raise InvalidDocument(f"The front matter of {name} is longer than {_MAX_LENGTH:,} characters.", remedy=_REMEDY)
    return FrontMatter(closing.end(), _load(text[opening.end() : closing.start()], name))


def _load(text: str, name: str) -> Metadata:
    try:
        _refuse_bombs(text, name)
        values = yaml.safe_load(text)
        if values is None:
            return {}
        if not isinstance(values, Mapping):
            raise InvalidDocument(f"The front matter of {name} is not a list of `key: value` lines.", remedy=_REMEDY)
        return flatten_metadata(values)
    except yaml.YAMLError as error:
        raise InvalidDocument(
            f"The front matter of {name} is not valid YAML{_where(error)}.", remedy=_REMEDY
        ) from error
    except (ValueError, TypeError, OverflowError) as error:  # what the YAML library lets through: 2024-13-45
        raise InvalidDocument(f"The front matter of {name} has an unusable value: {error}.", remedy=_REMEDY) from error


def _refuse_bombs(text: str, name: str) -> None:
    """Raise InvalidDocument for aliases, by which a few lines can stand for gigabytes, and for absurd nesting."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise InvalidDocument(f"The front matter of {name} nests more than {_MAX_DEPTH} deep.", remedy=_REMEDY)
        if isinstance(event, yaml.AliasEvent):
            raise InvalidDocument(
                f"The front matter of {name} uses the YAML alias *{event.anchor}.", remedy="Write the value out."
            )


def _where(error: yaml.YAMLError) -> str:
    """Return the line (of the file: the dashes are line 1) and the problem, as far as YAML tells."""
    mark = getattr(error, "problem_mark", None)
    line = f", line {mark.line + 2}" if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None)
    return f"{line}: {problem}" if problem else line
