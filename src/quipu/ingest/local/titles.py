"""Titles: the document's title and its headings as names, where they read like names."""

import re
from collections.abc import Iterable, Iterator, Sequence

from quipu.ingest.local.capitals import find_capitalised
from quipu.ingest.local.han import find_han
from quipu.ingest.local.lexicon import empty_words
from quipu.ingest.local.occurrence import Cue, Occurrence
from quipu.ingest.local.quoted import find_quoted
from quipu.text.unicode import UNSPACED

MAX_WORDS = 8
MAX_LENGTH = 80

_BRACKETS = re.compile(r"(?<=\S)\s*[(（\[][^()（）\[\]]*[)）\]]\s*$")
# Paths, file names, dates and running numbers: "week1/20260105_1100", "report.pdf", "Novel-25646".
_CODE = re.compile(r"[/\\]|\w_\w|\.\w{2,5}$|\d{4}[-./]?\d{2}[-./]?\d{2}|\d{5}|[-_](?!19|20)\d{4}$")
_JOINT = re.compile(r"[:—–]|\b(?:and|und|et|и)\b")
_LETTER = re.compile(r"[^\W\d_]")
_HEADING = re.compile(r"#{1,6}\s+(.*\S)")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(r"\w[\w'’-]*")


def find_in_title(title: str, text: str, known: Iterable[str] = ()) -> list[Occurrence]:
    """Return the name the title stands for, then the names inside it; nothing for a path, a date or a sentence.

    A trailing bracket ("(film)") is no part of the name. Where a name occurs in `text`, its place is given. `known` are
    names of the text: a Chinese title shows no joints, so they tell what it is made of.
    """
    name = _clean(_BRACKETS.sub("", title))
    if not name or _CODE.search(title) or len(name.split()) > MAX_WORDS:
        return []
    parts = _parts(name, known)
    cues = (Cue.SUBJECT, *[Cue.HEADING] * len(parts))
    inside = (_placed(part, text, cue) for part, cue in zip(parts, cues, strict=False))
    return [_placed(name, text, Cue.TITLE), *inside]


def _parts(name: str, known: Iterable[str]) -> list[str]:
    """Return the names a title joins, in its order; none where the title is a single name."""
    if _UNSPACED.search(name):
        return sorted(
            {word for word in known if word in name and word != name}, key=lambda word: (name.find(word), word)
        )
    parts = _names_within(name)
    return [part for part in parts if part != name] if len(parts) > 1 or _JOINT.search(name) else []


def find_in_headings(headings: Sequence[str], text: str) -> list[Occurrence]:
    """Return the headings that are one name and nothing else ("Julius Caesar", not "Early life")."""
    names = [_clean(heading) for heading in headings]
    return [_placed(name, text, Cue.HEADING) for name in names if name and _is_one_name(name, text)]


def headings_within(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield the words of the Markdown heading lines of `text`."""
    for start, end in spans:
        if text[start] == "#" and (match := _HEADING.match(text, start, end)):
            yield match.group(1)


def _is_one_name(heading: str, text: str) -> bool:
    """Say whether a heading is a single name: of no common words, or found as it is in the running text."""
    if _CODE.search(heading) or len(heading.split()) > MAX_WORDS:
        return False
    inside = _names_within(heading)
    if inside != [heading.removeprefix("The ")]:
        return False
    common = any(word.casefold() in empty_words() for word in _WORD.findall(inside[0]))
    return not common or text.count(heading) > 1


def _names_within(title: str) -> list[str]:
    found = [*find_quoted(title), *find_capitalised(title, [(0, len(title))]), *find_han(title)]
    names: dict[str, None] = {}
    end = 0
    for occurrence in sorted(found, key=lambda o: (o.start, -o.end)):
        if occurrence.start >= end:
            names[occurrence.name] = None
            end = occurrence.end
    return list(names)


def _clean(title: str) -> str:
    name = " ".join(title.split()).strip(' .:：*_#"“”')
    return name if _LETTER.search(name) and len(name) <= MAX_LENGTH and not name.endswith(("?", "!", "？")) else ""


def _placed(name: str, text: str, cue: Cue) -> Occurrence:
    """Return `name` at its first place in `text` as a whole word, in its own letters or else in any, or at (0, 0)."""
    start = _find_word(name, text)
    if start < 0:
        small = text.lower()
        start = _find_word(name.lower(), small) if len(small) == len(text) else -1
    return Occurrence(name, start, start + len(name), cue) if start >= 0 else Occurrence(name, 0, 0, cue)


def _find_word(name: str, text: str) -> int:
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        if _may_part(text[start - 1 : start] if start else "", name[0]) and _may_part(text[end : end + 1], name[-1]):
            return start
        start = text.find(name, start + 1)
    return -1


def _may_part(neighbour: str, edge: str) -> bool:
    """Say whether a word may begin or end between these two characters; in Chinese it may anywhere."""
    return not neighbour.isalnum() or not edge.isalnum() or _UNSPACED.match(edge) is not None
