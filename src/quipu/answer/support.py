"""Support: whether the passages a statement cites say what it says, as far as words, names and numbers tell.

No model judges here: a statement passes where the cited passages hold each of its numbers, three of four words of its
names, and a third of its content words. It is cheap, the same each time, and finds what was made up rather than what
was misread.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from quipu.answer.pack import Passage
from quipu.text.content_terms import content_terms, stem
from quipu.text.sentences import sentence_spans
from quipu.text.words import Words, split_words

# Of 17,234 facts a model read from passages of musique 99.8 % pass with their passage, 0.3 % with another, and 23 %
# where their object is that of another fact. Half the words would lose a fifth of what a model says freely of a novel.
MIN_SHARE = 1 / 3
MIN_NAMES = 3 / 4
STEM = 5  # letters by which two forms of a name are the same: Russia, Russian

MAX_DIGITS = 100

_NUMBER = re.compile(r"\d{1,3}(?:[.,'’ ]\d{3})+(?!\d)|\d+(?:[.,]\d+)?")
_NO_DIGIT = re.compile(r"\D")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a text says, as far as words tell: content terms, stems of all words, numbers without punctuation."""

    terms: frozenset[str]
    stems: frozenset[str]
    numbers: frozenset[str]

    def __or__(self, other: "Said") -> "Said":
        return Said(
            terms=self.terms | other.terms, stems=self.stems | other.stems, numbers=self.numbers | other.numbers
        )


NOTHING = Said(terms=frozenset(), stems=frozenset(), numbers=frozenset())


def read(text: str) -> Said:
    """Return what a text says."""
    words = split_words(text)
    return Said(terms=frozenset(content_terms(words)), stems=_stems(words.terms), numbers=frozenset(_numbers(text)))


def read_passage(passage: Passage) -> Said:
    """Return what a passage says, with its title, headings and the header of its table."""
    chunk = passage.chunk
    return read("\n".join((chunk.title, *chunk.headings, chunk.header, chunk.text)))


def is_held(statement: str, cited: Said, *, is_translated: bool) -> bool:
    """Say whether the passages cited hold what a statement says.

    Names and numbers of the question are no exception, for it may take for granted what is not so. Where the passages
    are in another language (`is_translated`) only numbers can be compared.
    """
    if not _numbers(statement) <= cited.numbers:
        return False
    if is_translated:
        return True
    words = split_words(statement)
    terms, names = frozenset(content_terms(words)), _names(statement, words)
    return _share(terms, cited.terms) >= MIN_SHARE and _share(names, cited.stems) >= MIN_NAMES


def _share(wanted: Iterable[str], held: frozenset[str]) -> float:
    sought = frozenset(wanted)
    return len(sought & held) / len(sought) if sought else 1.0


def _names(text: str, words: Words) -> frozenset[str]:
    """Return the stems of capitalised words that do not begin a sentence."""
    first = {start for start, _ in sentence_spans(text)}
    capitals = [
        term
        for term, start in zip(words.terms, words.starts, strict=True)
        if text[start].isupper() and start not in first and not text[:start].rstrip("\"'“‘«(*_ \n").endswith((":", "."))
    ]
    return _stems(capitals)


def _stems(terms: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(term)[:STEM] for term in terms)


def _numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text by their digits alone, in ASCII: 1,000 and 1 000 are the same."""
    found = _NUMBER.findall(unicodedata.normalize("NFKC", text))
    return frozenset(str(int(digits)) for number in found if len(digits := _NO_DIGIT.sub("", number)) < MAX_DIGITS)
