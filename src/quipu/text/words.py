"""Words: the tokens that full text indexes, and where a name occurs in a text.

Words of spaced scripts are casefolded runs of letters and digits. Scripts written without spaces (CJK, Thai …) are
taken character by character and indexed as overlapping pairs, so that any name of two characters is found.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple, overload

from quipu.text.names import is_acronym
from quipu.text.scripts import MARKS, UNSPACED

TOKENIZER_IDENTITY = "quipu-words/2"

_LETTERS = rf"(?:[^\W_{UNSPACED}]+[{MARKS}]*)+"
_WORD = re.compile(rf"({_LETTERS}[+#]*(?:['’ʼ]{_LETTERS})*|[{UNSPACED}])")
# Most texts are ASCII but for quotes and dashes: there a word is plainer to find, and in lower case it is its form.
_PLAIN_TEXT = re.compile(r"[\x00-\x7f‘’“”–—…•\xa0]*")
_PLAIN_WORD = re.compile(r"([A-Za-z0-9]+[+#]*(?:['’][A-Za-z0-9]+)*)")
_NOT_IN_WORD = re.compile(rf"(?![{MARKS}{UNSPACED}])[^\w+#]")
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_POSSESSIVE = re.compile(r"['’ʼ]s$", re.IGNORECASE)
_APOSTROPHES = re.compile(r"['’ʼ]")
# What may stand between two words of one name: spaces, a line break, a hyphen, a middle dot, "&", the dot of "St.".
_JOINT = re.compile(r"[^\S\n]*\n?[^\S\n]*|[^\S\n]*[-‐‑–·・‧&/][^\S\n]*|\.[^\S\n]*|['’ʼ]\s*")

_MAX_REMEMBERED = 64  # characters: a longer word is hardly met again
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Words(Sequence[Word]):
    """The words of a text, column by column, since a chunk has a thousand; a slice is Words again.

    Each column has one item a word: `terms` are forms without accents, `kinds` 0 for lower case, 1 for a capital (or no
    case), 2 for an acronym.
    """

    forms: Sequence[str]
    terms: Sequence[str]
    kinds: Sequence[int]
    is_joined: Sequence[bool]
    starts: Sequence[int]
    ends: Sequence[int]
    has_unspaced: bool

    def __len__(self) -> int:
        return len(self.forms)

    @overload
    def __getitem__(self, index: int) -> Word: ...

    @overload
    def __getitem__(self, index: slice) -> "Words": ...

    def __getitem__(self, index: int | slice) -> "Word | Words":
        if isinstance(index, slice):
            return Words(
                forms=self.forms[index],
                terms=self.terms[index],
                kinds=self.kinds[index],
                is_joined=self.is_joined[index],
                starts=self.starts[index],
                ends=self.ends[index],
                has_unspaced=self.has_unspaced,
            )
        kind, start, end = self.kinds[index], self.starts[index], self.ends[index]
        return Word(self.forms[index], start, end, kind > 0, kind == _ACRONYM, self.is_joined[index])

    @cached_property
    def pairs(self) -> list[str]:
        """Each word with the one after it, "" where they are not joined; one fewer than there are words."""
        return [
            f"{form} {following}" if is_joined else ""
            for form, following, is_joined in zip(self.forms, self.forms[1:], self.is_joined[1:], strict=False)
        ]


def split_words(text: str) -> Words:
    """Return the words of `text` in order; a character of an unspaced script is a word of its own."""
    is_plain = _PLAIN_TEXT.fullmatch(text) is not None
    parts = (_PLAIN_WORD if is_plain else _WORD).split(text)
    raws = parts[1::2]
    gaps = parts[2::2]  # the gap after each word
    places = list(accumulate(map(len, parts)))
    is_joined = [gap in _SURE_JOINTS or _is_joint(gap, raw) for gap, raw in zip(gaps, raws, strict=True)]
    if is_plain:
        forms = terms = _plain_forms(text, raws)
        kinds = [_LOWER if raw.islower() else _capital_kind(raw) for raw in raws]
    else:
        read = [_read(raw) if len(raw) <= _MAX_REMEMBERED else _read.__wrapped__(raw) for raw in raws]
        forms, terms = [form for form, _, _ in read], [term for _, term, _ in read]
        kinds = [kind for _, _, kind in read]
    words = Words(
        forms=forms,
        terms=terms,
        kinds=kinds,
        is_joined=[False, *is_joined[:-1]] if raws else [],
        starts=places[:-1:2],
        ends=places[1::2],
        has_unspaced=not is_plain and bool(_UNSPACED.search(text)),
    )
    return words if all(forms) else _without_empty(words)


def _plain_forms(text: str, raws: Sequence[str]) -> list[str]:
    forms = _PLAIN_WORD.split(text.lower())[1::2]
    if "'" in text or "’" in text:
        return [_form(raw) if "'" in raw or "’" in raw else form for raw, form in zip(raws, forms, strict=True)]
    return forms


def _without_empty(words: Words) -> Words:
    """Return the words of which something is left in normal form."""
    kept = [position for position, form in enumerate(words.forms) if form]
    return Words(
        forms=[words.forms[position] for position in kept],
        terms=[words.terms[position] for position in kept],
        kinds=[words.kinds[position] for position in kept],
        is_joined=[words.is_joined[position] and bool(words.forms[position - 1]) for position in kept],
        starts=[words.starts[position] for position in kept],
        ends=[words.ends[position] for position in kept],
        has_unspaced=words.has_unspaced,
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
    return tuple(split_words(key).forms)


def is_linkable(key: str) -> bool:
    """Say whether occurrences of this name are worth looking for: not one character, not a short number."""
    return len(key) >= 2 and not (key.isdigit() and len(key) != 4) and bool(_WORD.search(key))


def anchor(forms: Sequence[str]) -> str:
    """Return the first two words of a name: by it, all names that may start at one place are found at once."""
    return " ".join(forms[:2])


class Anchored(NamedTuple):
    """Places where names may begin: the position of a word each, and the anchor of a name that begins there."""

    positions: Sequence[int]
    anchors: Sequence[str]


def anchored(words: Words) -> Anchored:
    """Return where names may begin: one word at capitalised words, several at every word ("" where none can)."""
    capitals = [position for position, kind in enumerate(words.kinds) if kind]
    pairs = words.pairs
    return Anchored([*capitals, *range(len(pairs))], [*(words.forms[position] for position in capitals), *pairs])


def count_occurrences(words: Words, names: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Count where names occur, as whole words in a row, each name on its own whatever the others.

    `names` maps an anchor to keys. A name of one word counts only where it is capitalised (or has no case), an acronym
    only in capitals, and an all-capitals word never counts as the common word of the same letters.
    """
    return count_among(words, anchored(words), names)


