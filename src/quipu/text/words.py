"""Words: the tokens that full text indexes, and where a name occurs in a text.

Words of spaced scripts are casefolded runs of letters and digits. Scripts written without spaces (CJK, Thai …) are
taken character by character and indexed as overlapping pairs, so that any name of two characters is found.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, overload

from quipu.text.names import is_acronym
from quipu.text.scripts import MARKS, UNSPACED

TOKENIZER_IDENTITY = "quipu-words/2"

_LETTERS = rf"(?:[^\W_{UNSPACED}]+[{MARKS}]*)+"
_WORD = re.compile(rf"({_LETTERS}[+#]*(?:['’ʼ]{_LETTERS})*|[{UNSPACED}])")
_PLAIN_WORD = re.compile(r"([A-Za-z0-9]+[+#]*(?:'[A-Za-z0-9]+)*)")  # the same, where all is ASCII
_NOT_IN_WORD = re.compile(rf"(?![{MARKS}{UNSPACED}])[^\w+#]")
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_POSSESSIVE = re.compile(r"['’ʼ]s$", re.IGNORECASE)
_APOSTROPHES = re.compile(r"['’ʼ]")
# What may stand between two words of one name: spaces, a line break, a hyphen, a middle dot, "&", the dot of "St.".
_JOINT = re.compile(r"[^\S\n]*\n?[^\S\n]*|[^\S\n]*[-‐‑–·・‧&/][^\S\n]*|\.[^\S\n]*|['’ʼ]\s*")

_SURE_JOINTS = frozenset(("", " "))
_LOWER, _CAPITAL, _ACRONYM = range(3)


class Word(NamedTuple):
    """A word of a text: `form` is casefolded; `is_joined` says that only a joint separates it from the word before."""

    form: str
    start: int
    end: int
    is_capital: bool
    is_acronym: bool
    is_joined: bool


class Words(Sequence[Word]):
    """The words of a text, column by column, since a chunk has a thousand; a slice is Words again.

    `forms`, `terms` (forms without accents), `kinds` (0 lower case, 1 capitalised or without case, 2 acronym),
    `is_joined`, `starts` and `ends` have one item a word.
    """

    __slots__ = ("ends", "forms", "has_unspaced", "is_joined", "kinds", "starts", "terms")

    def __init__(
        self,
        read: Sequence[tuple[str, str, int]],
        is_joined: Sequence[bool],
        starts: Sequence[int],
        ends: Sequence[int],
        *,
        has_unspaced: bool,
    ) -> None:
        columns: list[tuple[Any, ...]] = list(zip(*read, strict=True)) or [(), (), ()]
        self.forms: tuple[str, ...] = columns[0]
        self.terms: tuple[str, ...] = columns[1]
        self.kinds: tuple[int, ...] = columns[2]
        self.is_joined = is_joined
        self.starts = starts
        self.ends = ends
        self.has_unspaced = has_unspaced

    def __len__(self) -> int:
        return len(self.forms)

    @overload
    def __getitem__(self, index: int) -> Word: ...

    @overload
    def __getitem__(self, index: slice) -> "Words": ...

    def __getitem__(self, index: int | slice) -> "Word | Words":
        if isinstance(index, slice):
            read = list(zip(self.forms[index], self.terms[index], self.kinds[index], strict=True))
            places = self.is_joined[index], self.starts[index], self.ends[index]
            return Words(read, *places, has_unspaced=self.has_unspaced)
        kind, start, end = self.kinds[index], self.starts[index], self.ends[index]
        return Word(self.forms[index], start, end, kind > 0, kind == _ACRONYM, self.is_joined[index])

    def pairs(self) -> list[str]:
        """Return each word with the one after it, "" where they are not joined; one fewer than there are words."""
        return [
            f"{form} {following}" if is_joined else ""
            for form, following, is_joined in zip(self.forms, self.forms[1:], self.is_joined[1:], strict=False)
        ]


def split_words(text: str) -> Words:
    """Return the words of `text` in order; a character of an unspaced script is a word of its own."""
    parts = (_PLAIN_WORD if text.isascii() else _WORD).split(text)
    raws = parts[1::2]
    gaps = parts[2::2]  # the gap after each word
    places = list(accumulate(map(len, parts)))
    starts, ends = places[:-1:2], places[1::2]
    is_joined = [gap in _SURE_JOINTS or _is_joint(gap, raw) for gap, raw in zip(gaps, raws, strict=True)]
    is_joined = [False, *is_joined[:-1]] if raws else []
    read = [_read(raw) for raw in raws]
    has_unspaced = not text.isascii() and bool(_UNSPACED.search(text))
    if all(form for form, _, _ in read):
        return Words(read, is_joined, starts, ends, has_unspaced=has_unspaced)
    kept = [position for position, (form, _, _) in enumerate(read) if form]
    return Words(
        [read[position] for position in kept],
        [is_joined[position] and bool(read[position - 1][0]) for position in kept],
        [starts[position] for position in kept],
        [ends[position] for position in kept],
        has_unspaced=has_unspaced,
    )


def index_terms(words: Words) -> list[str]:
    """Return the terms full text indexes for these words.

    Words as they are; a run of an unspaced script as overlapping pairs, then its last character, so that a search for
    one character finds it anywhere.
    """
    terms = list(words.terms)
    if words.has_unspaced:
        forms = words.forms
        for position, continues in enumerate(_continues_run(words)[1:]):
            if continues:
                terms[position] = forms[position] + forms[position + 1]
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


def capital_terms(words: Words) -> list[str]:
    """Return the terms by which chunks naming a one-word name are found: capitalised words, acronyms apart."""
    capitals = ((form, kind) for form, kind in zip(words.forms, words.kinds, strict=True) if kind)
    return [f"0{form}" if kind == _ACRONYM else form for form, kind in capitals]


def capital_term(key: str) -> str:
    """Return the term of `capital_terms` that every chunk naming this one-word key has."""
    form = name_forms(key)[0]
    return f"0{form}" if is_acronym(key) else form


def query_terms(text: str) -> list[str]:
    """Return the distinct terms of a question, in order of appearance: of a run of two or more, the pairs alone."""
    words = split_words(text)
    terms = zip(index_terms(words), words.forms, _continues_run(words), strict=True)
    return list(dict.fromkeys(term for term, form, continues in terms if not (continues and term == form)))


def is_unspaced(text: str) -> bool:
    """Say whether `text` starts with a character of a script written without spaces."""
    return bool(_UNSPACED.match(text))


def name_forms(key: str) -> tuple[str, ...]:
    """Return the word forms of an entity key, as they stand in a text that names the entity."""
    return split_words(key).forms


def is_linkable(key: str) -> bool:
    """Say whether occurrences of this name are worth looking for: not one character, not a short number."""
    return len(key) >= 2 and not (key.isdigit() and len(key) != 4) and bool(_WORD.search(key))


def anchor(forms: Sequence[str]) -> str:
    """Return the first two words of a name: by it, all names that may start at one place are found at once."""
    return " ".join(forms[:2])


def anchors(words: Words) -> set[str]:
    """Return every anchor a name occurring in these words can have: capitalised words, and joined pairs."""
    found = {form for form, kind in zip(words.forms, words.kinds, strict=True) if kind}
    found.update(words.pairs())
    found.discard("")
    return found


def count_occurrences(words: Words, names: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Count where names occur, as whole words in a row, each name on its own whatever the others.

    `names` maps an anchor to keys. A name of one word counts only where it is capitalised (or has no case), an acronym
    only in capitals, and an all-capitals word never counts as the common word of the same letters.
    """
    found = [(position, form) for position, form in enumerate(words.forms) if form in names and words.kinds[position]]
    found += [(position, pair) for position, pair in enumerate(words.pairs()) if pair in names]
    counts: dict[str, int] = {}
    for position, name_anchor in found:
        for key in names[name_anchor]:
            if _occurs(words, position, key):
                counts[key] = counts.get(key, 0) + 1
    return counts


