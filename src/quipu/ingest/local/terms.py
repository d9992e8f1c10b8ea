"""Terms: noun phrases in small letters that a chunk repeats or defines ("gradient descent is an algorithm")."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from quipu.ingest.local.lexicon import empty_words, opening_words
from quipu.ingest.local.occurrence import Cue, Occurrence

MIN_REPEATS = 3
MAX_TERMS = 4
MIN_LETTERS = 3

_DEFINED = re.compile(
    r"(?:In [a-z ]{3,40}, )?(?:(?:An?|The) )?(?P<term>[A-Za-z][a-z-]+(?: [a-z][a-z-]+){1,2})"
    r"(?: \([^()]{1,60}\))?,? (?:is|are) (?:an?|the|any|one of)\b"
    r"|(?P<russian>[А-ЯЁ][а-яё-]+(?: [а-яё-]+){1,2}) ?(?:\([^()]{1,60}\) )?— это\b"
)
_NOT_LAST = re.compile(r"\w+(?:ly|ed|ing|ous|ive|ful|ся|ть|ый|ий|ая|ое|ые|ого|ых|но)")


def find_terms(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Occurrence]:
    """Yield the terms sentences define where they begin, and pairs of words that stand together three times or more."""
    for start, end in spans:
        match = _DEFINED.match(text, start, end)
        if match is not None:
            group = match.lastgroup or "term"
            if _is_term(match[group].casefold().split()):
                yield Occurrence(match[group], match.start(group), match.end(group), Cue.TERM, "Concept")
    for first, second in _repeated_pairs(text):
        pattern = re.compile(rf"\b{re.escape(first)} {re.escape(second)}\b")
        yield from (Occurrence(m.group(), m.start(), m.end(), Cue.TERM, "Concept") for m in pattern.finditer(text))


def _repeated_pairs(text: str) -> list[tuple[str, str]]:
    """Return the pairs of words a text repeats most with only a space between, ties by first place."""
    counts = Counter(pairwise(text.split()))
    repeated = [(pair, count) for pair, count in counts.items() if count >= MIN_REPEATS and _is_term(pair)]
    return [pair for pair, _ in sorted(repeated, key=lambda item: -item[1])[:MAX_TERMS]]


def _is_term(words: Sequence[str]) -> bool:
    return (
        all(len(word) >= MIN_LETTERS and word.islower() and word not in opening_words() for word in words)
        and not all(word in empty_words() for word in words)
        and not _NOT_LAST.fullmatch(words[-1])
    )
