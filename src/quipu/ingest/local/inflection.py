"""Inflection: Russian case forms of one name, by their endings."""

import re

# The endings of names in the singular and of adjectives in both numbers, longest first.
_ENDING = re.compile(
    r"(?:ого|его|ому|ему|ыми|ими|ией|ый|ий|ой|ая|яя|ое|ее|ые|ие|ым|им|ом|ем|ём|ую|юю|ых|их|ей|ью|ия|ии|ию|а|я|о|е|ы|и|у|ю|ь|й)$"
)
_OBLIQUE = re.compile(r"(?:ого|его|ому|ему|ыми|ими|ией|ым|им|ом|ем|ём|ую|юю|ых|их|ей|ью|ии|ию|е|ы|и|у|ю)$")
_VOWEL_END = re.compile(r"[аяо]$")
_CYRILLIC = re.compile(r"[а-яё]")
MIN_STEM = 2


def stem(key: str) -> str:
    """Return what the case forms of a Cyrillic name share; any other name as it is."""
    return " ".join(_stem_word(word) for word in key.split()) if _CYRILLIC.search(key) else key


def case_rank(key: str) -> int:
    """Return how far a Cyrillic name looks from the nominative: 0 is nearest."""
    return sum(2 if _OBLIQUE.search(word) else 1 if _VOWEL_END.search(word) else 0 for word in key.split())


def _stem_word(word: str) -> str:
    cut = _ENDING.sub("", word)
    return cut if len(cut) >= MIN_STEM else word
