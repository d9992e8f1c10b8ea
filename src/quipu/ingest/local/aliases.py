"""Aliases: other names a text states, as in "World Health Organization (WHO)" or 世界卫生组织（简称世卫组织）."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from quipu.ingest.local.candidates import Candidate, spaced_name
from quipu.ingest.local.lexicon import words
from quipu.ingest.local.occurrence import Cue, Occurrence
from quipu.model.extraction import ExtractedAlias
from quipu.text.names import entity_key
from quipu.text.words import is_acronym

_BRACKET = re.compile(r"[\"'”»》]?\s?[(（]([^()（）\n]{1,80})[)）]")
_PIECE = re.compile(r"[,;，；、/]| or | or$|或|, ")
_MARKER = re.compile(
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
_LETTERS = re.compile(r"[^\W\d_]")
_CAPITALISED = re.compile(r"[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,5}")
_SMALL = words("of the and for in on de la und et и по при в")
MAX_SHORT = 12
MAX_GAP = 40


@dataclass(frozen=True, slots=True)
class Expansion:
    """Two names of one thing: `owner`, and `other` in brackets behind it."""

    owner: Occurrence
    other: Occurrence

    @property
    def occurrences(self) -> tuple[Occurrence, Occurrence]:
        """Both names, now certain: what has a second name in brackets is a name."""
        owner = self.owner
        return Occurrence(owner.name, owner.start, owner.end, Cue.CAPITALS, owner.kind), self.other


def find_expansions(text: str, occurrences: Iterable[Occurrence]) -> list[Expansion]:
    """Return the other names that stand in brackets behind the given occurrences."""
    found: list[Expansion] = []
    for occurrence in occurrences:
        match = _BRACKET.match(text, occurrence.end) if occurrence.end else None
        if match:
            found += _names_in_bracket(occurrence, match)
    return found


def _names_in_bracket(owner: Occurrence, match: re.Match[str]) -> list[Expansion]:
    found: list[Expansion] = []
    text, position = match.string, match.start(1)
    for piece in _PIECE.split(match.group(1)):
        start = text.find(piece, position, match.end(1))
        position = start + len(piece)
        marker = _MARKER.match(piece.lstrip())
        lead = len(piece) - len(piece.lstrip()) + (marker.end() if marker else 0)
        name = piece[lead:].strip(" \"“”«»'")
        if name and _names_the_same(owner.name, name, has_marker=marker is not None):
            begin = text.find(name, start + lead, match.end(1))
            found.append(Expansion(owner, Occurrence(name, begin, begin + len(name), Cue.CAPITALS, owner.kind)))
    return found


def _names_the_same(name: str, other: str, *, has_marker: bool) -> bool:
    if any(character.isdigit() for character in other) or entity_key(name) == entity_key(other):
        return False
    if _HAN.search(name) and not _HAN.search(other):
        return bool(_CAPITALISED.fullmatch(other)) and other[0].isupper()
    if _HAN.search(other):
        return (has_marker and len(other) <= MAX_SHORT) or not _HAN.search(name)
    if _script(name) != _script(other):
        return bool(_CAPITALISED.fullmatch(other)) and other[0].isupper()
    return abbreviates(other, name) or abbreviates(name, other)


def _script(name: str) -> bool:
    """Say whether the first letter of a name is Cyrillic."""
    match = _LETTERS.search(name)
    return match is not None and "Ѐ" <= match.group() <= "ӿ"


def abbreviates(short: str, long: str) -> bool:
    """Say whether `short` is made of the beginnings of the words of `long`, in order, small words left out or in."""
    long_words = [word for word in re.split(r"[\s\-‐–]+", long.casefold()) if word]
    letters = short.replace(".", "").casefold()
    if len(long_words) < 2 or not 2 <= len(letters) <= MAX_SHORT or " " in short or not short[0].isupper():
        return False
    if not (is_acronym(short.replace(".", "")) or sum(c.isupper() for c in short) > 1 or _script(short)):
        return False
    return long_words[0][0] == letters[0] and _consumes(letters, long_words)


def _consumes(letters: str, parts: Sequence[str]) -> bool:
    """Say whether `letters` can be cut into beginnings of `parts` in order, with every large word used."""
    reached = {0}
    for word in parts:
        advanced = set(reached) if word in _SMALL else set()
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
    text: str, expansions: Sequence[Expansion], candidates: Sequence[Candidate]
) -> tuple[ExtractedAlias, ...]:
    """Return the aliases the text states of the given candidates, the fuller name first; each pair once."""
    name_at = {start: candidate.name for candidate in candidates for start, _ in candidate.places}
    pairs = [
        (name_at[e.owner.start], name_at.get(e.other.start, e.other.name))
        for e in expansions
        if e.owner.start in name_at
    ]
    pairs = [_fuller_first(*pair) for pair in (*pairs, *_known_as(text, candidates))]
    pairs += [(c.name, spaced) for c in candidates if c.cue is Cue.SPEAKER and (spaced := spaced_name(c.name))]
    ordered = dict.fromkeys(pair for pair in pairs if entity_key(pair[0]) != entity_key(pair[1]))
    return tuple(ExtractedAlias(name=name, alias=alias) for name, alias in ordered)


def _fuller_first(name: str, alias: str) -> tuple[str, str]:
    return (alias, name) if abbreviates(name, alias) else (name, alias)


def _known_as(text: str, candidates: Sequence[Candidate]) -> list[tuple[str, str]]:
    """Return pairs such as ("Kim Jong-hyun", "Jonghyun") from "Kim Jong-hyun, better known as Jonghyun"."""
    places = sorted((start, end, candidate.name) for candidate in candidates for start, end in candidate.places)
    return [
        (name, other)
        for (_, end, name), (start, _, other) in pairwise(places)
        if end < start <= end + MAX_GAP and _KNOWN_AS.fullmatch(text, end, start)
    ]
