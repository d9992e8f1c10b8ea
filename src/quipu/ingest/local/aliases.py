"""Aliases: other names that a text states, as in "World Health Organization (WHO)" or 世界卫生组织（简称世卫组织）."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from quipu.ingest.local.candidates import Candidate, split_screen_name
from quipu.ingest.local.lexicon import words
from quipu.ingest.local.occurrences import Cue, Occurrence
from quipu.model.extraction import ExtractedAlias
from quipu.text.names import entity_key
from quipu.text.words import is_acronym

_BRACKET = re.compile(r"[\"'”»》]?\s?[(（]([^()（）\n]{1,80})[)）]")
_SEPARATOR = re.compile(r"[,;，；、/]| or | or$|或|, ")
_ALIAS_MARKER = re.compile(
    r"(?:简称为?|又称为?|也称为?|亦称|又名|即|英文名?|英语|英文名称|缩写为?|全称为?"
    r"|abbreviated(?: as)?|also known as|known as|or|formerly"
    r"|сокращённо|сокр\.|также|или|англ\.|лат\.|нем\.|фр\.)[:：]?\s*",
    re.IGNORECASE,
)
_KNOWN_AS = re.compile(
    r",? ?\(?(?:(?:also|better|commonly|often|widely) (?:known|called|referred to)(?: \w+ly)?(?: as)?|aka|a\.k\.a\."
    r"|также известн\w+ как|又称为?|又名|也叫|亦称|简称为?)\s?[\"“'«]?$",
    re.IGNORECASE,
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_HAN_NAME = re.compile(r"[\u3400-\u9fff·《》]+")
_LETTERS = re.compile(r"[^\W\d_]")
_CAPITALISED = re.compile(r"[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,5}")
_SMALL_WORDS = words("of the and for in on de la und et и по при в")
MAX_SHORT_CHARS = 12
MAX_GAP_CHARS = 40


@dataclass(frozen=True, slots=True)
class BracketedAlias:
    """Two names of one entity: `owner`, and `other` in brackets after it."""

    owner: Occurrence
    other: Occurrence

    @property
    def occurrences(self) -> tuple[Occurrence, Occurrence]:
        """Both names with a strong cue, because a name in brackets confirms the name before it."""
        owner = self.owner
        return Occurrence(owner.name, owner.start, owner.end, Cue.CAPITALS, owner.type), self.other


def find_bracketed_aliases(text: str, occurrences: Iterable[Occurrence]) -> list[BracketedAlias]:
    """Return the aliases that stand in brackets after the given occurrences."""
    aliases: list[BracketedAlias] = []
    for occurrence in occurrences:
        bracket = _BRACKET.match(text, occurrence.end) if occurrence.end else None
        if bracket:
            aliases += _aliases_in_bracket(occurrence, bracket)
    return aliases


def _aliases_in_bracket(owner: Occurrence, bracket: re.Match[str]) -> list[BracketedAlias]:
    aliases: list[BracketedAlias] = []
    text, position = bracket.string, bracket.start(1)
    for part in _SEPARATOR.split(bracket.group(1)):
        start = text.find(part, position, bracket.end(1))
        position = start + len(part)
        marker = _ALIAS_MARKER.match(part.lstrip())
        offset = len(part) - len(part.lstrip()) + (marker.end() if marker else 0)
        name = part[offset:].strip(" \"“”«»'")
        if name and _is_alias(owner.name, name, has_marker=marker is not None):
            begin = text.find(name, start + offset, bracket.end(1))
            other = Occurrence(name, begin, begin + len(name), Cue.CAPITALS, owner.type)
            aliases.append(BracketedAlias(owner, other))
    return aliases


def _is_alias(name: str, other: str, *, has_marker: bool) -> bool:
    if any(character.isdigit() for character in other) or entity_key(name) == entity_key(other):
        return False
    if _HAN.search(name) and not _HAN.search(other):
        return bool(_CAPITALISED.fullmatch(other)) and other[0].isupper()
    if _HAN.search(other):
        is_foreign = not _HAN.search(name) and _HAN_NAME.fullmatch(other) is not None
        return len(other) <= MAX_SHORT_CHARS and (has_marker or is_foreign)
    if _starts_cyrillic(name) != _starts_cyrillic(other):
        return bool(_CAPITALISED.fullmatch(other)) and other[0].isupper()
    return abbreviates(other, name) or abbreviates(name, other)


def _starts_cyrillic(name: str) -> bool:
    """Return whether the first letter of a name is Cyrillic."""
    letter = _LETTERS.search(name)
    return letter is not None and "Ѐ" <= letter.group() <= "ӿ"


def abbreviates(short: str, long: str) -> bool:
    """Return whether `short` consists of the beginnings of the words of `long` in order; small words are optional."""
    long_words = [word for word in re.split(r"[\s\-‐–]+", long.casefold()) if word]
    letters = short.replace(".", "").casefold()
    if len(long_words) < 2 or not 2 <= len(letters) <= MAX_SHORT_CHARS or " " in short or not short[0].isupper():
        return False
    if not (is_acronym(short.replace(".", "")) or sum(c.isupper() for c in short) > 1 or _starts_cyrillic(short)):
        return False
    return long_words[0][0] == letters[0] and _is_cut_from(letters, long_words)


def _is_cut_from(letters: str, long_words: Sequence[str]) -> bool:
    """Return whether `letters` splits into beginnings of the words in order, with every word used but small ones."""
    reached = {0}
    for word in long_words:
        advanced = set(reached) if word in _SMALL_WORDS else set()
        for position in reached:
            size = 0
            while size < len(word) and position + size < len(letters) and word[size] == letters[position + size]:
                size += 1
                advanced.add(position + size)
        reached = advanced
        if not reached:
            return False
    return len(letters) in reached


def stated_aliases(
    text: str, bracketed: Sequence[BracketedAlias], candidates: Sequence[Candidate]
) -> tuple[ExtractedAlias, ...]:
    """Return the distinct aliases that the text states for the candidates; the longer form is the name."""
    name_by_start = {start: candidate.name for candidate in candidates for start, _ in candidate.spans}
    pairs = [
        (name_by_start[alias.owner.start], name_by_start.get(alias.other.start, alias.other.name))
        for alias in bracketed
        if alias.owner.start in name_by_start
    ]
    pairs = [_long_form_first(*pair) for pair in (*pairs, *_known_as(text, candidates))]
    pairs += [(c.name, spaced) for c in candidates if c.cue is Cue.SPEAKER and (spaced := split_screen_name(c.name))]
    distinct = dict.fromkeys(pair for pair in pairs if entity_key(pair[0]) != entity_key(pair[1]))
    return tuple(ExtractedAlias(name=name, alias=alias) for name, alias in distinct)


def _long_form_first(name: str, alias: str) -> tuple[str, str]:
    return (alias, name) if abbreviates(name, alias) else (name, alias)


def _known_as(text: str, candidates: Sequence[Candidate]) -> list[tuple[str, str]]:
    """Return pairs such as ("Kim Jong-hyun", "Jonghyun") from "Kim Jong-hyun, better known as Jonghyun"."""
    spans = sorted((start, end, candidate.name) for candidate in candidates for start, end in candidate.spans)
    return [
        (name, other)
        for (_, end, name), (start, _, other) in pairwise(spans)
        if end < start <= end + MAX_GAP_CHARS and _KNOWN_AS.fullmatch(text, end, start)
    ]
