"""Script rules: what the extractor asks of Russian and Chinese.

The rules of each script are a module, which is imported when the first text in that script comes. Text in other
scripts runs none of them.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Protocol

from quipu.ingest.local.capitalised_runs import RunToken
from quipu.ingest.local.occurrences import Occurrence
from quipu.text.unicode import HAN

_RUSSIAN_LETTER = re.compile("[а-яё]")
_CHINESE_RUN = re.compile(f"[{HAN}][{HAN}0-9]")


class RussianRules(Protocol):
    """The functions of `quipu.ingest.local.russian`; call them only for Cyrillic words."""

    def stem(self, key: str) -> str:
        """Return what the case forms of a name have in common."""

    def case_rank(self, key: str) -> int:
        """Return how far a name is from the nominative; 0 is nearest."""

    def extend_name(self, text: str, start: int, end: int, *, is_initial: bool) -> tuple[int, int]:
        """Return the span of a name widened by the lower-case words that belong to it."""

    def split_cases(self, tokens: Sequence[RunToken], *, before: str, is_initial: bool) -> list[list[RunToken]]:
        """Split capitalised words where the grammatical case shows that a second name starts."""

    def is_verb(self, form: str) -> bool:
        """Return whether a casefolded word has the ending of a verb."""

    def is_common_word(self, text: str, word: RunToken) -> bool:
        """Return whether a capitalised word at the start of a sentence is a common word."""

    def entity_type(self, key: str) -> str:
        """Return the entity type that the words of a name show, else ""."""

    def is_person_name(self, parts: Sequence[str]) -> bool:
        """Return whether the words of a name are a person's, by patronymic or surname."""


class ChineseRules(Protocol):
    """The functions of `quipu.ingest.local.chinese_names`."""

    def find_names(self, text: str) -> list[Occurrence]:
        """Return the names in the Chinese runs of a text."""

    def entity_type(self, text: str, name: str, start: int, end: int) -> str:
        """Return the entity type of the name at [start, end) by the words around it, else ""."""

    def is_common(self, name: str) -> bool:
        """Return whether a name divides into common words."""

    def keywords(self, text: str) -> list[str]:
        """Return the content words of a text in order."""


@cache
def russian_rules() -> RussianRules:
    """Return the Russian rules; the first call imports them."""
    import quipu.ingest.local.russian as rules

    return rules


@cache
def chinese_rules() -> ChineseRules:
    """Return the Chinese rules; the first call imports them."""
    import quipu.ingest.local.chinese_names as rules

    return rules


def stem_name(key: str) -> str:
    """Return what the case forms of a Cyrillic name have in common; other names are returned unchanged."""
    return russian_rules().stem(key) if _RUSSIAN_LETTER.search(key) else key


def case_rank(key: str) -> int:
    """Return how far a Cyrillic name is from the nominative; 0 is nearest, and the rank of other names."""
    return russian_rules().case_rank(key) if _RUSSIAN_LETTER.search(key) else 0


def has_russian_letter(key: str) -> bool:
    """Return whether a casefolded name has a Russian letter."""
    return _RUSSIAN_LETTER.search(key) is not None


def find_chinese_names(text: str) -> list[Occurrence]:
    """Return the names in the Chinese runs of `text`."""
    return chinese_rules().find_names(text) if _CHINESE_RUN.search(text) else []
