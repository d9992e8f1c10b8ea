"""Titles: the document's title and its headings as names, where they read like names."""

import re
from collections.abc import Sequence

from quipu.ingest.local.capitals import find_capitalised
from quipu.ingest.local.han import find_han
from quipu.ingest.local.lexicon import empty_words
from quipu.ingest.local.occurrence import Cue, Occurrence
from quipu.ingest.local.quoted import find_quoted
from quipu.text.scripts import UNSPACED

MAX_WORDS = 8
MAX_LENGTH = 80
MAX_HAN_HEADING = 6

_BRACKETS = re.compile(r"(?<=\S)\s*[(（\[][^()（）\[\]]*[)）\]]\s*$")
_PATH = re.compile(r"[/\\]|\w_\w|\.\w{2,5}$|\d{4}[-./]?\d{2}[-./]?\d{2}")
_LETTER = re.compile(r"[^\W\d_]")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(r"\w[\w'’-]*")


def find_in_title(title: str, text: str) -> list[Occurrence]:
    """Return the name the title stands for, then the names inside it; nothing for a path, a date or a sentence.

    A trailing bracket ("(film)") is no part of the name. Where the name occurs in `text`, its place is given.
    """
    name = _clean(_BRACKETS.sub("", title))
    if not name or _PATH.search(title) or len(name.split()) > MAX_WORDS:
        return []
    found = [_placed(name, text, Cue.TITLE)]
    inside = names_within(name)
    if len(inside) > 1 or (inside and "\u3400" <= inside[0][0] <= "\u9fff"):
        found += [Occurrence(part, 0, 0, Cue.HEADING) for part in inside if part != name]
    return found


def find_in_headings(headings: Sequence[str], text: str) -> list[Occurrence]:
    """Return the headings that are one name and nothing else ("Julius Caesar", not "Early life")."""
    names = [_clean(heading) for heading in headings]
    return [_placed(name, text, Cue.HEADING) for name in names if name and is_one_name(name)]


def is_one_name(heading: str) -> bool:
    """Say whether a heading is a single name: one capitalised run that is no common phrase."""
    if _PATH.search(heading) or len(heading.split()) > MAX_WORDS:
        return False
    if all(word.casefold() in empty_words() for word in _WORD.findall(heading)):
        return False
    inside = names_within(heading)
    return len(inside) == 1 and len(inside[0]) >= len(heading) - len("The ")


def names_within(title: str) -> list[str]:
    """Return the names that stand in a title, in order."""
    spans = [(0, len(title))]
    found = [*find_quoted(title), *find_capitalised(title, spans), *find_han(title)]
    return list(dict.fromkeys(o.name for o in sorted(found, key=lambda o: (o.start, -o.end))))


def _clean(title: str) -> str:
    name = " ".join(title.split()).strip(" .:：*_#\"“”")
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
        if _is_free(text[start - 1 : start] if start else "", name[0]) and _is_free(text[end : end + 1], name[-1]):
            return start
        start = text.find(name, start + 1)
    return -1


def _is_free(neighbour: str, edge: str) -> bool:
    """Say whether a word may begin or end between these characters; Chinese words do anywhere."""
    return not neighbour.isalnum() or not edge.isalnum() or bool(_UNSPACED.match(edge))