def count_among(words: Words, places: Anchored, names: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Count as `count_occurrences` does, among some places."""
    counts: dict[str, int] = {}
    for position, name_anchor in zip(*places, strict=True):
        for key in names.get(name_anchor, ()) if name_anchor else ():
            if _occurs(words, position, key):
                counts[key] = counts.get(key, 0) + 1
    return counts


def _occurs(words: Words, position: int, key: str) -> bool:
    forms = _cached_forms(key)
    if len(forms) == 1:
        return words.forms[position] == forms[0] and (words.kinds[position] == _ACRONYM) == is_acronym(key)
    end = position + len(forms)
    return tuple(words.forms[position:end]) == forms and all(words.is_joined[position + 1 : end])


@lru_cache(maxsize=65_536)
def _cached_forms(key: str) -> tuple[str, ...]:
    return name_forms(key)


def _form(raw: str) -> str:
    bare = _APOSTROPHES.sub("", _POSSESSIVE.sub("", raw))
    form = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", bare).casefold())
    return _NOT_IN_WORD.sub("", form)


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
    return form, _fold_marks(form), _capital_kind(raw)


def _capital_kind(raw: str) -> int:
    return _ACRONYM if is_acronym(raw if raw.isalnum() else _POSSESSIVE.sub("", raw)) else _CAPITAL


def _fold_marks(form: str) -> str:
    """Drop the accents of Latin, Greek and Cyrillic letters, as people leave them out when they search."""
    if form.isascii():
        return form
    decomposed = unicodedata.normalize("NFD", form)
    return unicodedata.normalize(
        "NFC", "".join(c for c in decomposed if c not in "\u0300\u0301\u0302\u0303\u0308\u030c")
    )
