"""Chunking: how to divide a document into chunks, as a value that is validated, compared, stored and hashed."""

import json
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase

from quipu.errors import Corrupt, InvalidInput

STRUCTURE, FIXED, SEPARATOR, SEMANTIC = "structure", "fixed", "separator", "semantic"
# The options of each method besides `max_tokens`.
TAKES = {STRUCTURE: (), FIXED: ("overlap",), SEPARATOR: ("separator",), SEMANTIC: ("percentile",)}

AUTO_TOKENS = 1_200
MAX_CHUNK_TOKENS = 32_000
MAX_SEPARATOR = 1_000  # characters
PERCENTILE = 95


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunking:
    """A chunking method with its options. None selects the default of the method.

    - `max_tokens` per chunk: 1,200 by default. `structure` and `semantic` use 600 for documents over 100 kB.
      `separator` has no limit by default.
    - `overlap` (`fixed` only): how many tokens a chunk repeats of the previous one, by default `max_tokens` / 12.
    - `separator` (`separator` only): the text to split at.
    - `percentile` (`semantic` only): the percentage of sentence boundaries that do not split, by default 95.

    Raises InvalidInput, with the value and the remedy, for options that are out of range or of another method.
    """

    method: str = STRUCTURE
    max_tokens: int | None = None
    overlap: int | None = None
    separator: str | None = None
    percentile: int | None = None

    def __post_init__(self) -> None:
        if self.method not in TAKES:
            raise InvalidInput(
                f"There is no chunking method {self.method!r}.", remedy=f"Use one of: {', '.join(TAKES)}."
            )
        for name in ("overlap", "separator", "percentile"):
            value = getattr(self, name)
            if value is not None and name not in TAKES[self.method]:
                owner = next(method for method, options in TAKES.items() if name in options)
                raise InvalidInput(
                    f"The chunking method {self.method!r} has no option {name} ({value!r}).",
                    remedy=f"Remove the option, or use the chunking method {owner!r}.",
                )
        _check_range("max_tokens", self.max_tokens, 1, MAX_CHUNK_TOKENS)
        _check_range("percentile", self.percentile, 1, 99)
        self._check_overlap()
        self._check_separator()

    def _check_overlap(self) -> None:
        if self.overlap is None:
            return
        _check_range("overlap", self.overlap, 0, MAX_CHUNK_TOKENS)
        max_tokens = self.max_tokens or AUTO_TOKENS
        if self.overlap >= max_tokens:
            raise InvalidInput(
                f"An overlap of {self.overlap:,} tokens is too large for chunks of {max_tokens:,} tokens.",
                remedy="Use an overlap that is smaller than max_tokens.",
            )

    def _check_separator(self) -> None:
        if self.method == SEPARATOR and self.separator is None:
            raise InvalidInput(
                "The chunking method 'separator' needs a separator.", remedy="Give the text to split at: '\\n---\\n'."
            )
        if self.separator is not None and not isinstance(self.separator, str):
            raise InvalidInput(
                f"The separator {self.separator!r} is not a string.", remedy="Give the text to split at."
            )
        if self.separator is not None and not 1 <= len(self.separator) <= MAX_SEPARATOR:
            raise InvalidInput(
                f"The separator has {len(self.separator):,} characters.",
                remedy=f"Use a separator of 1 to {MAX_SEPARATOR:,} characters.",
            )

    def to_json(self) -> str:
        """Return the options that are not None as a JSON object with sorted keys. Equal values give equal text."""
        value_by_name = {option.name: getattr(self, option.name) for option in fields(self)}
        return json.dumps({name: value for name, value in value_by_name.items() if value is not None}, sort_keys=True)


def chunking_from_json(text: str) -> Chunking:
    """Return the Chunking that `to_json` wrote as `text`. Raises Corrupt for any other text."""
    try:
        return Chunking(**json.loads(text))
    except (ValueError, TypeError, InvalidInput) as error:
        raise Corrupt(
            f"The chunking {text!r} of a queued document cannot be read ({error}).",
            remedy="List queued documents with `quipu docs`, remove this one and add it again.",
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkingRule:
    """The chunking of all documents whose id matches a shell pattern (`*` also matches `/`)."""

    match: str
    chunking: Chunking

    def applies_to(self, document_id: str) -> bool:
        """Return whether the pattern matches this document id."""
        return fnmatchcase(document_id, self.match)

    def __str__(self) -> str:
        """Return the rule for display, for example "minutes/*.md: separator"."""
        return f"{self.match}: {self.chunking.method}"


def _check_range(name: str, value: int | None, minimum: int, maximum: int) -> None:
    if value is not None and (type(value) is not int or not minimum <= value <= maximum):
        raise InvalidInput(
            f"{name} = {value!r} is not valid.", remedy=f"Use a whole number from {minimum:,} to {maximum:,}."
        )
