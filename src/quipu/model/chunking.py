"""Chunking: how a document is to be cut, as a value that is checked, compared, stored and hashed."""

import json
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase

from quipu.errors import Corrupt, InvalidInput

STRUCTURE, FIXED, SEPARATOR, SEMANTIC = "structure", "fixed", "separator", "semantic"
# What each method takes besides `max_tokens`.
TAKES = {STRUCTURE: (), FIXED: ("overlap",), SEPARATOR: ("separator",), SEMANTIC: ("percentile",)}

AUTO_TOKENS = 1_200
MAX_CHUNK_TOKENS = 32_000  # of any method: a chunk has to fit somewhere
MAX_SEPARATOR = 1_000  # characters
PERCENTILE = 95


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunking:
    """How to cut a document: a method, the most tokens a chunk, and what that method alone takes; None means auto.

    Auto `max_tokens`: `structure` and `semantic` take 1,200, and 600 in documents over 100 kB; `fixed` takes 1,200;
    `separator` cuts at the separator and nowhere else. `overlap` (`fixed`) is how many tokens a chunk repeats of the
    one before, auto a twelfth of `max_tokens`; `percentile` (`semantic`) says which share of the places between
    sentences is no break, auto 95. Raises InvalidInput, with the value and the remedy, for what cannot be meant.
    """

    method: str = STRUCTURE
    max_tokens: int | None = None
    overlap: int | None = None
    separator: str | None = None
    percentile: int | None = None

    def __post_init__(self) -> None:
        if self.method not in TAKES:
            raise InvalidInput(f"There is no chunker {self.method!r}.", remedy=f"Choose one of: {', '.join(TAKES)}.")
        for name in ("overlap", "separator", "percentile"):
            value = getattr(self, name)
            if value is not None and name not in TAKES[self.method]:
                owner = next(method for method, taken in TAKES.items() if name in taken)
                raise InvalidInput(
                    f"The chunker {self.method!r} takes no {name} ({value!r}).",
                    remedy=f"Leave it out, or choose the chunker {owner!r}.",
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
                f"An overlap of {self.overlap:,} leaves nothing new in chunks of {max_tokens:,}.",
                remedy="Give an overlap below the tokens of a chunk.",
            )

    def _check_separator(self) -> None:
        if self.method == SEPARATOR and self.separator is None:
            raise InvalidInput(
                "The chunker 'separator' needs a separator.", remedy="Give the text to cut at, as in '\\n---\\n'."
            )
        if self.separator is not None and not isinstance(self.separator, str):
            raise InvalidInput(f"The separator {self.separator!r} is no text.", remedy="Give the text to cut at.")
        if self.separator is not None and not 1 <= len(self.separator) <= MAX_SEPARATOR:
            raise InvalidInput(
                f"A separator of {len(self.separator):,} characters cannot be searched for.",
                remedy=f"Give one of 1 to {MAX_SEPARATOR:,}.",
            )

    def to_json(self) -> str:
        """Return the canonical text: a JSON object of what is not auto, keys in order; equal values, equal text."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return json.dumps({name: value for name, value in given.items() if value is not None}, sort_keys=True)


def chunking_from_json(text: str) -> Chunking:
    """Return the value whose canonical text this is. Raises Corrupt for a text that is none."""
    try:
        return Chunking(**json.loads(text))
    except (ValueError, TypeError, InvalidInput) as error:
        raise Corrupt(
            f"The chunking {text!r} of a queued document cannot be read ({error}).",
            remedy="See `quipu docs` for what is queued; remove it and add it again.",
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkingRule:
    """Documents whose id matches a shell pattern (`*` matches `/` too) are cut like this."""

    match: str
    chunking: Chunking

    def applies_to(self, document_id: str) -> bool:
        """Say whether the rule is about this document."""
        return fnmatchcase(document_id, self.match)

    def __str__(self) -> str:
        """Return the rule for people, as in "minutes/*.md: separator"."""
        return f"{self.match}: {self.chunking.method}"


def _check_range(name: str, value: int | None, least: int, most: int) -> None:
    if value is not None and (type(value) is not int or not least <= value <= most):
        raise InvalidInput(
            f"A chunking with {name} = {value!r} cannot be used.",
            remedy=f"Use a whole number from {least:,} to {most:,}.",
        )
