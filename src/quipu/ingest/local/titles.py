"""Titles: the document's title and its headings as names, if they read like names."""

import re
from collections.abc import Iterable, Iterator, Sequence

from quipu.ingest.local.capitalised_names import find_capitalised
from quipu.ingest.local.lexicon import is_common_word, word_set
from quipu.ingest.local.occurrences import Cue, Occurrence
from quipu.ingest.local.pattern_names import find_quoted
from quipu.ingest.local.script_rules import find_chinese_names, stem_name
from quipu.text.unicode import HAN, UNSPACED

MAX_WORDS = 8
MAX_LENGTH = 80
MAX_MARKS = 8  # around the title in a line that is only a heading

_TRAILING_BRACKET = re.compile(r"(?<=\S)\s*[(（\[][^()（）\[\]]*[)）\]]\s*$")
# Paths, file names, dates and running numbers: "week1/20260105_1100", "report.pdf", "Novel-25646".
_CODE = re.compile(r"[/\\]|\w_\w|::|^\.\.|^:\w+:|\.\w{2,5}$|\d{4}[-./]?\d{2}[-./]?\d{2}|\d{5}|[-_](?!19|20)\d{4}$")
_EBOOK = re.compile(r"^The Project Gutenberg (?:e-?book|etext) of ", re.IGNORECASE)
_LATIN_WORD = re.compile(r"[A-Za-z]{2}")
_SYMBOLS = re.compile(r"[^\w\s.:：*#\"“”'’)\]»!?+%&]+\s*$")
_JOINT = re.compile(r"[:—–]|\b(?:and|und|et|и)\b")
_LETTER = re.compile(r"[^\W\d_]")
_HEADING = re.compile(r"#{1,6}\s+(.*\S)")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(r"\w[\w'’-]*")


def find_in_title(title: str, text: str, text_names: Iterable[str] = ()) -> list[Occurrence]:
    """Return the title as a name and then the names inside it; nothing for a path, date, question or long sentence.

    A trailing bracket ("(film)") does not belong to the name. A name that occurs in `text` gets its span there.
    `text_names` are the Chinese names of the text: they show the parts of a Chinese title, which has no spaces.
    """
    name = _clean_title(_TRAILING_BRACKET.sub("", _EBOOK.sub("", title)))
    if not name or _CODE.search(title) or len(name.split()) > MAX_WORDS or not _may_be_name(name, text):
        return []
    parts = _title_parts(name, text_names)
    cues = (Cue.SUBJECT, *[Cue.HEADING] * len(parts))
    inside = [_locate(part, text, cue) for part, cue in zip(parts, cues, strict=False)]
    return inside if _mixes_scripts(name) else [_locate(name, text, Cue.TITLE), *inside]


def _may_be_name(title: str, text: str) -> bool:
    """Return whether a title has a capital or no case, and is a phrase or common words only if the text repeats it.

    Capitals tell a phrase from a name in English titles only. Russian titles have them in the first word alone.
    """
    if title.islower() and not _UNSPACED.search(title):
        return False
    forms = _WORD.findall(title)
    is_phrase = len(forms) > 1 and all(form.islower() and form.isascii() for form in forms[1:])
    if is_phrase or all(is_common_word(form.casefold()) for form in forms):
        return _stands_in_running_text(title, text)
    return True


def _stands_in_running_text(title: str, text: str) -> bool:
    """Return whether a line of the text holds the title and more."""
    name = title.casefold()
    return any(name in line and len(line) > len(name) + MAX_MARKS for line in text.casefold().splitlines())


def _mixes_scripts(title: str) -> bool:
    return _UNSPACED.search(title) is not None and _LATIN_WORD.search(title) is not None


def _clean_title(title: str) -> str:
    name = _SYMBOLS.sub("", " ".join(title.split())).strip(' .:：*_#"“”')
    return name if _LETTER.search(name) and len(name) <= MAX_LENGTH and not name.endswith(("?", "!", "？")) else ""


def _title_parts(title: str, text_names: Iterable[str]) -> list[str]:
    """Return the names that a title joins in their order, none if the title is a single name."""
    if _UNSPACED.search(title):
        names_inside = {name for name in text_names if name in title and name != title}
        return sorted(names_inside, key=lambda name: (title.find(name), name))
    parts = _names_inside(title)
    return [part for part in parts if part != title] if len(parts) > 1 or _JOINT.search(title) else []


def find_in_headings(headings: Sequence[str], text: str) -> list[Occurrence]:
    """Return the headings that are exactly one name ("Julius Caesar", but not "Early life")."""
    names = [_clean_title(heading) for heading in headings]
    return [_locate(name, text, Cue.HEADING) for name in names if name and _is_one_name(name, text)]


def headings_in(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield the text of the Markdown headings of `text`; `spans` are the [start, end) of its sentences."""
    for start, end in spans:
        if text[start] == "#" and (match := _HEADING.match(text, start, end)):
            yield match.group(1)


def _is_one_name(heading: str, text: str) -> bool:
    """Return whether a heading is a single name: it has no common words, or the running text repeats it."""
    if _CODE.search(heading) or len(heading.split()) > MAX_WORDS:
        return False
    names = _names_inside(heading)
    if names != [heading.removeprefix("The ")]:
        return False
    if _UNSPACED.search(heading) or (names[0].isalpha() and names[0][1:].islower()):
        return _stands_in_a_sentence(names[0], text)
    has_common_word = any(is_common_word(word.casefold()) for word in _WORD.findall(names[0]))
    return not has_common_word or text.count(heading) > 1


def _stands_in_a_sentence(name: str, text: str) -> bool:
    """Return whether a name of one word is a known given name or place, or stands inside a sentence of the text."""
    form = name.casefold()
    if form in word_set("given_names") or stem_name(form) in word_set("places"):
        return True
    return re.search(rf"[^\W\d_][,，、]?\s?{re.escape(name)}|{re.escape(name)}[{HAN}]", text) is not None


def _names_inside(title: str) -> list[str]:
    occurrences = [*find_quoted(title), *find_capitalised(title, [(0, len(title))]), *find_chinese_names(title)]
    names: dict[str, None] = {}
    end = 0
    for occurrence in sorted(occurrences, key=lambda o: (o.start, -o.end)):
        if occurrence.start >= end:
            names[occurrence.name] = None
            end = occurrence.end
    return list(names)


def _locate(name: str, text: str, cue: Cue) -> Occurrence:
    """Return `name` with its first span in `text` as whole words, if necessary in another case, else with (0, 0)."""
    start = _find_whole_words(name, text)
    if start < 0:
        lower = text.lower()
        start = _find_whole_words(name.lower(), lower) if len(lower) == len(text) else -1
    return Occurrence(name, start, start + len(name), cue) if start >= 0 else Occurrence(name, 0, 0, cue)


def _find_whole_words(name: str, text: str) -> int:
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        before = text[start - 1 : start] if start else ""
        if _is_word_edge(before, name[0]) and _is_word_edge(text[end : end + 1], name[-1]):
            return start
        start = text.find(name, start + 1)
    return -1


def _is_word_edge(neighbour: str, edge: str) -> bool:
    """Return whether a word can begin or end between two characters. In unspaced scripts it can everywhere."""
    return not neighbour.isalnum() or not edge.isalnum() or _UNSPACED.match(edge) is not None
