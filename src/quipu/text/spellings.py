"""Spellings: whether two names are one name in two scripts, or with other accents.

"Михаил Булгаков" and "Mikhail Bulgakov" are one name in two scripts; "Café" and "Cafe" differ only in accents. A
spelling key is only a first sieve: it is in Latin letters without spaces, and many ways to romanise a name give one
key. `is_other_spelling` then decides. Names with one spelling key stay different entities.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from anyascii import anyascii

from quipu.text.unicode import is_unspaced
from quipu.text.words import fold_accents, is_acronym

# In another script: "Xian" may be 西安 or 先, and one Chinese character is a syllable with dozens of homophones.
MIN_LATIN_LETTERS = 5
MIN_UNSPACED_CHARACTERS = 2

_NO_LETTER = re.compile(r"[^a-z0-9]+")
# What the usual romanisations of Russian (BGN/PCGN, ALA-LC, passports, German and French habits) write
# differently. Applied in order. Pinyin passes through the same rules, which join few of its syllables.
_ROMANISATIONS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"shch|sch", "sh"),
        (r"tch", "ch"),
        (r"ph", "f"),
        (r"kh", "h"),
        (r"x", "ks"),
        (r"w", "v"),
        (r"tz", "ts"),
        (r"c(?!h)|q", "k"),
        (r"[ijy]+", "i"),
        (r"ie", "e"),
        (r"([a-z])\1+", r"\1"),
    )
)


@lru_cache(maxsize=65_536)
def spelling_key(key: str) -> str:
    """Return the spelling key of an entity key; "" for acronyms and numbers, which have only one spelling."""
    spelling = "" if is_acronym(key) else _in_latin(key)
    if spelling.isdigit():
        return ""
    for pattern, replacement in _ROMANISATIONS:
        spelling = pattern.sub(replacement, spelling)
    return spelling


def other_spellings(key: str, keys: Iterable[str]) -> tuple[str, ...]:
    """Return those of `keys`, which have the spelling key of `key`, that are the same name in another spelling.

    In the same script only accents may differ. In another script the spelling key decides, but two different names
    there make the spelling ambiguous, and then it stands for neither.
    """
    scripts, folded = scripts_of(key), _without_accents(key)
    keys_by_scripts: dict[frozenset[str], list[str]] = {}
    for other in sorted(keys):
        keys_by_scripts.setdefault(scripts_of(other), []).append(other)
    same = [other for other in keys_by_scripts.pop(scripts, []) if _without_accents(other) == folded]
    foreign = _unambiguous(keys_by_scripts) if _is_long(key) else []
    return tuple(other for other in (*same, *filter(_is_long, foreign)) if other != key)


def scripts_of(text: str) -> frozenset[str]:
    """Return the scripts of the letters of `text`, by the first word of their Unicode names: LATIN, CYRILLIC, CJK."""
    return frozenset(_script(character) for character in text if character.isalpha())


def _unambiguous(keys_by_scripts: Mapping[frozenset[str], list[str]]) -> list[str]:
    return [key for keys in keys_by_scripts.values() if len(set(map(_without_accents, keys))) == 1 for key in keys]


def _is_long(key: str) -> bool:
    min_length = MIN_UNSPACED_CHARACTERS if is_unspaced(key) else 1
    return len(key) >= min_length and len(_in_latin(key)) >= MIN_LATIN_LETTERS


def _in_latin(key: str) -> str:
    return _NO_LETTER.sub("", anyascii(key).lower())


@lru_cache(maxsize=4_096)
def _script(character: str) -> str:
    return "LATIN" if character.isascii() else unicodedata.name(character, "").partition(" ")[0]


def _without_accents(key: str) -> str:
    """Return a key without accents. All Latin accents go; of Cyrillic, ё becomes е but й stays, as in full text."""
    return anyascii(key).lower() if scripts_of(key) == {"LATIN"} else fold_accents(key)
