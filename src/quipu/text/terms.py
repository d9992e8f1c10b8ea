"""Terms: the content words of a text without their endings, so that "printed" meets "printing"."""

import re
from functools import lru_cache

from quipu.text.function_words import FUNCTION_WORDS
from quipu.text.words import Words, index_terms, is_unspaced, split_words

MIN_STEM = 3

_CYRILLIC = re.compile("[а-я]")


def _endings(text: str) -> tuple[str, ...]:
    return tuple(sorted(text.split(), key=lambda ending: (-len(ending), ending)))


_ENGLISH = _endings("ings ing edly ed ies ied es s y e ly er ers or ors ion ions ment ments al")
_RUSSIAN = _endings(
    "ами ями иями ого его ому ему ыми ими ая яя ое ее ые ие ия ию ии ый ий ой ей ую юю ов ев ам ям ах ях ом ем им ым "
    "ых их а я о е ы и у ю ь й ться тся лся лась лось лись ала али ало ал ила или ило ил ела ели ел ает ают яет яют ет "
    "ут ют ит ат ят ть"
)


def content_terms(words: Words) -> list[str]:
    """Return the terms of `words` that carry meaning, in order: stems, and pairs of characters of unspaced scripts."""
    return [stem(term) for term in index_terms(words) if term not in FUNCTION_WORDS and not _is_half(term)]


def terms_of(text: str) -> list[str]:
    """Return the content terms of `text`, in order."""
    return content_terms(split_words(text))


@lru_cache(maxsize=65_536)
def stem(term: str) -> str:
    """Return `term` without its longest known English or Russian ending, never shorter than `MIN_STEM`.

    Rough on purpose: it only has to treat the forms of one word alike, and both sides of a comparison use it.
    """
    endings = _RUSSIAN if _CYRILLIC.search(term) else _ENGLISH
    for ending in endings:
        if len(term) - len(ending) >= MIN_STEM and term.endswith(ending):
            return term[: -len(ending)]
    return term


def _is_half(term: str) -> bool:
    """Say whether a term is one character of an unspaced script, which is most often half a word."""
    return len(term) == 1 and is_unspaced(term)