def _occurs(words: Words, position: int, key: str) -> bool:
    forms = _cached_forms(key)
    if len(forms) == 1:
        return words.forms[position] == forms[0] and (words.kinds[position] == _ACRONYM) == is_acronym(key)
    end = position + len(forms)
    return words.forms[position:end] == forms and all(words.is_joined[position + 1 : end])


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


def _continues_run(words: Words) -> list[bool]:
    """Say of each word whether it and the one before are neighbours in one run of an unspaced script."""
    unspaced = [words.has_unspaced and is_unspaced(form) for form in words.forms]
    before = [False, *unspaced]
    return [all(each) for each in zip(before, unspaced, words.is_joined, strict=False)]


@lru_cache(maxsize=65_536)
def _read(raw: str) -> tuple[str, str, int]:
    """Return the form of a word as it stands in a text, its term, and its kind."""
    form = raw.lower() if raw.isascii() and raw.isalnum() else _form(raw)
    if raw.islower():
        return form, _fold_marks(form), _LOWER
    return form, _fold_marks(form), _ACRONYM if _is_acronym(raw) else _CAPITAL


def _fold_marks(form: str) -> str:
    """Drop the accents of Latin, Greek and Cyrillic letters, as people leave them out when they search."""
    if form.isascii():
        return form
    decomposed = unicodedata.normalize("NFD", form)
    return unicodedata.normalize(
        "NFC", "".join(c for c in decomposed if c not in "\u0300\u0301\u0302\u0303\u0308\u030c")
    )
