"""Words: the tokens that full text indexes, and where a name occurs in a text.

Words of spaced scripts are casefolded runs of letters and digits. Scripts written without spaces (CJK, Thai …) are
taken character by character and indexed as overlapping pairs, so that any name of two characters is found.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from quipu.text.names import is_acronym
from quipu.text.scripts import MARKS, UNSPACED

TOKENIZER_IDENTITY = "quipu-words/1"

_LETTERS = rf"(?:[^\W_{UNSPACED}]+[{MARKS}]*)+"
_WORD = re.compile(rf"{_LETTERS}[+#]*(?:['’ʼ]{_LETTERS})*|[{UNSPACED}]")
_NOT_IN_WORD = re.compile(rf"(?![{MARKS}{UNSPACED}])[^\w+#]")
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_POSSESSIVE = re.compile(r"['’ʼ]s$", re.IGNORECASE)
_APOSTROPHES = re.compile(r"['’ʼ]")
# What may stand between two words of one name: spaces, a line break, a hyphen, a middle dot, "&", the dot of "St.".
_JOINT = re.compile(r"[^\S\n]*\n?[^\S\n]*|[^\S\n]*[-‐‑–·・‧&/][^\S\n]*|\.[^\S\n]*|['’ʼ]\s*")


class Word(NamedTuple):
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
        form = raw.lower() if raw.isascii() and raw.isalnum() else _form(raw)
        if not form:
            continue
        start, stop = match.span()
        gap = text[end:start]
        is_joined = bool(previous) and (gap == " " or _is_joint(gap, previous))
        # Nearly all words are lower case: for them the two questions about capitals need not be asked.
        is_lower = raw.islower()
        words.append(Word(form, start, stop, not is_lower, not is_lower and _is_acronym(raw), is_joined))
        end, previous = stop, raw
    return words


def index_terms(words: Sequence[Word]) -> list[str]:
    """Return the terms full text indexes for these words.

    Words as they are; a run of an unspaced script as overlapping pairs, then its last character, so that a search for
    one character finds it anywhere.
    """
    terms: list[str] = []
    last = len(words) - 1
    for position, word in enumerate(words):
        if not _UNSPACED.match(word.form):
            terms.append(_fold_marks(word.form))
        elif position < last and _run_on(word, words[position + 1]):
            terms.append(word.form + words[position + 1].form)
        else:
            terms.append(word.form)
    return terms


def phrase_terms(key: str) -> list[str]:
    """Return terms that stand in a row in the `index_terms` of every text that names this key of several words.

    The end of a key in an unspaced script says nothing, since in a text the run may go on.
    """
    forms = name_forms(key)
    terms: list[str] = []
    for form, following in zip(forms, (*forms[1:], ""), strict=True):
        if not is_unspaced(form):
            terms.append(_fold_marks(form))
        elif following:
            terms.append(form + following if is_unspaced(following) else form)
    return terms


def capital_terms(words: Sequence[Word]) -> list[str]:
    """Return the terms by which chunks naming a one-word name are found: capitalised words, acronyms apart."""
    return [f"0{word.form}" if word.is_acronym else word.form for word in words if word.is_capital]


def capital_term(key: str) -> str:
    """Return the term of `capital_terms` that every chunk naming this one-word key has."""
    form = name_forms(key)[0]
    return f"0{form}" if is_acronym(key) else form


def query_terms(text: str) -> list[str]:
    """Return the distinct terms of a question, in order of appearance: of a run of two or more, the pairs alone."""
    words = split_words(text)
    if not words:
        return []
    continues_run = [False, *(_run_on(first, second) for first, second in pairwise(words))]
    terms = zip(index_terms(words), words, continues_run, strict=True)
    return list(dict.fromkeys(term for term, word, continues in terms if not (continues and term == word.form)))


def is_unspaced(text: str) -> bool:
    """Say whether `text` starts with a character of a script written without spaces."""
    return bool(_UNSPACED.match(text))


def name_forms(key: str) -> tuple[str, ...]:
    """Return the word forms of an entity key, as they stand in a text that names the entity."""
    return tuple(word.form for word in split_words(key))


def is_linkable(key: str) -> bool:
    """Say whether occurrences of this name are worth looking for: not one character, not a short number."""
    return len(key) >= 2 and not (key.isdigit() and len(key) != 4) and bool(_WORD.search(key))


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
        return word.form == forms[0] and word.is_capital and word.is_acronym == is_acronym(key)
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
    bare = _APOSTROPHES.sub("", _POSSESSIVE.sub("", raw))
    form = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", bare).casefold())
    return _NOT_IN_WORD.sub("", form)


def _is_acronym(raw: str) -> bool:
    return is_acronym(raw if raw.isalnum() else _POSSESSIVE.sub("", raw))


def _is_joint(gap: str, previous: str) -> bool:
    if not _JOINT.fullmatch(gap):
        return False
    return not gap.startswith(".") or len(previous) <= 3


def _run_on(first: Word, second: Word) -> bool:
    """Say whether two words are neighbours in one run of an unspaced script."""
    return second.is_joined and bool(_UNSPACED.match(first.form)) and bool(_UNSPACED.match(second.form))


@lru_cache(maxsize=65_536)
def _fold_marks(form: str) -> str:
    """Drop the accents of Latin, Greek and Cyrillic letters, as people leave them out when they search."""
    if form.isascii():
        return form
    decomposed = unicodedata.normalize("NFD", form)
    return unicodedata.normalize(
        "NFC", "".join(c for c in decomposed if c not in "\u0300\u0301\u0302\u0303\u0308\u030c")
    )
