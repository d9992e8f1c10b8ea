"""Words: the tokens that full text indexes, and where a name occurs in a text.

Words of spaced scripts are casefolded runs of letters and digits. Scripts written without spaces (CJK, Thai …) are
taken character by character and indexed as overlapping pairs, so that any name of two characters is found.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from quipu.text.names import is_acronym
from quipu.text.scripts import UNSPACED

TOKENIZER_IDENTITY = "quipu-words/1"

_WORD = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}_])[\w+#])+(?:['’ʼ](?:(?![{UNSPACED}_])\w)+)*")
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_POSSESSIVE = re.compile(r"['’ʼ]s$", re.IGNORECASE)
_APOSTROPHES = re.compile(r"['’ʼ]")
# What may stand between two words of one name: spaces, a line break, a hyphen, a middle dot, "&", the dot of "St.".
_JOINT = re.compile(r"[^\S\n]*\n?[^\S\n]*|[^\S\n]*[-‐‑–·・‧&/][^\S\n]*|\.[^\S\n]*|['’ʼ]\s*")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text: `form` is casefolded; `is_joined` says that only a joint separates it from the word before."""

    form: str
    start: int
    end: int
    is_capital: bool
    is_acronym: bool
    is_joined: bool


def split_words(text: str) -> list[Word]:
    """Return the words of `text` in order; a character of an unspaced script is a word of its own."""
    words: list[Word] = []
    end, previous = 0, ""
    for match in _WORD.finditer(text):
        raw = match.group()
        form = _form(raw)
        if not form:
            continue
        start = match.start()
        words.append(
            Word(form, start, match.end(), not raw[0].islower(), is_acronym(raw), _is_joint(text[end:start], previous))
        )
        end, previous = match.end(), raw
    return words


def index_terms(words: Sequence[Word]) -> list[str]:
    """Return the terms full text indexes for these words: words as they are, unspaced runs as overlapping pairs."""
    terms: list[str] = []
    for position, word in enumerate(words):
        if not _UNSPACED.match(word.form):
            terms.append(_fold_marks(word.form))
            continue
        following = words[position + 1] if position + 1 < len(words) else None
        preceding = words[position - 1] if position else None
        if following and _runs_on(word, following):
            terms.append(word.form + following.form)
        elif not (preceding and _runs_on(preceding, word)):
            terms.append(word.form)
    return terms


def capital_terms(words: Sequence[Word]) -> list[str]:
    """Return the terms by which chunks naming a one-word name are found: capitalised words, acronyms apart."""
    return [f"0{word.form}" if word.is_acronym else word.form for word in words if word.is_capital]


def capital_term(key: str) -> str:
    """Return the term of `capital_terms` that every chunk naming this one-word key has."""
    form = name_forms(key)[0]
    return form if key == key.casefold() else f"0{form}"


def query_terms(text: str) -> list[str]:
    """Return the distinct terms of a question, in order of appearance."""
    return list(dict.fromkeys(index_terms(split_words(text))))


def is_unspaced(text: str) -> bool:
    """Say whether `text` starts with a character of a script written without spaces."""
    return bool(_UNSPACED.match(text))


def name_forms(key: str) -> tuple[str, ...]:
    """Return the word forms of an entity key, as they stand in a text that names the entity."""
    return tuple(word.form for word in split_words(key))


def anchor(forms: Sequence[str]) -> str:
    """Return the first two words of a name: by it, all names that may start at one place are found at once."""
    return " ".join(forms[:2])


def anchors(words: Sequence[Word]) -> set[str]:
    """Return every anchor a name occurring in these words can have."""
    found = {word.form for word in words}
    found.update(f"{a.form} {b.form}" for a, b in pairwise(words) if b.is_joined)
    return found


def count_occurrences(words: Sequence[Word], names: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Count where names occur, as whole words in a row, each name on its own whatever the others.

    `names` maps an anchor to keys. A name of one word counts only where it is capitalised (or has no case), an acronym
    only in capitals, and an all-capitals word never counts as the common word of the same letters.
    """
    counts: dict[str, int] = {}
    for position, word in enumerate(words):
        pair = f"{word.form} {words[position + 1].form}" if position + 1 < len(words) else ""
        for key in (*names.get(word.form, ()), *names.get(pair, ())):
            if _occurs(words, position, key):
                counts[key] = counts.get(key, 0) + 1
    return counts


def _occurs(words: Sequence[Word], position: int, key: str) -> bool:
    forms = _cached_forms(key)
    if len(forms) == 1:
        word = words[position]
        return word.form == forms[0] and word.is_capital and word.is_acronym == (key != key.casefold())
    found = words[position : position + len(forms)]
    return (
        len(found) == len(forms)
        and all(word.form == form for word, form in zip(found, forms, strict=True))
        and all(word.is_joined for word in found[1:])
    )


@lru_cache(maxsize=65_536)
def _cached_forms(key: str) -> tuple[str, ...]:
    return name_forms(key)


def _form(raw: str) -> str:
    if raw.isascii() and raw.isalnum():
        return raw.lower()
    bare = _APOSTROPHES.sub("", _POSSESSIVE.sub("", raw))
    return unicodedata.normalize("NFKC", bare).casefold()


def _is_joint(gap: str, previous: str) -> bool:
    if gap == " ":
        return bool(previous)
    if not previous or not _JOINT.fullmatch(gap):
        return False
    return not gap.startswith(".") or len(previous) <= 3


def _runs_on(first: Word, second: Word) -> bool:
    return second.is_joined and second.start - first.end <= 1 and bool(_UNSPACED.match(second.form))


@lru_cache(maxsize=65_536)
def _fold_marks(form: str) -> str:
    """Drop the accents of Latin, Greek and Cyrillic letters, as people leave them out when they search."""
    if form.isascii():
        return form
    decomposed = unicodedata.normalize("NFD", form)
    return unicodedata.normalize(
        "NFC", "".join(c for c in decomposed if c not in "\u0300\u0301\u0302\u0303\u0308\u030c")
    )
